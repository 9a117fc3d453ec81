"""What has a beginning and an end: tasks, attempts, jobs, subagents, hooks, models, compactions."""

from __future__ import annotations

import asyncio

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.ledger.payload_fields import Delivery
from arp.protocol.errors import InvalidComponent
from arp.record.end_cause import EndCause
from tests.record.rig import Recording


def test_a_retry_keeps_the_task_and_the_failed_attempt() -> None:
    """ledger.md 6: a retry keeps the `taskId` and the failed attempt."""
    recording = Recording()
    task = recording.record.task("Fetch", task_id="fetch", depends_on=["log-in"], detail={"n": 1})
    task.attempt("run-a").failed("timeout", retryable=True)
    task.retry("once more").completed([7])
    task.completed([7], artifacts=["f"], evidence_refs=["e"], delivery=Delivery("delivered", "me"))
    assert recording.told() == [
        (
            "task.created",
            {"objective": "Fetch", "dependsOn": ["log-in"], "detail": {"n": 1}},
            {"task_id": "fetch"},
        ),
        ("task.attempt.started", {"attempt": 1}, {"task_id": "fetch", "run_id": "run-a"}),
        (
            "task.attempt.failed",
            {"attempt": 1, "reason": "timeout", "retryable": True},
            {"task_id": "fetch", "run_id": "run-a"},
        ),
        (
            "task.retrying",
            {"attempt": 2, "reason": "once more"},
            {"task_id": "fetch", "run_id": "fetch.2"},
        ),
        ("task.attempt.started", {"attempt": 2}, {"task_id": "fetch", "run_id": "fetch.2"}),
        (
            "task.attempt.completed",
            {"attempt": 2, "outputs": [7]},
            {"task_id": "fetch", "run_id": "fetch.2"},
        ),
        (
            "task.completed",
            {
                "outputs": [7],
                "artifacts": ["f"],
                "evidenceRefs": ["e"],
                "delivery": {"state": "delivered", "to": "me"},
            },
            {"task_id": "fetch", "run_id": "fetch.2"},
        ),
    ]


def test_what_becomes_of_a_task_carries_the_run_that_ran_last() -> None:
    recording = Recording()
    task = recording.record.known_task("a", attempts=1, run_id="a.1")
    task.record("task.progress", {"fraction": 0.5})
    task.retry(run_id="again").failed("no luck")
    task.failed("gave up")
    assert [(told[0], told[2].get("run_id")) for told in recording.told()] == [
        ("task.progress", "a.1"),
        ("task.retrying", "again"),
        ("task.attempt.started", "again"),
        ("task.attempt.failed", "again"),
        ("task.failed", "again"),
    ]


def test_facts_of_a_task_carry_its_id_and_ids_of_their_own() -> None:
    recording = Recording()
    task = recording.record.known_task("a", attempts=2)
    task.record("task.accepted")
    task.record("task.waiting", {"waitingFor": "permission", "reason": None})
    task.record("task.started", run_id="a.3")
    task.record("run.status", {"reason": "again"}, run_id="a.3", status="running")
    assert recording.told() == [
        ("task.accepted", {}, {"task_id": "a"}),
        ("task.waiting", {"waitingFor": "permission"}, {"task_id": "a"}),
        ("task.started", {}, {"task_id": "a", "run_id": "a.3"}),
        (
            "run.status",
            {"reason": "again"},
            {"task_id": "a", "run_id": "a.3", "status": "running"},
        ),
    ]


def test_a_known_task_goes_on_counting_its_attempts() -> None:
    recording = Recording()
    run = recording.record.known_task("a", attempts=2).retry()
    run.record("run.status", {"reason": "again"}, status="running")
    assert (run.number, run.run_id) == (3, "a.3")
    assert recording.told()[-1] == (
        "run.status",
        {"reason": "again"},
        {"task_id": "a", "run_id": "a.3", "status": "running"},
    )


def test_a_subtask_names_its_parent_and_its_root() -> None:
    recording = Recording()
    leaf = recording.record.task("All").subtask("Part").subtask("Piece", depends_on=["x"])
    leaf.record("task.started")
    ids = {"parent_task_id": "task-2", "root_task_id": "task-1", "task_id": "task-3"}
    assert recording.told()[1:] == [
        (
            "task.created",
            {"objective": "Part"},
            {"parent_task_id": "task-1", "root_task_id": "task-1", "task_id": "task-2"},
        ),
        ("task.created", {"objective": "Piece", "dependsOn": ["x"]}, ids),
        ("task.started", {}, ids),
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("secret"), "KeyError"),
        (InvalidComponent("no such colour"), "no such colour"),
        (asyncio.CancelledError(), "cancelled"),
        (asyncio.CancelledError("a secret"), "cancelled"),
        (asyncio.CancelledError(EndCause.CANCELLED), "cancelled"),
        (asyncio.CancelledError(EndCause.SERVER_STOPS), "the server stopped"),
    ],
)
def test_an_attempt_records_its_own_end(error: BaseException, reason: str) -> None:
    """Of an error that is not ours only the kind is told: its text may hold anything."""
    recording = Recording()
    task = recording.record.known_task("a", attempts=0)
    with pytest.raises(type(error)), task.attempt():
        raise error
    with task.attempt():
        pass
    with task.attempt() as run:
        run.failed("by hand")
    assert [(name, payload) for name, payload, _ in recording.told()] == [
        ("task.attempt.started", {"attempt": 1}),
        ("task.attempt.failed", {"attempt": 1, "reason": reason}),
        ("task.attempt.started", {"attempt": 2}),
        ("task.attempt.completed", {"attempt": 2}),
        ("task.attempt.started", {"attempt": 3}),
        ("task.attempt.failed", {"attempt": 3, "reason": "by hand"}),
    ]


def test_a_task_and_a_subagent_record_their_own_ends_too() -> None:
    recording = Recording()
    with recording.record.task("Fetch", task_id="a") as task, task.attempt():
        pass
    with (
        pytest.raises(KeyError),
        recording.record.task("Fetch", task_id="b") as other,
        other.attempt(),
        recording.record.subagent(subagent_id="c"),
    ):
        raise KeyError("secret")
    assert [(name, payload.get("reason")) for name, payload, _ in recording.told()] == [
        ("task.created", None),
        ("task.attempt.started", None),
        ("task.attempt.completed", None),
        ("task.completed", None),
        ("task.created", None),
        ("task.attempt.started", None),
        ("subagent.spawned", None),
        ("subagent.failed", "KeyError"),
        ("task.attempt.failed", "KeyError"),
        ("task.failed", "KeyError"),
    ]


def test_an_attempt_that_outlives_its_turn_hides_no_error() -> None:
    recording = Recording()
    with pytest.raises(KeyError), recording.record.known_task("a", attempts=0).attempt():
        recording.turn_is_lost()


def test_a_task_without_an_objective_is_none() -> None:
    recording = Recording()
    with pytest.raises(ProfileViolation, match=r"payload\.objective: expected a text"):
        recording.record.task("")
    assert recording.facts() == []


def test_a_subagent_is_followed_by_its_id() -> None:
    recording = Recording()
    subagent = recording.record.subagent("reader", "Read it")
    subagent.record("subagent.status", {"message": "page 1"}, status="running")
    subagent.record("subagent.input", {"text": "faster"})
    subagent.completed(["done"])
    subagent.failed("lost")
    subagent.record("subagent.closed", {"reason": "no longer needed"})
    ids = {"subagent_id": "subagent-1"}
    assert recording.told() == [
        ("subagent.spawned", {"name": "reader", "objective": "Read it"}, ids),
        ("subagent.status", {"message": "page 1"}, {**ids, "status": "running"}),
        ("subagent.input", {"text": "faster"}, ids),
        ("subagent.completed", {"outputs": ["done"]}, ids),
        ("subagent.failed", {"reason": "lost"}, ids),
        ("subagent.closed", {"reason": "no longer needed"}, ids),
    ]
    assert recording.record.subagent(subagent_id="mine").id == "mine"


def test_one_failed_item_of_a_job_is_done_again_alone() -> None:
    """ledger.md 6."""
    recording = Recording()
    job = recording.record.job("import", 2)
    job.record("job.started")
    with job.item("a"):
        pass
    with pytest.raises(KeyError), job.item("b"):
        raise KeyError("secret")
    job.record("job.progress", {"done": 1, "total": 2, "message": "b once more"})
    job.item("b").completed([3])
    job.item("c").failed("bad row", retryable=False)
    job.completed(2, 1)
    job.failed("gave up")
    job.record("job.cancelled", {"reason": "user"})
    told = recording.told()
    assert {ids["job_id"] for _, _, ids in told} == {"job-1"}
    assert [(name, payload, ids.get("job_item_id")) for name, payload, ids in told] == [
        ("job.created", {"name": "import", "total": 2}, None),
        ("job.started", {}, None),
        ("job.item.started", {"attempt": 1}, "a"),
        ("job.item.completed", {"attempt": 1}, "a"),
        ("job.item.started", {"attempt": 1}, "b"),
        ("job.item.failed", {"attempt": 1, "reason": "KeyError"}, "b"),
        ("job.progress", {"done": 1, "total": 2, "message": "b once more"}, None),
        ("job.item.started", {"attempt": 2}, "b"),
        ("job.item.completed", {"attempt": 2, "outputs": [3]}, "b"),
        ("job.item.started", {"attempt": 1}, "c"),
        ("job.item.failed", {"attempt": 1, "reason": "bad row", "retryable": False}, "c"),
        ("job.completed", {"done": 2, "failed": 1}, None),
        ("job.failed", {"reason": "gave up"}, None),
        ("job.cancelled", {"reason": "user"}, None),
    ]


def test_an_item_that_outlives_its_turn_hides_no_error() -> None:
    recording = Recording()
    job = recording.record.job(job_id="mine")
    with pytest.raises(KeyError), job.item("a"):
        recording.turn_is_lost()
    assert job.id == "mine"


def test_an_item_that_was_ended_by_hand_ends_once() -> None:
    recording = Recording()
    with recording.record.job().item("a") as item:
        item.completed()
    assert [name for name, _, _ in recording.told()].count("job.item.completed") == 1


def test_a_request_its_cost_and_its_end_carry_one_id() -> None:
    recording = Recording()
    request = recording.record.model("large", "acme")
    request.cost(input_tokens=10, output_tokens=2, cached_input_tokens=4)
    request.completed({"input": 10}, "stop")
    request.failed("overloaded", retryable=True)
    ids = {"model_request_id": "model-1"}
    cost = {"model": "large", "inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 4}
    assert recording.told() == [
        ("model.requested", {"model": "large", "provider": "acme"}, ids),
        ("cost.recorded", cost, ids),
        (
            "model.completed",
            {"model": "large", "usage": {"input": 10}, "finishReason": "stop"},
            ids,
        ),
        ("model.failed", {"model": "large", "error": "overloaded", "retryable": True}, ids),
    ]


def test_a_request_that_raises_failed_with_the_kind_of_the_error() -> None:
    recording = Recording()
    with recording.record.model("large") as request:
        request.completed(finish_reason="stop")
    with pytest.raises(KeyError), recording.record.model("large"):
        raise KeyError("secret")
    assert [(name, payload) for name, payload, _ in recording.told()] == [
        ("model.requested", {"model": "large"}),
        ("model.completed", {"model": "large", "finishReason": "stop"}),
        ("model.requested", {"model": "large"}),
        ("model.failed", {"model": "large", "error": "KeyError"}),
    ]


def test_an_amount_without_a_currency_is_refused() -> None:
    recording = Recording()
    request = recording.record.model("m")
    recording.facts()
    with pytest.raises(ProfileViolation, match="amount and currency must both be present or"):
        request.cost(input_tokens=1, output_tokens=1, amount=1.0)
    with pytest.raises(ProfileViolation, match="three capital letters of ISO 4217"):
        request.cost(input_tokens=1, output_tokens=1, amount=1.0, currency="euro")
    assert recording.facts() == []


def test_a_compaction_is_one_from_its_beginning_to_its_end() -> None:
    recording = Recording()
    with recording.record.compaction("nearly full", 900) as compaction:
        compaction.completed(100, "short", through_sequence=40)
    recording.record.compaction().failed("the model refused")
    assert recording.told() == [
        (
            "context.compaction.started",
            {"reason": "nearly full", "tokensBefore": 900},
            {"request_id": "compaction-1"},
        ),
        (
            "context.compaction.completed",
            {"tokensBefore": 900, "tokensAfter": 100, "throughSequence": 40, "summary": "short"},
            {"request_id": "compaction-1"},
        ),
        ("context.compaction.started", {}, {"request_id": "compaction-3"}),
        (
            "context.compaction.failed",
            {"reason": "the model refused"},
            {"request_id": "compaction-3"},
        ),
    ]


def test_a_hook_records_its_own_end() -> None:
    recording = Recording()
    with recording.record.hook("lint", "before write"):
        pass
    with pytest.raises(KeyError), recording.record.hook("lint"):
        raise KeyError("secret")
    with recording.record.hook("guard") as hook:
        hook.completed("deny", 3.0)
    with recording.record.hook("guard") as hook:
        hook.failed("timeout", 4.0)
    with pytest.raises(KeyError), recording.record.hook("late"):
        recording.turn_is_lost()
    told = recording.told()
    assert [(name, payload) for name, payload, _ in told] == [
        ("hook.started", {"hook": "lint", "event": "before write"}),
        ("hook.completed", {"hook": "lint"}),
        ("hook.started", {"hook": "lint"}),
        ("hook.failed", {"hook": "lint", "reason": "KeyError"}),
        ("hook.started", {"hook": "guard"}),
        ("hook.completed", {"hook": "guard", "decision": "deny", "durationMs": 3.0}),
        ("hook.started", {"hook": "guard"}),
        ("hook.failed", {"hook": "guard", "reason": "timeout", "durationMs": 4.0}),
        ("hook.started", {"hook": "late"}),
    ]
    assert [ids["request_id"] for _, _, ids in told[:4]] == ["hook-1", "hook-1", "hook-3", "hook-3"]
