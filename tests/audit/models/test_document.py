"""What is given out: the session's snapshot and a thread's read model, written out by hand."""

from __future__ import annotations

import pytest

from arp.audit.models.document import STALE_MS
from tests.audit.models.story import IN_TURN, Story, seconds


def test_the_snapshot_of_a_short_session_is_this() -> None:
    """ledger.md 4: what a snapshot requires; what does not apply is left out."""
    story = Story()
    story.start()
    story.in_turn("model.delta", text="Hello")
    story.end()
    turn = {
        "turnId": "t1",
        "status": "completed",
        "inputType": "text",
        "input": "Hi",
        "submittedAt": "2026-01-02T03:00:01.000000Z",
        "startedAt": "2026-01-02T03:00:02.000000Z",
        "firstOutputAt": "2026-01-02T03:00:03.000000Z",
        "endedAt": "2026-01-02T03:00:04.000000Z",
        "outputCharacters": 5,
        "firstSequence": 2,
        "lastSequence": 5,
    }
    assert story.snapshot == {
        "schemaVersion": "lime-profile-0.4.0",
        "runtimeId": "arp",
        "sessionId": "s",
        "updatedAt": "2026-01-02T03:00:04.000000Z",
        "sequence": 5,
        "recoveryCursor": {"epoch": "e1", "sequence": 5},
        "title": "Hi",
        "workflow": "agent",
        "createdAt": "2026-01-02T03:00:00.000000Z",
        "threads": [
            {
                "threadId": "main",
                "status": "completed",
                "turns": [turn],
                "pendingRequests": [],
                "queuedTurns": [],
                "incidents": [],
                "diagnostics": [],
                "toolCalls": [],
                "evidenceSummary": {"status": "not_applicable"},
                "history": {"olderTurns": 0, "before": 2, "through": 5},
                "lastOutcome": {
                    "turnId": "t1",
                    "status": "completed",
                    "sequence": 5,
                    "at": "2026-01-02T03:00:04.000000Z",
                },
            }
        ],
        "tasks": [],
        "taskSummary": {"total": 0, "byStatus": {}, "retries": 0, "older": 0},
        "permissionSandboxSummary": {"status": "not_applicable"},
        "routingLimitSummary": {"status": "not_applicable"},
        "telemetrySummary": {
            "facts": 5,
            "byFamily": {"model": 1, "session": 1, "turn": 3},
            "times": {
                "queueWait": {"count": 1, "totalMs": 1000, "maxMs": 1000},
                "firstOutput": {"count": 1, "totalMs": 1000, "maxMs": 1000},
                "turn": {"count": 1, "totalMs": 2000, "maxMs": 2000},
            },
        },
        "evidenceSummary": {"status": "not_applicable"},
        "evidenceRefs": [],
        "benchmarkSummary": {"status": "not_applicable"},
        "incidents": [],
        "diagnostics": [],
    }


def test_a_thread_is_told_with_the_session_that_it_is_of() -> None:
    story = Story()
    story.start()
    thread = story.thread
    assert (thread["sessionId"], thread["runtimeId"], thread["sequence"]) == ("s", "arp", 3)
    assert thread["updatedAt"] == "2026-01-02T03:00:02.000000Z"
    assert thread["permissionSandboxSummary"] == {"status": "not_applicable"}
    assert thread["routingLimitSummary"] == {"status": "not_applicable"}


def test_a_session_without_a_thread_has_one_that_is_not_known() -> None:
    story = Story()
    (thread,) = story.snapshot["threads"]
    assert (thread["threadId"], thread["status"]) == ("unavailable", "idle")
    lone = story.model.thread()
    assert lone is not None
    assert lone["threadId"] == "unavailable"


def test_a_thread_is_known_as_soon_as_any_fact_names_it() -> None:
    story = Story()
    story.in_turn("permission.requested", {"request_id": "r1"}, tool="shell")
    assert [one["threadId"] for one in story.snapshot["threads"]] == ["main"]
    assert len(story.thread["pendingRequests"]) == 1


@pytest.mark.parametrize(
    ("after_s", "status"),
    [(0, "running"), (STALE_MS / 1000, "running"), (STALE_MS / 1000 + 1, "stale")],
)
def test_a_turn_that_was_long_silent_is_stale(after_s: float, status: str) -> None:
    story = Story()
    story.start()
    now = seconds(2 + after_s)
    thread = story.model.thread("main", now)
    assert thread is not None
    assert thread["status"] == status
    assert story.model.snapshot(now)["threads"][0]["status"] == status
    assert story.thread["status"] == "running"


def test_a_turn_that_waits_for_a_person_is_blocked_however_long_it_takes() -> None:
    story = Story()
    story.start()
    story.in_turn("permission.requested", {"request_id": "r1"}, tool="shell")
    thread = story.model.thread("main", seconds(1_000_000))
    assert thread is not None
    assert thread["status"] == "blocked"


def test_only_a_request_of_the_active_turn_blocks_it() -> None:
    story = Story()
    story.start("t1")
    story.in_turn("permission.requested", {"request_id": "r1"}, tool="shell")
    story.end("t1", "interrupted")
    story.start("t2")
    assert story.thread["status"] == "running"
    assert len(story.thread["pendingRequests"]) == 1


def test_a_queued_turn_of_which_nothing_else_is_known_is_told_by_its_id() -> None:
    story = Story()
    story.tell("queue.changed", {"thread_id": "main"}, queued=["t8", "t9"])
    assert story.thread["queuedTurns"] == [
        {"turnId": "t8", "position": 1},
        {"turnId": "t9", "position": 2},
    ]
    assert story.thread["status"] == "queued"


def test_the_title_is_what_was_given_or_what_was_said_first() -> None:
    story = Story()
    assert "title" not in story.snapshot
    told = {"input_type": "action", "data": {"action": "go"}}
    story.tell("turn.submitted", IN_TURN | {"turn_id": "t0"}, input=told)
    story.submit("t1", "  Show\nme the sales  ")
    story.submit("t2", "And the costs")
    assert story.snapshot["title"] == "Show me the sales"
    story.tell("session.updated", title="Sales")
    story.tell("session.updated")
    assert story.snapshot["title"] == "Sales"


def test_a_session_tells_to_whom_it_belongs() -> None:
    story = Story(created=False)
    story.tell("session.created", epoch="e7", workflow="w", owner="ann", title="Given")
    snapshot = story.snapshot
    assert (snapshot["owner"], snapshot["workflow"], snapshot["title"]) == ("ann", "w", "Given")
    assert snapshot["recoveryCursor"] == {"epoch": "e7", "sequence": 1}


def test_facts_of_traces_are_told_by_their_ids() -> None:
    story = Story()
    story.tell("runtime.warning", {"trace_id": "trace1"}, message="slow")
    story.tell("runtime.warning", {"trace_id": "trace1"}, message="slow")
    assert story.snapshot["telemetrySummary"]["traceIds"] == ["trace1"]
