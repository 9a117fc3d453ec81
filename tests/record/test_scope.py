"""What comes from outside is checked at the line of whoever made it."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.protocol.errors import SurfaceDestroyed
from arp.record.scope import OWN, UNAVAILABLE
from tests.record.rig import Recording


def test_a_fact_carries_the_ids_of_its_scope_and_its_own() -> None:
    recording = Recording()
    inner = recording.scope.within(task_id="a", run_id=None).within(run_id="r")
    inner("run.status", {"reason": None}, status="running", phase=None)
    (fact,) = recording.facts()
    assert (fact.thread_id, fact.turn_id) == ("main", "t1")
    assert (fact.task_id, fact.run_id, fact.status, fact.phase) == ("a", "r", "running", None)
    assert fact.payload == {}
    assert recording.marked == 1


@pytest.mark.parametrize(
    ("type_name", "payload", "ids", "told"),
    [
        ("task.created", {"objective": "x"}, {}, "task.created needs taskId"),
        (
            "tool.catalog.resolved",
            {"tools": []},
            {},
            "tool.catalog.resolved needs stepId, toolCall",
        ),
        ("task.creatd", {}, {}, "no type 'task.creatd'; the nearest is task.created"),
        ("task.created", {}, {"task_id": "a"}, "task.created: payload.objective: missing"),
        ("task.started", {}, {"task_id": 3}, "task.started has taskId 3; expected: a text"),
        ("task.started", {}, {"task_id": "a", "taskid": "b"}, "no id 'taskid'; the nearest is ta"),
        ("turn.completed", {"status": "completed"}, {}, "is recorded by the session itself"),
        ("artifact.changed", {"changes": []}, {"artifact_id": "a"}, "by the session itself"),
        ("run.status", {"inputId": "i"}, {"status": "x"}, "by the session itself"),
        ("output.spilled", {"file": {}}, {"output_ref": "a"}, "by the session itself"),
    ],
)
def test_what_does_not_fit_the_profile_is_refused_and_nothing_recorded(
    type_name: str, payload: dict[str, Any], ids: dict[str, Any], told: str
) -> None:
    recording = Recording()
    with pytest.raises(ProfileViolation) as refused:
        recording.scope(type_name, payload, **ids)
    assert told in str(refused.value)
    assert str(refused.value).startswith("profile validation failed: ")
    assert recording.facts() == []
    assert recording.marked == 0


def test_what_cannot_be_written_as_json_is_refused() -> None:
    recording = Recording()
    with pytest.raises(TypeError):
        recording.scope("runtime.warning", {"message": "x", "detail": object()})
    assert recording.facts() == []


def test_payload_that_is_no_object_is_refused() -> None:
    recording = Recording()
    with pytest.raises(TypeError, match="payload: expected a dict, got list"):
        recording.scope("runtime.warning", ["message"])  # type: ignore[arg-type]  # the mistake
    assert recording.facts() == []


def test_nothing_is_recorded_once_the_turn_is_over() -> None:
    recording = Recording()
    recording.over = SurfaceDestroyed("turn t1 is over")
    with pytest.raises(SurfaceDestroyed):
        recording.record("runtime.warning", {"message": "x"})
    assert recording.facts() == []


def test_half_characters_become_the_sign_for_what_is_no_character() -> None:
    recording = Recording()
    detail = {"c\ud83d": ["\ud83d\ude00", 1]}
    recording.record("runtime.warning", {"message": "a\ud800b", "detail": detail})
    assert recording.told() == [
        ("runtime.warning", {"message": "a\ufffdb", "detail": {"c\ufffd": ["\U0001f600", 1]}}, {})
    ]


def test_what_an_author_changes_afterwards_changes_no_fact() -> None:
    recording = Recording()
    detail = {"a": [1]}
    recording.record("runtime.warning", {"message": "x", "detail": detail})
    detail["a"].append(2)
    assert recording.told() == [("runtime.warning", {"message": "x", "detail": {"a": [1]}}, {})]


def test_outside_of_a_turn_the_turn_is_unavailable_where_one_is_required() -> None:
    """ledger.md 1: a missing correlation is written as such, never guessed."""
    recording = Recording({})
    recording.record("rate_limit.hit", {"limit": "requests"})
    recording.record("runtime.warning", {"message": "x"})
    limited, warned = recording.facts()
    assert (limited.thread_id, limited.turn_id) == ("main", UNAVAILABLE) == ("main", "unavailable")
    assert (warned.thread_id, warned.turn_id) == (None, None)


def test_ids_are_never_made_twice_in_a_session() -> None:
    recording = Recording()
    made = [recording.record.process("a").id for _ in range(3)]
    made += [recording.record.process("a").id]
    assert made == ["process-1", "process-2", "process-3", "process-4"]


def test_an_id_is_new_while_a_text_is_open() -> None:
    """An open text has its sequence already."""
    recording = Recording()
    recording.session.say("t1", "hello")
    assert recording.record.task("x").id == "task-2"
    assert [fact.sequence for fact in recording.facts()] == [1, 2]


def test_the_session_keeps_what_says_how_it_stands_to_itself() -> None:
    for name in OWN:
        with pytest.raises(ProfileViolation, match="recorded by the session itself"):
            Recording().scope(name, {})
