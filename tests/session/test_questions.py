"""Questions are opened and closed by facts alone, and decide what the closing fact says."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact_types import REQUIRED_IDS
from arp.protocol.errors import InvalidComponent
from arp.session.questions import MAX_CLOSED, Questions
from arp.session.recording.recorded import RecordedFact
from arp.session.session import FACT_HANDLERS
from tests.session.conversation import new


def asked(*turns: str) -> Questions:
    """Return open questions `q1`, `q2`, …, one for each of the turns."""
    questions = Questions()
    for number, turn_id in enumerate(turns, 1):
        component = {"id": f"q{number}", "type": "confirm", "props": {}}
        payload = {"component": component, "surface": "main"}
        questions.open(turn_id, f"{turn_id}.q{number}.{number}", payload)
    return questions


def test_questions_of_a_turn_are_listed_oldest_first() -> None:
    questions = asked("t1", "t2", "t1")
    assert [one.component_id for one in questions.of_turn("t1")] == ["q1", "q3"]
    assert [one.component_id for one in questions.on_surface("main")] == ["q1", "q2", "q3"]
    assert questions.on_surface("side") == []


def test_a_turn_cannot_ask_twice_under_one_id_but_another_turn_can() -> None:
    questions = asked("t1")
    with pytest.raises(InvalidComponent, match="question 'q1' is still open"):
        questions.replaced_by("t1", "main", "q1")
    assert questions.replaced_by("t2", "main", "q1") == questions["main", "q1"]
    assert questions.replaced_by("t2", "side", "q1") is None


@pytest.mark.parametrize(
    ("running", "status", "decision", "says"),
    [
        ("t1", "waiting", "answered", {"resumes": True}),
        (None, "waiting", "answered", {"resumes": False, "ends": "completed"}),
        (None, "waiting", "declined", {"resumes": False, "ends": "completed"}),
        (None, "waiting", "expired", {"resumes": False, "ends": "cancelled"}),
        (None, "completed", "answered", {"resumes": False}),
    ],
)
def test_the_last_question_of_a_turn_says_how_the_turn_goes_on(
    running: str | None, status: str, decision: str, says: dict[str, Any]
) -> None:
    """A turn that a crash ended is shown as waiting until then."""
    questions = asked("t1", "t2")
    payload = {"decision": decision}
    closing = questions.closing(questions["main", "q1"], payload, running, status)
    assert closing == {"decision": decision, **says}


def test_a_question_that_is_not_the_last_one_says_nothing_about_the_turn() -> None:
    questions = asked("t1", "t1")
    for running in ("t1", None):
        closing = questions.closing(questions["main", "q1"], {"decision": "x"}, running, "waiting")
        assert closing == {"decision": "x", "resumes": False}


def test_closed_questions_are_remembered_unless_their_turn_was_cancelled() -> None:
    questions = asked(*["t1"] * (MAX_CLOSED + 2))
    for number in range(1, MAX_CLOSED + 3):
        decision = "cancelled" if number == MAX_CLOSED + 2 else "answered"
        questions.close(f"t1.q{number}.{number}", {"decision": decision}, 100 + number)
    assert questions == {}
    assert [one.sequence for one in questions.closed] == list(range(102, 102 + MAX_CLOSED))


def test_each_handler_is_for_a_type_of_the_profile() -> None:
    """A handler with a misspelt type would never run."""
    assert FACT_HANDLERS.keys() <= REQUIRED_IDS.keys()


def test_a_request_without_a_component_opens_no_question() -> None:
    """Another program may have written the ledger; the session must open all the same."""
    session = new()
    session.in_turn(
        "turn.submitted", "t1", {"input": {"input_type": "text", "data": {"text": "x"}}}
    )
    session.in_turn("turn.started", "t1", {})
    fact = RecordedFact("action.required", {"surface": "main"}, {"action_id": "a1"}, turn_id="t1")
    FACT_HANDLERS["action.required"](session, fact)
    assert not session.questions
