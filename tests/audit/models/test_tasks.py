"""Tasks: status, attempts, edges, and what a retry keeps."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.models.tasks import MOST_ATTEMPTS, MOST_ENDED, MOST_LINKS, MOST_OPEN
from tests.audit.models.story import Story

TASK = {"task_id": "k1"}


def created() -> Story:
    story = Story()
    story.tell("task.created", TASK, objective="Make a report")
    return story


def task(story: Story, name: str = "k1") -> dict[str, Any]:
    (found,) = [one for one in story.snapshot["tasks"] if one["taskId"] == name]
    return dict(found)


@pytest.mark.parametrize(
    ("type_name", "payload", "status"),
    [
        ("task.accepted", {}, "accepted"),
        ("task.queued", {"position": 3}, "queued"),
        ("task.started", {}, "running"),
        ("task.waiting", {"waitingFor": "input"}, "waiting_input"),
        ("task.waiting", {"waitingFor": "permission"}, "waiting_permission"),
        ("task.waiting", {"waitingFor": "resource"}, "waiting_resource"),
        ("task.waiting", {}, "unknown"),
        ("task.blocked", {"reason": "no key"}, "blocked"),
        ("task.paused", {}, "paused"),
        ("task.resumed", {}, "running"),
        ("task.retrying", {"attempt": 2}, "retrying"),
        ("task.cancel_requested", {}, "cancelling"),
        ("task.cancelled", {}, "cancelled"),
        ("task.timed_out", {"timeoutS": 3}, "timed_out"),
        ("task.failed", {"reason": "no luck"}, "failed"),
        ("task.lost", {"reason": "gone"}, "lost"),
        ("task.completed", {}, "completed"),
        ("task.archived", {}, "archived"),
        ("task.progress", {"fraction": 0.5}, "draft"),
        ("task.updated", {"objective": "Make two"}, "draft"),
        ("task.delegated", {"to": "sub"}, "draft"),
    ],
)
def test_each_fact_of_a_task_puts_it_where_it_belongs(
    type_name: str, payload: dict[str, Any], status: str
) -> None:
    story = created()
    story.tell(type_name, TASK, **payload)
    assert task(story)["status"] == status
    assert story.snapshot["taskSummary"]["byStatus"] == {status: 1}


def test_a_status_that_no_fact_has_is_told_by_run_status() -> None:
    story = created()
    story.tell("run.status", TASK | {"status": "preparing"})
    assert task(story)["status"] == "preparing"
    story.tell("run.status", TASK | {"status": "dreaming"})
    story.tell("run.status", {"status": "stale"})
    assert task(story)["status"] == "preparing"
    story.tell("task.updated", TASK | {"status": "stale"})
    assert task(story)["status"] == "stale"


def test_a_retry_keeps_the_task_and_the_failed_attempt() -> None:
    """ledger.md 6: a retry keeps the `taskId` and the failed attempt."""
    story = created()
    first, second = TASK | {"run_id": "r1"}, TASK | {"run_id": "r2"}
    story.in_turn("task.attempt.started", first, attempt=1)
    assert (task(story)["status"], task(story)["currentRunId"]) == ("running", "r1")
    story.in_turn("task.attempt.failed", first, attempt=1, reason="timeout", retryable=True)
    assert (task(story)["status"], task(story).get("currentRunId")) == ("running", None)
    story.tell("task.failed", TASK, reason="timeout")
    story.tell("task.retrying", TASK, attempt=2)
    story.in_turn("task.attempt.started", second, attempt=2)
    story.in_turn("task.attempt.completed", second, attempt=2, outputs=["report.md"])
    story.tell("task.completed", TASK, outputs=["report.md"])
    told = task(story)
    assert told["status"] == "completed"
    assert [(one["runId"], one["attempt"], one["status"]) for one in told["attempts"]] == [
        ("r1", 1, "failed"),
        ("r2", 2, "completed"),
    ]
    assert told["attempts"][0]["reason"] == "timeout"
    assert told["attempts"][0]["retryable"] is True
    assert story.snapshot["taskSummary"] == {
        "total": 1,
        "byStatus": {"completed": 1},
        "retries": 1,
        "older": 0,
    }


@pytest.mark.parametrize("end", ["cancelled", "timed_out", "lost", "completed", "archived"])
def test_news_about_a_task_that_ended_do_not_open_it_again(end: str) -> None:
    story = created()
    story.tell(f"task.{end}", TASK)
    for name in ("accepted", "queued", "paused", "cancel_requested", "completed"):
        story.tell(f"task.{name}", TASK)
    assert task(story)["status"] == end


@pytest.mark.parametrize("name", ["started", "resumed", "retrying"])
def test_what_begins_a_task_again_leaves_its_end(name: str) -> None:
    story = created()
    story.tell("task.failed", TASK, reason="no luck")
    story.tell(f"task.{name}", TASK)
    assert task(story)["status"] == ("retrying" if name == "retrying" else "running")


def test_a_task_that_ended_can_be_archived() -> None:
    story = created()
    story.tell("task.completed", TASK)
    story.tell("task.archived", TASK)
    assert task(story)["status"] == "archived"


def test_a_task_tells_why_it_stands_where_it_does() -> None:
    story = created()
    story.tell("task.blocked", TASK, reason="no key", blockedBy=["k7"])
    assert task(story)["statusReason"] == "no key"
    assert task(story)["edges"] == {"blockedBy": ["k7"]}
    story.tell("task.started", TASK)
    assert "statusReason" not in task(story)
    assert task(story)["edges"] == {}


def test_a_task_waits_in_line_until_it_starts() -> None:
    story = created()
    story.tell("task.queued", TASK, position=3)
    assert task(story)["position"] == 3
    story.tell("task.started", TASK)
    assert "position" not in task(story)


def test_edges_tell_parent_children_dependencies_and_delegates() -> None:
    story = created()
    child = {"task_id": "k2", "parent_task_id": "k1", "root_task_id": "k1"}
    story.tell("task.created", child, objective="Count", dependsOn=["k0"])
    story.tell("task.dependency.updated", {"task_id": "k2"}, dependsOn=["k0", "k9"])
    story.tell("task.delegated", {"task_id": "k2"}, to="counter")
    story.tell("task.delegated", {"task_id": "k2", "subagent_id": "sub1"})
    story.tell("task.delegated", {"task_id": "k2"})
    assert task(story)["edges"] == {"children": ["k2"]}
    assert task(story, "k2")["edges"] == {
        "parentTaskId": "k1",
        "rootTaskId": "k1",
        "dependsOn": ["k0", "k9"],
        "delegatedTo": ["counter", "sub1"],
    }


def test_a_task_tells_its_progress_and_what_came_of_it() -> None:
    story = created()
    ids = TASK | {"thread_id": "main", "turn_id": "t1"}
    story.tell("task.progress", ids, done=2, total=4, fraction=0.5, message="half")
    story.tell("artifact.changed", TASK | {"artifact_id": "file1"}, name="report.md")
    story.tell("artifact.changed", TASK | {"artifact_id": "file1"}, name="report.md")
    exported = {"kind": "evidence", "state": "exported"}
    story.tell("evidence.changed", TASK | {"evidence_id": "e1"}, **exported)
    story.tell(
        "task.completed",
        TASK,
        outputs=["report.md", {"rows": 3}],
        artifacts=["file2"],
        evidenceRefs=["e2"],
        delivery={"state": "delivered", "to": "ann"},
    )
    told = task(story)
    assert told["progress"] == {"fraction": 0.5, "done": 2, "total": 4, "message": "half"}
    assert told["artifacts"] == [{"artifactId": "file1"}, {"artifactId": "file2"}]
    assert told["evidenceRefs"] == ["e1", "e2"]
    assert told["outputs"] == ["report.md", {"rows": 3}]
    assert told["delivery"] == {"state": "delivered", "to": "ann"}
    assert (told["threadId"], told["turnId"]) == ("main", "t1")


def test_artifacts_and_evidence_of_no_task_or_an_unknown_one_are_left_alone() -> None:
    story = created()
    story.tell("artifact.changed", {"artifact_id": "file1"})
    story.tell("artifact.changed", {"task_id": "other", "artifact_id": "file1"})
    story.tell("artifact.changed", TASK)
    story.tell("evidence.changed", {"evidence_id": "e1"}, kind="evidence", state="exported")
    assert "artifacts" not in task(story)
    assert "evidenceRefs" not in task(story)


def test_a_task_that_is_created_twice_goes_on() -> None:
    story = created()
    story.tell("task.started", TASK)
    story.tell("task.created", TASK, objective="Make a report")
    assert task(story)["status"] == "running"
    assert story.snapshot["taskSummary"]["total"] == 1


def test_what_a_task_asks_of_a_model_is_kept_with_it() -> None:
    story = created()
    story.tell("task.profile.resolved", TASK, profile={"size": "large"})
    assert task(story)["profile"] == {"size": "large"}
    assert story.snapshot["routingLimitSummary"]["taskProfile"] == {"size": "large"}


def test_an_attempt_without_a_beginning_is_kept_and_another_run_is_not_ended() -> None:
    story = created()
    story.in_turn("task.attempt.started", TASK | {"run_id": "r2"}, attempt=2)
    story.in_turn("task.attempt.failed", TASK | {"run_id": "r1"}, attempt=1, reason="late")
    told = task(story)
    assert told["currentRunId"] == "r2"
    assert [one["runId"] for one in told["attempts"]] == ["r2", "r1"]


def test_tasks_that_ended_long_ago_are_counted_and_not_kept() -> None:
    story = Story()
    for number in range(MOST_ENDED + 2):
        ids = {"task_id": f"k{number}"}
        story.tell("task.created", ids, objective="Count")
        story.tell("task.completed", ids)
    story.tell("task.created", {"task_id": "new"}, objective="Go on")
    summary = story.snapshot["taskSummary"]
    assert len(story.snapshot["tasks"]) == MOST_ENDED + 1
    assert summary["total"] == MOST_ENDED + 3
    assert summary["byStatus"] == {"completed": MOST_ENDED + 2, "draft": 1}
    assert summary["older"] == 2


def test_a_task_that_comes_back_is_partial_and_not_counted_twice() -> None:
    story = Story()
    for number in range(MOST_ENDED + 2):
        ids = {"task_id": f"k{number}"}
        story.tell("task.created", ids, objective="Count")
        story.tell("task.completed", ids)
    story.tell("task.archived", {"task_id": "k0"})
    told = task(story, "k0")
    assert (told["partial"], told["status"], told["objective"]) == (True, "archived", "unknown")
    assert story.snapshot["taskSummary"]["total"] == MOST_ENDED + 2


def test_what_is_kept_of_a_task_is_bounded() -> None:
    story = created()
    for number in range(MOST_LINKS + 10):
        ids = TASK | {"run_id": f"r{number}"}
        story.in_turn("task.attempt.failed", ids, attempt=number + 1, reason="no")
        story.tell("task.created", {"task_id": f"c{number}", "parent_task_id": "k1"}, objective="x")
    told = task(story)
    assert len(told["attempts"]) == MOST_ATTEMPTS
    assert told["olderAttempts"] == MOST_LINKS + 10 - MOST_ATTEMPTS
    assert len(told["edges"]["children"]) == MOST_LINKS


def test_open_tasks_are_bounded_too() -> None:
    story = Story()
    for number in range(MOST_OPEN + 5):
        story.tell("task.created", {"task_id": f"k{number}"}, objective="x")
    assert len(story.snapshot["tasks"]) == MOST_OPEN
    assert story.snapshot["taskSummary"]["byStatus"] == {"draft": MOST_OPEN + 5}
