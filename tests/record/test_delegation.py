"""Work that others do: one failed item of a job is done again alone."""

from __future__ import annotations

import pytest

from tests.record.rig import Notes


def test_a_subagent_is_followed_by_its_id() -> None:
    notes = Notes()
    subagent = notes.record.subagent("reader", "Read it")
    subagent.status("running", "page 1")
    subagent.input("faster")
    subagent.completed(["done"])
    subagent.failed("lost")
    subagent.closed("no longer needed")
    ids = {"subagent_id": "subagent-1"}
    assert notes.told() == [
        ("subagent.spawned", {"name": "reader", "objective": "Read it"}, ids),
        ("subagent.status", {"message": "page 1"}, {**ids, "status": "running"}),
        ("subagent.input", {"text": "faster"}, ids),
        ("subagent.completed", {"outputs": ["done"]}, ids),
        ("subagent.failed", {"reason": "lost"}, ids),
        ("subagent.closed", {"reason": "no longer needed"}, ids),
    ]
    assert notes.record.subagent(subagent_id="mine").id == "mine"


def test_one_failed_item_of_a_job_is_done_again_alone() -> None:
    """ledger.md 6."""
    notes = Notes()
    job = notes.record.job("import", 2)
    job.started()
    with job.item("a"):
        pass
    with pytest.raises(KeyError), job.item("b"):
        raise KeyError("secret")
    job.progress(1, 2, "b once more")
    job.item("b").completed([3])
    job.item("c").failed("bad row", retryable=False)
    job.completed(2, 1)
    job.failed("gave up")
    job.cancelled("user")
    told = notes.told()
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
    notes = Notes()
    job = notes.record.job(job_id="mine")
    with pytest.raises(KeyError), job.item("a"):
        notes.turn_is_lost()
    assert job.id == "mine"


def test_an_item_that_was_ended_by_hand_ends_once() -> None:
    notes = Notes()
    with notes.record.job().item("a") as item:
        item.completed()
    assert [name for name, _, _ in notes.told()].count("job.item.completed") == 1
