"""What was done becomes a case; doing the same again gives no difference, anything else does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.ledger.exports.derived import readable
from arp.ledger.exports.replay_case import (
    Case,
    CaseMaker,
    Difference,
    NoCase,
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
    """Gives the case of a turn that asks, uses a tool and says a word."""
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
    answered = {"decision": "answered", "resumes": True, "answer": True}
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
        maker.take(fact)
    return maker.case()


def difference(expected: Case, found: Case) -> Difference | None:
    return first_difference(expected.turns[0], found.turns[0].facts)


def test_a_case_has_what_was_put_in_and_what_came_of_it() -> None:
    case = ran()
    assert (case.session_id, case.workflow, case.through) == ("s", "agent", 10)
    (one,) = case.turns
    assert one.input["data"] == {"text": "How many?"}
    assert one.answers == [True]
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
        maker.take(fact)
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
            "a case of format 'arp-case-9', not arp-case-1",
        ),
    ],
)
def test_what_is_no_case_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NoCase, match=reason):
        decode_case(data)
