"""If two screens answer at the same time, the one that was too late gets an error.

An answer that names its question is refused by the state of that question (`test_inputs.py`). Here
are those that name none: typed lines, and the actions of the draft.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import InvalidAnswer, InvalidMessage
from arp.protocol.messages import Input
from arp.protocol.patch import Remove
from arp.session.asking import answer_question, ask_question, cancel_question, decline_question
from arp.session.input.late_input import check_in_time
from arp.session.questions import Question
from arp.session.session import Session
from arp.surface.change import PatchChange, RenderChange
from arp.view.profile import Profile, typed_answer
from tests.session.conversation import FULL, TEXT, begun, choices, confirm, form, send

NAME = Component("n", "text-input", {"label": "Name?"})


def asked(component: Component) -> tuple[Session, Question, int]:
    """Return a session with an open question, and the fact up to which another screen shows it."""
    session = begun()
    question = ask_question(session, "t1", component)
    return session, question, session.sequence


def late(
    session: Session,
    shown: int,
    input_type: Any,
    data: dict[str, Any],
    by: Profile = TEXT,
    **more: Any,
) -> None:
    message = Input(input_type=input_type, data=data, **more)
    check_in_time(session, message, partial(typed_answer, by), shown)


@pytest.mark.parametrize(
    ("component", "answer", "input_type", "data"),
    [
        (confirm(), True, "text", {"text": "no"}),
        (confirm(), True, "action", {"action": "deny"}),
        (choices(), "one", "text", {"text": "2"}),
        (choices(), "one", "selection", {"selected": ["two"]}),
        (choices(), "one", "action", {"action": "two"}),
        (form(), {"n": "Ada"}, "form_submit", {"fields": {"n": "Bob"}}),
        (form(), {"n": "Ada"}, "form_submit", {"n": "Bob"}),
        (NAME, "Ada", "text", {"text": "Bob"}),
    ],
)
def test_answer_without_a_name_is_refused_when_another_screen_was_first(
    component: Component, answer: Any, input_type: str, data: dict[str, Any]
) -> None:
    session, question, shown = asked(component)
    late(session, shown, input_type, data)
    answer_question(session, question, answer, None)
    with pytest.raises(InvalidAnswer, match="is already answered"):
        late(session, shown, input_type, data)
    late(session, session.sequence, input_type, data)


def test_declined_and_expired_questions_are_named_as_such() -> None:
    session, question, shown = asked(confirm())
    decline_question(session, question, None)
    with pytest.raises(InvalidAnswer, match="was declined"):
        late(session, shown, "text", {"text": "yes"})
    session, question, shown = asked(confirm())
    cancel_question(session, question, "expired")
    with pytest.raises(InvalidAnswer, match="has expired"):
        late(session, shown, "text", {"text": "yes"})


def test_line_after_a_cancel_is_a_new_message() -> None:
    """Who stops a turn goes on writing: no other screen has answered."""
    session, question, shown = asked(NAME)
    cancel_question(session, question)
    late(session, shown, "text", {"text": "Something else"})


@pytest.mark.parametrize(
    ("input_type", "data", "more"),
    [
        ("text", {"text": "Something else"}, {}),
        ("text", {"text": "yes"}, {"edits": "t1"}),
        ("text", {"text": "yes"}, {"source_component": "q"}),
        ("action", {"action": "arp.cancel"}, {}),
        ("gesture", {"gesture": "wave"}, {}),
    ],
)
def test_input_that_is_no_unnamed_answer_is_taken(
    input_type: str, data: dict[str, Any], more: dict[str, Any]
) -> None:
    session, question, shown = asked(confirm())
    answer_question(session, question, True, None)
    late(session, shown, input_type, data, **more)


def test_line_is_a_message_where_the_question_has_buttons() -> None:
    session, question, shown = asked(confirm())
    answer_question(session, question, True, None)
    late(session, shown, "text", {"text": "yes"}, by=FULL)


def test_input_that_is_sent_again_is_no_late_one() -> None:
    """Its acknowledgement was lost with the connection."""
    session, _, shown = asked(confirm())
    send(session, "text", {"text": "yes"}, by=TEXT, id="i2")
    late(session, shown, "text", {"text": "yes"}, id="i2")


def test_late_answer_does_not_go_to_a_question_that_its_user_has_not_seen() -> None:
    session, question, shown = asked(confirm("first"))
    answer_question(session, question, True, None)
    ask_question(session, "t1", confirm("second"))
    with pytest.raises(InvalidAnswer, match='"first" is already answered'):
        late(session, shown, "text", {"text": "yes"})


def test_answer_goes_to_the_newest_question_on_its_screen() -> None:
    session, question, _ = asked(confirm("first"))
    ask_question(session, "t1", confirm("second"))
    shown = session.sequence
    answer_question(session, question, True, None)
    late(session, shown, "text", {"text": "yes"})


def test_question_whose_component_is_gone_takes_nothing() -> None:
    session, question, shown = asked(confirm())
    session.commit("t1", "main", [RenderChange([Component("t", "text", {"content": "x"})])])
    answer_question(session, question, True, None)
    session.commit("t1", "main", [PatchChange([Remove("q")])])
    late(session, shown, "text", {"text": "yes"})


def test_question_on_a_surface_that_is_gone_takes_nothing() -> None:
    session = begun()
    question = ask_question(session, "t1", confirm(), "details")
    shown = session.sequence
    answer_question(session, question, True, None)
    del session.screen.surfaces["details"]
    late(session, shown, "text", {"text": "yes"})


def test_input_of_another_shape_is_refused_as_ever() -> None:
    session, question, shown = asked(confirm())
    answer_question(session, question, True, None)
    with pytest.raises(InvalidMessage, match="data"):
        late(session, shown, "action", {})


def test_nothing_is_late_where_nothing_was_closed() -> None:
    session, _, _ = asked(confirm())
    late(session, 0, "text", {"text": "yes"})
