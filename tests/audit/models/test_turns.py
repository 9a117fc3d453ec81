"""Threads and turns: what runs, what waits in line, how the last one ended."""

from __future__ import annotations

import pytest

from arp.audit.models.records import Durations
from arp.audit.models.turns import MOST_TURNS
from arp.session.tracking.threads import MOST_THREADS
from tests.audit.models.story import IN_TURN, Story

SIDE = {"thread_id": "side", "turn_id": "s1"}


def test_a_submitted_turn_waits_in_line_and_then_runs() -> None:
    """ledger.md 6: a submitted turn shows queued before any model output."""
    story = Story()
    story.submit("t1", "Show the sales")
    assert story.thread["status"] == "queued"
    assert story.thread["queuedTurns"] == [
        {
            "turnId": "t1",
            "position": 1,
            "submittedAt": "2026-01-02T03:00:01.000000Z",
            "input": "Show the sales",
        }
    ]
    story.in_turn("turn.started")
    assert story.thread["status"] == "running"
    assert story.thread["activeTurnId"] == "t1"
    assert story.thread["queuedTurns"] == []


@pytest.mark.parametrize(
    ("reason", "status", "told"),
    [
        (None, "completed", None),
        ("failed", "failed", "failed"),
        ("cancelled", "cancelled", "cancelled"),
        ("interrupted", "failed", "interrupted"),
    ],
)
def test_a_thread_stands_as_its_last_turn_ended(
    reason: str | None, status: str, told: str | None
) -> None:
    """ledger.md 2: a cancel is `turn.failed` with statusReason cancelled."""
    story = Story()
    story.start()
    story.end(reason=reason)
    assert story.thread["status"] == status
    assert "activeTurnId" not in story.thread
    (turn,) = story.thread["turns"]
    assert (turn["status"], turn.get("statusReason")) == (status, told)
    outcome = story.thread["lastOutcome"]
    assert (outcome["turnId"], outcome["status"], outcome["sequence"]) == ("t1", status, 4)


def test_the_queue_is_what_queue_changed_says() -> None:
    """ledger.md 6: the queue survives a restart; a turn can be moved to its front."""
    story = Story()
    story.start("t1")
    story.submit("t2")
    story.submit("t3")
    story.tell("queue.changed", {"thread_id": "main"}, queued=["t3", "t2"])
    assert [turn["turnId"] for turn in story.thread["queuedTurns"]] == ["t3", "t2"]
    story.tell("queue.changed", {"thread_id": "main"}, queued="nonsense")
    assert [turn["turnId"] for turn in story.thread["queuedTurns"]] == ["t3", "t2"]


def test_a_turn_that_is_cancelled_in_line_leaves_it_and_the_running_one_runs_on() -> None:
    story = Story()
    story.start("t1")
    story.submit("t2")
    story.end("t2", "cancelled")
    assert story.thread["status"] == "running"
    assert story.thread["activeTurnId"] == "t1"
    assert story.thread["queuedTurns"] == []


def test_a_turn_that_is_asked_to_stop_says_so_until_it_ends() -> None:
    story = Story()
    story.start()
    story.in_turn("run.status", {"status": "cancelling"}, inputId="i1")
    assert story.thread["turns"][0]["status"] == "cancelling"
    assert story.thread["status"] == "running"
    story.end(reason="cancelled")
    story.in_turn("run.status", {"status": "cancelling"})
    assert story.thread["turns"][0]["status"] == "cancelled"


def test_a_turn_counts_what_it_said_thought_and_used() -> None:
    story = Story()
    story.start()
    story.in_turn("model.requested", {"model_request_id": "m"}, model="small")
    story.in_turn("reasoning.delta", text="hm")
    story.in_turn("model.delta", text="Hello ")
    story.in_turn("model.delta", text="world")
    story.in_turn("model.delta", text=["no text"])
    story.in_turn("tool.started", {"step_id": "c", "tool_call_id": "c"}, tool="query")
    (turn,) = story.thread["turns"]
    assert turn["outputCharacters"] == 11
    assert turn["thoughtCharacters"] == 2
    assert turn["toolCalls"] == 1
    assert turn["model"] == "small"
    assert turn["lastSequence"] == 9
    assert turn["firstOutputAt"] == "2026-01-02T03:00:05.000000Z"


def test_times_are_measured_from_submission_to_start_to_first_text_to_end() -> None:
    story = Story()
    story.start()
    story.in_turn("reasoning.delta", text="hm")
    story.in_turn("model.delta", text="Hello")
    story.end()
    threads = story.state.threads
    assert threads.queue_wait == Durations(1, 1000, 1000)
    assert threads.first_output == Durations(1, 2000, 2000)
    assert threads.turn_time == Durations(1, 3000, 3000)


def test_an_error_of_a_turn_is_part_of_its_outcome() -> None:
    story = Story()
    story.start()
    story.in_turn("runtime.error", error="the agent failed", code=18, retryable=False)
    story.end(reason="failed")
    assert story.thread["lastOutcome"]["error"] == "the agent failed"


def test_a_quota_blocks_its_turn_until_it_is_lifted_or_a_model_answers() -> None:
    story = Story()
    story.start()
    story.in_turn("quota.blocked", quota="tokens", remaining=0)
    assert story.thread["status"] == "blocked"
    assert story.thread["turns"][0]["status"] == "waiting"
    story.tell("limit.changed", limit="requests", value=5)
    assert story.thread["status"] == "blocked"
    story.tell("limit.changed", limit="tokens", value=5_000)
    assert story.thread["status"] == "running"
    story.in_turn("quota.blocked", remaining=0)
    assert story.thread["turns"][0]["blockedByQuota"] == "unknown"
    story.in_turn("model.requested", {"model_request_id": "m"}, model="other")
    assert story.thread["status"] == "running"
    story.in_turn("quota.blocked", quota="tokens", remaining=0)
    story.end(reason="failed")
    assert story.thread["status"] == "failed"
    story.in_turn("quota.blocked", quota="tokens", remaining=0)
    assert "blockedByQuota" not in story.thread["turns"][0]


def test_a_thread_says_what_it_was_told_until_a_turn_says_otherwise() -> None:
    story = Story()
    story.tell("thread.started", {"thread_id": "main"}, title="Sales")
    assert (story.thread["status"], story.thread["title"]) == ("idle", "Sales")
    story.tell("thread.updated", {"thread_id": "main", "status": "stale"}, reason="old")
    assert (story.thread["status"], story.thread["title"]) == ("stale", "Sales")
    story.tell("thread.updated", {"thread_id": "main", "status": "dreaming"})
    assert story.thread["status"] == "unknown"
    story.start()
    story.end()
    assert story.thread["status"] == "completed"


def test_facts_of_turns_that_nobody_submitted_are_taken_as_they_come() -> None:
    """A log may begin in the middle: what is not known is left out."""
    story = Story()
    story.tell("turn.started", SIDE)
    story.tell("turn.completed", SIDE | {"turn_id": "s2"}, status="completed")
    side = story.model.thread("side")
    assert side is not None
    assert [(turn["turnId"], turn["status"]) for turn in side["turns"]] == [
        ("s1", "running"),
        ("s2", "completed"),
    ]
    assert side["activeTurnId"] == "s1"


def test_facts_of_turns_that_are_not_kept_change_nothing() -> None:
    story = Story()
    unknown = IN_TURN | {"turn_id": "gone"}
    story.tell("model.delta", unknown, text="late")
    story.tell("reasoning.delta", unknown, text="late")
    story.tell("model.completed", unknown | {"model_request_id": "m"}, model="big")
    story.tell("tool.started", unknown | {"step_id": "c", "tool_call_id": "c"}, tool="query")
    story.tell("runtime.error", unknown, error="late", code=1, retryable=False)
    story.tell("quota.blocked", unknown, quota="tokens", remaining=0)
    story.tell("run.status", unknown | {"status": "cancelling"})
    assert story.thread["turns"] == []
    assert story.thread["status"] == "idle"


def test_a_rollback_marks_the_turns_that_no_longer_count() -> None:
    story = Story()
    for turn_id in ("t1", "t2"):
        story.start(turn_id)
        story.end(turn_id)
    ids = {"thread_id": "main", "request_id": "r"}
    story.tell("history.rollback.completed", ids, toSequence=4, removedTurns=["t2", "t9"])
    assert [turn.get("removed", False) for turn in story.thread["turns"]] == [False, True]


def test_the_recent_turns_are_kept_with_a_cursor_and_the_older_ones_counted() -> None:
    """ledger.md 4: recent window with cursor."""
    story = Story()
    for number in range(MOST_TURNS + 3):
        story.start(f"t{number}")
        story.end(f"t{number}")
    assert len(story.thread["turns"]) == MOST_TURNS
    assert story.thread["turns"][0]["turnId"] == "t3"
    assert story.thread["history"] == {
        "olderTurns": 3,
        "before": 11,
        "through": 1 + 3 * (MOST_TURNS + 3),
    }


def test_of_many_threads_the_one_longest_silent_is_let_go_but_none_that_is_busy() -> None:
    story = Story()
    story.start()
    for number in range(MOST_THREADS):
        story.tell("thread.started", {"thread_id": f"thread{number}"})
    named = [thread["threadId"] for thread in story.snapshot["threads"]]
    assert len(named) == MOST_THREADS
    assert "main" in named
    assert "thread0" not in named
    assert story.state.threads.older == 1


def test_threads_do_not_mix() -> None:
    story = Story()
    story.start()
    story.tell("turn.submitted", SIDE, input={"input_type": "text", "data": {"text": "Aside"}})
    story.tell("turn.started", SIDE)
    story.end()
    side = story.model.thread("side")
    assert side is not None
    assert (side["status"], story.thread["status"]) == ("running", "completed")
    newest = story.model.thread()
    assert newest is not None
    assert newest["threadId"] == "main"
    assert story.model.thread("nowhere") is None


def test_a_turn_that_is_submitted_twice_is_in_line_once() -> None:
    story = Story()
    story.submit("t1")
    story.submit("t1")
    assert [turn["turnId"] for turn in story.thread["queuedTurns"]] == ["t1"]


def test_a_line_belongs_to_the_threads_of_its_turns_and_what_is_none_changes_nothing() -> None:
    story = Story()
    side = {"thread_id": "side"}
    for turn, thread in (("t1", "main"), ("t2", "side"), ("t3", "main")):
        asked = {"input": {"input_type": "text", "data": {"text": turn}}}
        story.tell("turn.submitted", {"thread_id": thread, "turn_id": turn}, **asked)
    story.tell("queue.changed", side, queued=["t3", "t2", "t1", "t9"])
    story.tell("queue.changed", side, queued="t1")
    lines = {
        one["threadId"]: [turn["turnId"] for turn in one["queuedTurns"]]
        for one in story.snapshot["threads"]
    }
    assert lines == {"main": ["t3", "t1"], "side": ["t2", "t9"]}


def test_a_late_answer_ends_the_turn_that_had_asked_and_not_the_one_after_it() -> None:
    """A turn that was cut off while it waited reads as completed; the last outcome is another's."""
    story = Story()
    story.start("t1")
    asked = {"action_id": "a"}
    story.in_turn("action.required", asked, component={"id": "q"}, surface="main")
    ids = IN_TURN | {"status": "waiting", "status_reason": "interrupted"}
    story.tell("turn.failed", ids, status="waiting")
    story.start("t2")
    story.end("t2", reason="failed")
    story.in_turn("action.resolved", asked, decision="answered", ends="completed")
    statuses = {turn["turnId"]: turn["status"] for turn in story.thread["turns"]}
    assert statuses == {"t1": "completed", "t2": "failed"}
    assert story.thread["lastOutcome"]["turnId"] == "t2"
    assert story.thread["lastOutcome"]["status"] == "failed"
