"""What was done becomes a case; doing the same again gives no difference, anything else does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.audit.evidence.derived import readable
from arp.audit.evidence.replay_case import (
    Case,
    CaseMaker,
    Difference,
    NoCase,
    Response,
    TurnCase,
    decode_case,
    first_difference,
    obstacle,
)
from tests.ledger.historian import Historian


def turn(turn_id: str) -> dict[str, Any]:
    return {"thread_id": "main", "turn_id": turn_id}


def ran(
    *,
    turn_id: str = "t1",
    call_id: str = "c1",
    words: tuple[str, ...] = ("thr", "ee"),
    error: str | None = None,
    status: str = "completed",
    extra: bool = False,
) -> Case:
    """Return the case of a turn that asks, uses a tool and says a word."""
    told = Historian()
    own = turn(turn_id)
    asked = {"input_type": "text", "data": {"text": "How many?"}, "id": f"input of {turn_id}"}
    told.add("turn.submitted", {"input": asked}, **own)
    told.add("turn.started", {}, **own)
    call = {**own, "step_id": f"step of {call_id}", "tool_call_id": call_id}
    told.add("tool.started", {"tool": "shell"}, **call)
    if error is None:
        told.add("tool.result", {"tool": "shell", "preview": "3", "durationMs": 17}, **call)
    else:
        told.add("tool.failed", {"tool": "shell", "error": error}, **call)
    action = {**own, "action_id": f"{turn_id}.sure.7"}
    shown = {"component": {"id": "sure", "type": "confirm"}, "surface": "main"}
    told.add("action.required", shown, **action)
    sent = {"input_type": "action", "data": {"action": "confirm"}, "id": f"answer to {turn_id}"}
    answered = {"decision": "answered", "resumes": True, "answer": True, "input": sent}
    told.add("action.resolved", answered, **action)
    for word in words:
        told.add("model.delta", {"text": word}, **own)
    if extra:
        told.add("cost.recorded", {"model": "m", "inputTokens": 1, "outputTokens": 1}, **own)
    why = {} if status == "completed" else {"status_reason": status}
    kind = "turn.completed" if status == "completed" else "turn.failed"
    told.add(kind, {"status": status}, status=status, **why, **own)
    maker = CaseMaker()
    for fact in told.facts:
        maker.add(fact)
    return maker.case()


def difference(expected: Case, found: Case) -> Difference | None:
    return first_difference(expected.turns[0], found.turns[0].facts)


def test_a_case_has_what_was_put_in_and_what_came_of_it() -> None:
    case = ran()
    assert (case.session_id, case.workflow, case.through) == ("s", "agent", 10)
    (one,) = case.turns
    assert one.input["data"] == {"text": "How many?"}
    confirmed = {"input_type": "action", "data": {"action": "confirm"}}
    assert one.responses == [Response("action#1", 3, confirmed)]
    assert not one.is_cancelled
    assert [fact.type for fact in one.facts] == [
        "tool.started",
        "tool.result",
        "action.required",
        "action.resolved",
        "model.delta",
        "turn.completed",
    ]
    assert one.facts[0].ids == {"turn_id": "turn#1", "tool_call_id": "tool_call#1"}
    assert one.facts[1].payload == {"tool": "shell", "preview": "3"}
    assert one.facts[4].payload == {"text": "three"}


def test_other_ids_other_times_and_other_pieces_of_text_are_no_difference() -> None:
    again = ran(turn_id="t7", call_id="c9", words=("t", "hre", "e"))
    assert difference(ran(), again) is None


def test_the_first_thing_that_differs_is_named_with_its_place() -> None:
    assert difference(ran(), ran(words=("four",))) == Difference(
        "t1", 8, "payload.text", "three", "four"
    )
    assert difference(ran(), ran(error="no")) == Difference(
        "t1", 5, "type", "tool.result", "tool.failed"
    )
    failed, timed_out = ran(error="no"), ran(error="too late")
    assert difference(failed, timed_out) == Difference("t1", 5, "payload.error", "no", "too late")


def test_what_is_missing_and_what_is_too_much_is_told() -> None:
    short = TurnCase("t1", {}, facts=ran().turns[0].facts[:-1])
    assert difference(ran(), ran(extra=True)) == Difference(
        "t1", 10, "type", "turn.completed", "cost.recorded"
    )
    assert first_difference(ran().turns[0], short.facts) == Difference(
        "t1", 10, "missing", "turn.completed"
    )
    assert first_difference(short, ran().turns[0].facts) == Difference(
        "t1", 8, "added", None, "turn.completed"
    )
    assert first_difference(TurnCase("t1", {}), ran().turns[0].facts) == Difference(
        "t1", 0, "added", None, "tool.started"
    )


def test_a_turn_that_ends_otherwise_differs_in_its_type() -> None:
    cancelled = ran(status="cancelled")
    assert cancelled.turns[0].is_cancelled
    assert difference(ran(), cancelled) == Difference(
        "t1", 10, "type", "turn.completed", "turn.failed"
    )
    assert difference(cancelled, ran(status="failed")) == Difference(
        "t1", 10, "statusReason", "cancelled", "failed"
    )


def test_ids_that_stand_for_something_else_are_a_difference() -> None:
    one = ran()
    moved = msgspec.structs.replace(
        one.turns[0].facts[0], ids={"turn_id": "turn#1", "tool_call_id": "tool_call#2"}
    )
    found = [moved, *one.turns[0].facts[1:]]
    assert first_difference(one.turns[0], found) == Difference(
        "t1", 4, "ids.tool_call_id", "tool_call#1", "tool_call#2"
    )


def test_correlations_that_are_not_known_stay_what_they_say() -> None:
    told = Historian()
    own = turn("t1")
    told.add("turn.submitted", {"input": {"input_type": "text", "data": {}}}, **own)
    told.add("permission.requested", {"tool": "a"}, request_id="unknown", **own)
    told.add("turn.started", {}, **turn("unknown"))
    told.add("model.delta", {"text": "of a turn before"}, **turn("t0"))
    names = {"list": [{"id": "a"}, {"target": "a", "n": [1, 2]}], "said": "a", "after": None}
    told.add("permission.requested", {"tool": "b", "detail": names}, request_id="p1", **own)
    maker = CaseMaker()
    for fact in told.facts:
        maker.add(fact)
    (one,) = maker.case().turns
    first, second = one.facts
    assert first.ids["request_id"] == "unknown"
    assert second.payload["detail"] == {
        "list": [{"id": "name#1"}, {"target": "name#1", "n": [1, 2]}],
        "said": "name#1",
        "after": None,
    }


@pytest.mark.parametrize(
    "data",
    [{"files": [{"sha256": "a"}]}, {"fields": {"report": {"sha256": "a"}, "name": "x"}}],
)
def test_a_case_with_files_cannot_be_run_again(data: dict[str, Any]) -> None:
    case = ran()
    asked = {"input_type": "text", "data": data}
    with_files = msgspec.structs.replace(
        case, turns=[msgspec.structs.replace(case.turns[0], input=asked)]
    )
    assert obstacle(with_files) == "the input of turn t1 names files, which are in no case"
    assert obstacle(case) is None


def test_a_case_is_read_as_it_was_written() -> None:
    case = ran(status="cancelled")
    assert decode_case(readable(msgspec.to_builtins(case))) == case


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "no replay case: "),
        (b"\xff", "no replay case: "),
        (b"[]", "no replay case: "),
        (
            readable({**msgspec.to_builtins(ran()), "format": "arp-case-9"}),
            "a case of format 'arp-case-9', not arp-case-2; export it again",
        ),
    ],
)
def test_what_is_no_case_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NoCase, match=reason):
        decode_case(data)


# -- turns that did not end by themselves ----------------------------------------------------------


def case_of(told: Historian) -> Case:
    maker = CaseMaker()
    for fact in told.facts:
        maker.add(fact)
    return maker.case()


def begun(**ids: str) -> Historian:
    """A turn that says two words and has a tool that runs."""
    told, own = Historian(), turn("t1")
    given = {"input_type": "text", "data": {"text": "go"}}
    told.add("turn.submitted", {"input": given}, **own, **ids)
    told.add("turn.started", {}, **own)
    told.add("model.delta", {"text": "one "}, **own)
    told.add("tool.started", {"tool": "shell"}, **call())
    told.add("tool.result", {"tool": "shell", "preview": "3"}, **call())
    told.add("model.delta", {"text": "two"}, **own)
    return told


def call() -> dict[str, str]:
    return {**turn("t1"), "step_id": "s1", "tool_call_id": "c1"}


def test_of_an_unfinished_turn_only_what_it_did_must_come_again() -> None:
    (one,) = case_of(begun()).turns
    assert (one.is_unfinished, one.is_cancelled) == (True, False)
    told = begun()
    told.add("model.delta", {"text": " three"}, **turn("t1"))
    told.add("turn.completed", {"status": "completed"}, status="completed", **turn("t1"))
    (whole,) = case_of(told).turns
    assert not whole.is_unfinished
    assert first_difference(one, whole.facts) is None
    assert not one.is_to_be_stopped(whole.facts[:3])
    assert one.is_to_be_stopped(whole.facts[:4])
    assert not whole.is_to_be_stopped(whole.facts)
    other = [*whole.facts[:3], msgspec.structs.replace(whole.facts[3], payload={"text": "2"})]
    assert not one.is_to_be_stopped(other), "less was said"
    assert first_difference(one, other) == Difference("t1", 7, "payload.text", "two", "2")
    assert first_difference(one, whole.facts[:3]) == Difference("t1", 7, "missing", "model.delta")
    swapped = [*whole.facts[:3], whole.facts[1]]
    assert first_difference(one, swapped) == Difference(
        "t1", 7, "type", "model.delta", "tool.started"
    )


def test_a_turn_that_only_waited_in_line_expects_nothing() -> None:
    told = Historian()
    given = {"input_type": "text", "data": {"text": "go"}}
    told.add("turn.submitted", {"input": given}, **turn("t1"))
    (one,) = case_of(told).turns
    assert one.is_to_be_stopped([])
    assert first_difference(one, ran().turns[0].facts) is None


def test_a_turn_that_a_stop_of_the_server_interrupted_is_an_unfinished_one() -> None:
    told = begun()
    told.add("tool.started", {"tool": "sleep"}, **call())
    told.add("permission.resolved", {"tool": "sleep", "decision": "cancelled"}, **call())
    told.add("tool.failed", {"tool": "sleep", "error": "cancelled"}, **call())
    told.add("runtime.error", {"error": "the server stopped", "code": 19}, **turn("t1"))
    end = {"status": "failed", "status_reason": "interrupted"}
    told.add("turn.failed", {"status": "failed"}, **turn("t1"), **end)
    told.add("action.resolved", {"decision": "expired"}, action_id="a", **turn("t1"))
    (one,) = case_of(told).turns
    assert one.is_unfinished
    assert [fact.type for fact in one.facts][-2:] == ["model.delta", "tool.started"]


def test_a_turn_is_stopped_where_somebody_stopped_it() -> None:
    told, own = begun(), turn("t1")
    told.add("run.status", {}, status="cancelling", **own)
    told.add("run.status", {}, status="cancelling", **own)
    told.add("model.delta", {"text": " bye"}, **own)
    told.add("tool.failed", {"tool": "sleep", "error": "cancelled"}, **call())
    end = {"status": "cancelled", "status_reason": "cancelled"}
    told.add("turn.failed", {"status": "cancelled"}, **own, **end)
    (one,) = case_of(told).turns
    assert (one.is_cancelled, one.stopped_after, one.stopped_characters) == (True, 4, 3)
    assert one.facts[3].payload == {"text": "two bye"}
    reached = case_of(begun()).turns[0].facts
    assert one.is_to_be_stopped(reached), "what came of the stop is not waited for"
    assert not one.is_to_be_stopped(reached[:3])


def test_a_stop_that_came_too_late_or_before_anything_changes_nothing() -> None:
    told, own = Historian(), turn("t1")
    told.add("turn.submitted", {"input": {"input_type": "text"}}, **own)
    told.add("run.status", {}, status="cancelling", **own)
    told.add("turn.completed", {"status": "completed"}, status="completed", **own)
    (one,) = case_of(told).turns
    assert (one.is_unfinished, one.stopped_after, one.stopped_characters) == (False, None, None)
    assert not one.is_to_be_stopped(one.facts)


def test_an_older_case_of_a_stopped_turn_is_stopped_before_its_last_fact() -> None:
    one = TurnCase("t1", {}, is_cancelled=True, facts=ran().turns[0].facts)
    assert one.is_to_be_stopped(one.facts[:-1])
    assert not one.is_to_be_stopped(one.facts[:-2])


def test_the_attempt_that_whoever_asked_began_is_not_expected_of_the_agent() -> None:
    run = {"task_id": "k", "run_id": "k.2"}
    told = begun(**run)
    told.add("task.retrying", {"attempt": 2}, **run, **turn("t1"))
    told.add("task.attempt.started", {"attempt": 2}, **run, **turn("t1"))
    told.add("task.progress", {"fraction": 1}, **run, **turn("t1"))
    told.add("task.attempt.started", {"attempt": 1}, task_id="own", run_id="own.1", **turn("t1"))
    (one,) = case_of(told).turns
    assert [fact.type for fact in one.facts][-2:] == ["task.progress", "task.attempt.started"]
    assert one.facts[-2].ids == {"turn_id": "turn#1", "task_id": "task#1"}
    assert one.facts[-1].ids["run_id"] == "run#1"
    (other,) = case_of(begun()).turns
    assert [fact.type for fact in other.facts][-1] == "model.delta"
