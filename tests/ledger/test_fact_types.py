"""Which fact needs which ids."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from arp.ledger.fact import Fact, FactField
from arp.ledger.fact_types import (
    FACT_TYPES,
    FAMILIES,
    PROFILE_TYPES,
    ProfileViolation,
    check,
    check_ids,
)
from arp.protocol.errors import LocalError
from tests.ledger import standard

PLAIN = Fact(
    schema_version="lime-profile-0.4.0",
    runtime_id="runtime_1",
    session_id="session_1",
    event_id="event_1",
    timestamp="2026-11-21T08:00:00.000Z",
    sequence=1,
    type="session.created",
    payload={},
)

IDS = {
    "thread_id": "main",
    "turn_id": "turn_1",
    "step_id": "step_1",
    "tool_call_id": "call_1",
    "action_id": "action_1",
    "task_id": "task_1",
    "run_id": "run_1",
    "subagent_id": "sub_1",
    "evidence_id": "evidence_1",
    "benchmark": {"dataset": "d"},
    "comparison": {"delta": 1},
    "refs": {"pack": "r"},
}

NEEDS = [
    ("session.created", ""),
    ("session.updated", ""),
    ("thread.started", "thread_id"),
    ("turn.submitted", "thread_id turn_id"),
    ("turn.failed", "thread_id turn_id"),
    ("model.delta", "thread_id turn_id"),
    ("reasoning.delta", "thread_id turn_id"),
    ("tool.started", "thread_id turn_id step_id tool_call_id"),
    ("tool.catalog.resolved", "thread_id turn_id step_id tool_call_id"),
    ("action.required", "thread_id turn_id action_id"),
    ("permission.requested", "thread_id turn_id"),
    ("sandbox.applied", "thread_id turn_id"),
    ("hook.failed", "thread_id turn_id"),
    ("context.compaction.started", "thread_id turn_id"),
    ("routing.single_candidate", "thread_id turn_id"),
    ("cost.recorded", "thread_id turn_id"),
    ("rate_limit.hit", "thread_id turn_id"),
    ("quota.low", "thread_id turn_id"),
    ("limit.changed", ""),
    ("policy.changed", ""),
    ("queue.changed", ""),
    ("task.created", "task_id"),
    ("task.dependency.updated", "task_id"),
    ("task.profile.resolved", "task_id"),
    ("task.attempt.failed", "task_id run_id"),
    ("run.status", ""),
    ("process.output", ""),
    ("output.spilled", ""),
    ("history.window.loaded", ""),
    ("subagent.input", "subagent_id"),
    ("job.item.failed", ""),
    ("channel.resumed", ""),
    ("artifact.changed", ""),
    ("evidence.changed", "evidence_id"),
    ("snapshot.repaired", ""),
    ("runtime.error", ""),
    ("benchmark.dataset.resolved", "benchmark"),
    ("benchmark.configuration.resolved", "benchmark"),
    ("benchmark.trial.started", "benchmark task_id run_id refs thread_id turn_id"),
    ("benchmark.trial.completed", "benchmark task_id run_id refs"),
    ("benchmark.reward.recorded", "benchmark task_id run_id refs"),
    ("benchmark.comparison.completed", "benchmark comparison refs"),
]


def test_the_list_has_every_type_of_the_profile_once() -> None:
    """ledger.md 1, event types: 120 of them, over 31 families."""
    assert sorted(PROFILE_TYPES) == sorted(standard.TYPES)
    assert len(standard.TYPES) == 120
    assert len({name.split(".")[0] for name in standard.TYPES}) == 31


def test_each_type_begins_with_the_word_of_its_family() -> None:
    for family in FAMILIES:
        assert {row.name.split(".")[0] for row in family.all_types()} == {family.name}


def test_each_type_has_one_row() -> None:
    assert sum(len(family.all_types()) for family in FAMILIES) == len(FACT_TYPES)


def test_rows_may_name_each_field_beside_the_payload() -> None:
    optional = [field.name for field in msgspec.structs.fields(Fact) if not field.required]
    assert list(get_args(FactField)) == ["type", "sequence", *optional]


@pytest.mark.parametrize(("fact_type", "needs"), NEEDS)
def test_a_fact_passes_with_exactly_the_ids_of_its_family(fact_type: str, needs: str) -> None:
    """ledger.md 1, "Required besides, by family"."""
    given = {name: IDS[name] for name in needs.split()}
    fact = msgspec.structs.replace(PLAIN, type=fact_type, **given)
    check(fact)
    for name in given:
        with pytest.raises(ProfileViolation, match=f"{fact_type} needs "):
            check(msgspec.structs.replace(fact, **{name: None}))


def test_a_missing_id_is_named_in_the_profiles_spelling() -> None:
    given = {name: IDS[name] for name in ("thread_id", "turn_id", "step_id")}
    with pytest.raises(ProfileViolation) as refused:
        check(msgspec.structs.replace(PLAIN, type="tool.started", **given))
    assert str(refused.value) == "profile validation failed: tool.started needs toolCallId"


def test_all_missing_ids_are_named_at_once() -> None:
    with pytest.raises(ProfileViolation) as refused:
        check(msgspec.structs.replace(PLAIN, type="action.required"))
    assert str(refused.value) == (
        "profile validation failed: action.required needs threadId, turnId, actionId"
    )


@pytest.mark.parametrize("name", ["runtime_id", "session_id", "event_id", "timestamp"])
def test_what_every_fact_needs_may_not_be_empty(name: str) -> None:
    with pytest.raises(ProfileViolation, match=r"session\.created needs"):
        check(msgspec.structs.replace(PLAIN, **{name: ""}))


@pytest.mark.parametrize("word", ["unknown", "unavailable", "stale"])
def test_a_correlation_that_is_not_known_may_say_so(word: str) -> None:
    """ledger.md 1: written as unknown, unavailable or stale."""
    check(msgspec.structs.replace(PLAIN, type="thread.started", thread_id=word))


def test_an_empty_correlation_is_a_missing_one() -> None:
    with pytest.raises(ProfileViolation, match=r"thread\.started needs threadId"):
        check(msgspec.structs.replace(PLAIN, type="thread.started", thread_id=""))


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("tool.start", "tool.started"), ("turn.cancelled", "task.cancelled")],
)
def test_an_unknown_type_is_refused_with_the_nearest_known_one(wrong: str, nearest: str) -> None:
    with pytest.raises(ProfileViolation) as refused:
        check(msgspec.structs.replace(PLAIN, type=wrong))
    assert str(refused.value).startswith(f"profile validation failed: no type '{wrong}'")
    assert str(refused.value).endswith(f"; the nearest is {nearest}")


@pytest.mark.parametrize("sequence", [0, -1])
def test_sequences_count_from_one(sequence: int) -> None:
    with pytest.raises(ProfileViolation, match="expected: count from 1"):
        check(msgspec.structs.replace(PLAIN, sequence=sequence))


def test_another_profile_is_not_written() -> None:
    with pytest.raises(ProfileViolation) as refused:
        check(msgspec.structs.replace(PLAIN, schema_version="lime-profile-9"))
    assert str(refused.value) == (
        "profile validation failed: session.created has schemaVersion 'lime-profile-9'; "
        "expected: lime-profile-0.4.0"
    )


def test_a_violation_is_our_callers_error() -> None:
    assert issubclass(ProfileViolation, LocalError)


TASK = {"task_id": "task_1", "run_id": "run_1", "refs": {"pack": "r"}, "status": "running"}


def test_ids_that_a_type_needs_pass_with_more_of_them() -> None:
    check_ids("task.attempt.failed", TASK)
    check_ids("session.updated", {})


@pytest.mark.parametrize(
    ("fact_type", "ids", "told"),
    [
        ("task.attempt.failed", {}, "task.attempt.failed needs taskId, runId"),
        ("task.attempt.failed", TASK | {"run_id": ""}, "task.attempt.failed needs runId"),
        ("task.attempt.faild", TASK, "no type 'task.attempt.faild'; the nearest is task.attempt."),
        (
            "task.started",
            TASK | {"run_id": 7},
            "task.started has runId 7; expected: a text",
        ),
        ("task.started", TASK | {"runId": "x"}, "no id 'runId'; the nearest is run_id"),
        (
            "task.started",
            TASK | {"refs": ["r"]},
            "task.started has refs ['r']; expected: an object",
        ),
    ],
)
def test_ids_that_would_not_pass_later_are_refused_before(
    fact_type: str, ids: dict[str, object], told: str
) -> None:
    """Whoever makes a fact is told at once, in the words of `check`."""
    with pytest.raises(ProfileViolation) as refused:
        check_ids(fact_type, ids)
    assert str(refused.value).startswith(f"profile validation failed: {told}")
