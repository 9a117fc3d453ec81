"""A task, its attempts, and the tasks that it is made of."""

from __future__ import annotations

import asyncio

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.ledger.payload_fields import Delivery
from arp.protocol.errors import InvalidComponent
from tests.record.rig import Notes


def test_a_retry_keeps_the_task_and_the_failed_attempt() -> None:
    """ledger.md 6: a retry keeps the `taskId` and the failed attempt."""
    notes = Notes()
    task = notes.record.task("Fetch", task_id="fetch", depends_on=["log-in"], detail={"n": 1})
    task.attempt("run-a").failed("timeout", retryable=True)
    task.retry("once more").completed([7])
    task.completed([7], artifacts=["f"], evidence_refs=["e"], delivery=Delivery("delivered", "me"))
    assert notes.told() == [
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
    notes = Notes()
    task = notes.record.known_task("a", attempts=1, run_id="a.1")
    task.progress(0.5)
    task.retry(run_id="again").failed("no luck")
    task.failed("gave up")
    assert [(told[0], told[2].get("run_id")) for told in notes.told()] == [
        ("task.progress", "a.1"),
        ("task.retrying", "again"),
        ("task.attempt.started", "again"),
        ("task.attempt.failed", "again"),
        ("task.failed", "again"),
    ]


def test_everything_that_may_become_of_a_task_has_its_fact() -> None:
    notes = Notes()
    task = notes.record.known_task("a", attempts=2)
    task.accepted()
    task.queued(1, "busy")
    task.started()
    task.updated("Other", {"n": 2})
    task.progress(0.5, done=1, total=2, message="half")
    task.waiting("permission")
    task.blocked("no disk", ["b"])
    task.paused()
    task.resumed("go on")
    task.delegated("subagent-1")
    task.depends_on("b", "c")
    task.profile(kind="code", size="large")
    task.cancel_requested("user")
    task.cancelled()
    task.timed_out(30.0)
    task.failed("gave up")
    task.lost("the machine is gone")
    task.archived()
    told = notes.told()
    assert {ids["task_id"] for _, _, ids in told} == {"a"}
    assert [(name.removeprefix("task."), payload) for name, payload, _ in told] == [
        ("accepted", {}),
        ("queued", {"position": 1, "reason": "busy"}),
        ("started", {}),
        ("updated", {"objective": "Other", "detail": {"n": 2}}),
        ("progress", {"fraction": 0.5, "done": 1, "total": 2, "message": "half"}),
        ("waiting", {"waitingFor": "permission"}),
        ("blocked", {"reason": "no disk", "blockedBy": ["b"]}),
        ("paused", {}),
        ("resumed", {"reason": "go on"}),
        ("delegated", {"to": "subagent-1"}),
        ("dependency.updated", {"dependsOn": ["b", "c"]}),
        ("profile.resolved", {"profile": {"kind": "code", "size": "large"}}),
        ("cancel_requested", {"reason": "user"}),
        ("cancelled", {}),
        ("timed_out", {"timeoutS": 30.0}),
        ("failed", {"reason": "gave up"}),
        ("lost", {"reason": "the machine is gone"}),
        ("archived", {}),
    ]


def test_a_known_task_goes_on_counting_its_attempts() -> None:
    notes = Notes()
    run = notes.record.known_task("a", attempts=2).retry()
    run.status("running", "again")
    assert (run.number, run.run_id) == (3, "a.3")
    assert notes.told()[-1] == (
        "run.status",
        {"reason": "again"},
        {"task_id": "a", "run_id": "a.3", "status": "running"},
    )


def test_a_subtask_names_its_parent_and_its_root() -> None:
    notes = Notes()
    leaf = notes.record.task("All").subtask("Part").subtask("Piece", depends_on=["x"])
    leaf.started()
    ids = {"parent_task_id": "task-2", "root_task_id": "task-1", "task_id": "task-3"}
    assert notes.told()[1:] == [
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
    ],
)
def test_an_attempt_notes_its_own_end(error: BaseException, reason: str) -> None:
    """Of an error that is not ours only the kind is told: its text may hold anything."""
    notes = Notes()
    task = notes.record.known_task("a", attempts=0)
    with pytest.raises(type(error)), task.attempt():
        raise error
    with task.attempt():
        pass
    with task.attempt() as run:
        run.failed("by hand")
    assert [(name, payload) for name, payload, _ in notes.told()] == [
        ("task.attempt.started", {"attempt": 1}),
        ("task.attempt.failed", {"attempt": 1, "reason": reason}),
        ("task.attempt.started", {"attempt": 2}),
        ("task.attempt.completed", {"attempt": 2}),
        ("task.attempt.started", {"attempt": 3}),
        ("task.attempt.failed", {"attempt": 3, "reason": "by hand"}),
    ]


def test_an_attempt_that_outlives_its_turn_hides_no_error() -> None:
    notes = Notes()
    with pytest.raises(KeyError), notes.record.known_task("a", attempts=0).attempt():
        notes.turn_is_lost()


def test_a_task_without_an_objective_is_none() -> None:
    notes = Notes()
    with pytest.raises(ProfileViolation, match=r"payload\.objective: expected a text"):
        notes.record.task("")
    assert notes.facts() == []
