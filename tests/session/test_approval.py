"""What an answer to a request for permission may say, and what it gives."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.errors import InvalidAnswer
from arp.session.approval import NO_TERMS, ApprovalAnswer, ApprovalRequest, ApprovalTerms, Grant

DIGEST = "d" * 64
REQUEST = ApprovalRequest("shell", {}, "ask", DIGEST, '{"a":1}', "shell: git", True)


def same(payload: dict[str, Any]) -> dict[str, Any]:
    return payload


def test_terms_are_those_of_the_recorded_request() -> None:
    payload = REQUEST.payload(same)
    assert payload == {
        "tool": "shell",
        "askedBy": "ask",
        "args": '{"a":1}',
        "sessionRule": "shell: git",
        "digest": DIGEST,
        "editable": True,
    }
    assert ApprovalTerms.of(payload) == ApprovalTerms(DIGEST, Grant("shell", "shell: git"), True)
    least = ApprovalRequest("shell", {}, "ask").payload(same)
    assert least == {"tool": "shell", "askedBy": "ask"}
    assert ApprovalTerms.of(least) == NO_TERMS
    assert ApprovalTerms.of({"component": {}}) is None


def test_grant_is_for_the_rule_as_it_was_recorded_without_secrets() -> None:
    payload = REQUEST.payload(lambda shown: {**shown, "sessionRule": "shell: [redacted]"})
    terms = ApprovalTerms.of(payload)
    assert terms is not None
    assert terms.grant_of(ApprovalAnswer(True, "session")) == Grant("shell", "shell: [redacted]")


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({"action": "confirm"}, ApprovalAnswer(True)),
        ({"action": "deny", "payload": {"reason": "no"}}, ApprovalAnswer(False, reason="no")),
        (
            {
                "action": "confirm",
                "payload": {"scope": "session", "digest": DIGEST, "updated_input": {"a": 2}},
            },
            ApprovalAnswer(True, "session", digest=DIGEST, updated_input={"a": 2}),
        ),
        # Inputs that no `confirm` has checked, of an answer to another component.
        ({"selected": ["yes"]}, ApprovalAnswer(False)),
        ({"action": ["confirm"], "payload": "session"}, ApprovalAnswer(False)),
        ({"action": "confirm", "payload": {"scope": 1, "reason": {}}}, ApprovalAnswer(True)),
    ],
)
def test_answer_is_a_yes_only_if_it_confirms(data: dict[str, Any], answer: ApprovalAnswer) -> None:
    assert ApprovalAnswer.of(data) == answer


def test_answer_may_say_what_the_request_offers() -> None:
    offered = ApprovalTerms.of(REQUEST.payload(same))
    assert offered is not None
    offered.check(ApprovalAnswer(True, "session", digest=DIGEST, updated_input={}))
    offered.check(ApprovalAnswer(True))
    for terms in (ApprovalTerms(DIGEST), NO_TERMS):
        terms.check(ApprovalAnswer(False, "session"))  # a no gives no grant, so it is no danger


@pytest.mark.parametrize(
    ("terms", "answer", "where"),
    [
        (NO_TERMS, ApprovalAnswer(True, digest=DIGEST), "payload.digest"),
        (ApprovalTerms("e" * 64), ApprovalAnswer(True, digest=DIGEST), "payload.digest"),
        (ApprovalTerms("e" * 64), ApprovalAnswer(False, digest=DIGEST), "payload.digest"),
        (ApprovalTerms(DIGEST), ApprovalAnswer(True, updated_input={}), "payload.updated_input"),
        (ApprovalTerms(DIGEST), ApprovalAnswer(True, "session"), "payload.scope"),
    ],
)
def test_answer_that_says_more_is_refused(
    terms: ApprovalTerms, answer: ApprovalAnswer, where: str
) -> None:
    with pytest.raises(InvalidAnswer) as error:
        terms.check(answer)
    assert error.value.detail == where


def test_only_a_yes_for_the_session_gives_the_grant() -> None:
    grant = Grant("shell", "shell: git")
    terms = ApprovalTerms(DIGEST, grant)
    assert terms.grant_of(ApprovalAnswer(True, "session")) == grant
    assert terms.grant_of(ApprovalAnswer(True)) is None
    assert terms.grant_of(ApprovalAnswer(False, "session")) is None
    assert NO_TERMS.grant_of(ApprovalAnswer(True, "session")) is None
