"""What the answer to a permission may say, and what it allows from then on (protocol.md 2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.errors import InvalidAnswer
from arp.protocol.limits import Limits
from arp.session.approval import ApprovalRequest, Grant
from arp.session.asking import ask_question, cancel_question
from arp.session.effects import Acknowledge, ResolveQuestion
from arp.session.questions import Question
from arp.session.session import QuestionOptions, Session
from tests.session.conversation import AT, TEXT, begun, confirm, facts, new, send, user
from tests.support.restoring import restore

DIGEST = "d" * 64

USE = ApprovalRequest("shell", {}, "ask", DIGEST, '{"a":1}', "shell: git", editable=True)
"""Offers everything."""
ONCE = ApprovalRequest("shell", {}, "ask", DIGEST)
"""Offers nothing besides yes and no."""


def asked(
    session: Session,
    request: ApprovalRequest = USE,
    component_id: str = "q",
    expires_at: str | None = None,
) -> Question:
    options = QuestionOptions(expires_at=expires_at, request=request)
    return ask_question(session, "t1", confirm(component_id), options=options)


def answer(session: Session, action: str = "confirm", **payload: Any) -> list[Any]:
    data = {"action": action, "payload": payload}
    return send(session, "action", data, source_component="q", id="yes")


def resolved(session: Session) -> Fact:
    return next(fact for fact in facts(session) if fact.type == "action.resolved")


def test_yes_for_the_session_allows_what_the_person_read_and_nothing_else() -> None:
    """It outlives a restart; a yes for once, or a no, allows nothing later."""
    session = new()
    user(session, "hi")
    everything = facts(session)
    question = asked(session)
    acknowledged, resolve = answer(session, scope="session", digest=DIGEST)
    assert acknowledged == Acknowledge("yes", "t1")
    assert isinstance(resolve, ResolveQuestion)
    assert resolve.action_id == question.action_id
    assert session.settings.grants == {Grant("shell", "shell: git")}
    everything += facts(session)
    assert restore(session.head, everything, Limits()).settings.grants == session.settings.grants
    for action, payload in (("confirm", {"scope": "once"}), ("deny", {"scope": "session"})):
        other = begun()
        asked(other)
        answer(other, action, **payload)
        assert other.settings.grants == set()
        assert "grant" not in resolved(other).payload


@pytest.mark.parametrize(
    ("offered", "payload", "where"),
    [
        (USE, {"digest": "e" * 64}, "payload.digest"),
        (ONCE, {"updated_input": {"a": 2}}, "payload.updated_input"),
        (ONCE, {"scope": "session"}, "payload.scope"),
    ],
)
def test_answer_that_says_more_than_the_question_offers_leaves_it_open(
    offered: ApprovalRequest, payload: dict[str, Any], where: str
) -> None:
    session = begun()
    question = asked(session, offered)
    with pytest.raises(InvalidAnswer) as error:
        answer(session, **payload)
    assert error.value.detail == where
    assert session.questions.is_open(question)


def test_scope_of_a_question_that_is_no_permission_allows_nothing() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    answer(session, scope="session")
    assert session.settings.grants == set()


def test_typed_yes_after_several_permissions_must_name_the_one_that_it_allows() -> None:
    """Two were open at once, so it may be meant for the other one; a no is no risk."""
    session = begun()
    first, second = asked(session), asked(session, component_id="r")
    cancel_question(session, second)
    session.drain(AT)
    with pytest.raises(InvalidAnswer) as error:
        send(session, "text", {"text": "yes"}, TEXT)
    assert error.value.detail == "source_component"
    assert session.questions.is_open(first)
    send(session, "text", {"text": "no"}, TEXT)
    assert resolved(session).payload["answer"] is False
    one = begun()
    asked(one)
    send(one, "text", {"text": "yes"}, TEXT)
    assert resolved(one).payload["answer"] is True


def test_permission_that_expired_makes_the_next_typed_yes_unclear() -> None:
    session = begun()
    cancel_question(session, asked(session), "expired")
    second = asked(session, component_id="r")
    with pytest.raises(InvalidAnswer):
        send(session, "text", {"text": "yes"}, TEXT)
    assert session.questions.is_open(second)


def test_permission_says_until_when_it_may_be_answered() -> None:
    session = begun()
    request = ApprovalRequest("shell", {}, "ask")
    asked(session, request, expires_at="2026-11-21T09:00:00Z")
    (required,) = [fact for fact in facts(session) if fact.type == "action.required"]
    assert required.payload["expiresAt"] == "2026-11-21T09:00:00Z"
    assert "digest" not in required.payload
