"""What went wrong, and what is worth knowing besides."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.models import entities
from tests.audit.models.story import Story

MOST_DIAGNOSTICS = entities.DIAGNOSTICS.most[1]
MOST_INCIDENTS = entities.INCIDENTS.most[1]


def lines(story: Story, name: str) -> list[tuple[str, str | None]]:
    return [(line["type"], line.get("message")) for line in story.snapshot[name]]


@pytest.mark.parametrize(
    ("type_name", "ids", "payload", "message"),
    [
        ("runtime.error", {}, {"error": "it broke", "code": 18, "retryable": False}, "it broke"),
        ("model.failed", {"model_request_id": "m"}, {"model": "b", "error": "no"}, "no"),
        ("process.failed", {"process_id": "p"}, {"reason": "exit 1"}, "exit 1"),
        ("sandbox.violation", {}, {"sandbox": "box", "operation": "write"}, "write"),
        ("hook.failed", {"request_id": "r"}, {"hook": "lint", "reason": "timeout"}, "timeout"),
        ("routing.not_possible", {}, {"reason": "no model"}, "no model"),
        ("rate_limit.hit", {}, {"limit": "rpm", "retryAfterS": 2}, "rpm"),
        ("quota.blocked", {}, {"quota": "tokens", "remaining": 0}, "tokens"),
        ("task.lost", {"task_id": "k"}, {"reason": "worker gone"}, "worker gone"),
        ("job.item.failed", {"job_id": "j", "job_item_id": "i"}, {"reason": "row 3"}, "row 3"),
    ],
)
def test_what_goes_wrong_is_an_incident_that_says_what_and_where(
    type_name: str, ids: dict[str, Any], payload: dict[str, Any], message: str
) -> None:
    story = Story()
    story.in_turn(type_name, ids, **payload)
    (incident,) = story.snapshot["incidents"]
    assert (incident["type"], incident["message"]) == (type_name, message)
    assert (incident["turnId"], incident["firstSequence"]) == ("t1", 2)
    assert story.snapshot["diagnostics"] == []


def test_an_error_is_told_with_its_code() -> None:
    story = Story()
    story.in_turn("runtime.error", error="busy", code=17, retryable=True)
    assert story.snapshot["incidents"][0]["code"] == 17


def test_a_turn_that_fails_is_an_incident_and_a_cancel_is_none() -> None:
    story = Story()
    story.start("t1")
    story.end("t1", "cancelled")
    story.start("t2")
    story.end("t2", "interrupted")
    assert lines(story, "incidents") == [("turn.failed", "interrupted")]


def test_permissions_that_are_allowed_and_single_candidates_are_no_incidents() -> None:
    """ledger.md 6: one model candidate is `routing.single_candidate`, not an error."""
    story = Story()
    ids = {"request_id": "r"}
    story.in_turn("permission.evaluated", ids, tool="x", decision="allow")
    story.in_turn("permission.resolved", ids, tool="x", decision="expired")
    story.in_turn("routing.single_candidate", model="small")
    assert lines(story, "incidents") == []
    assert lines(story, "diagnostics") == []


def test_what_is_worth_knowing_is_a_diagnostic() -> None:
    story = Story()
    story.tell("runtime.warning", message="slow disk")
    story.in_turn("quota.low", quota="tokens", remaining=5)
    story.in_turn("routing.fallback.applied", failedModel="a", model="b", reason="overloaded")
    told = {"readModel": "session", "throughSequence": 3, "reason": "damaged"}
    story.tell("snapshot.repaired", **told)
    assert lines(story, "diagnostics") == [
        ("runtime.warning", "slow disk"),
        ("quota.low", "tokens"),
        ("routing.fallback.applied", "overloaded"),
        ("snapshot.repaired", "damaged"),
    ]
    assert lines(story, "incidents") == []


def test_a_thread_tells_its_own_incidents_and_those_of_no_thread() -> None:
    story = Story()
    story.in_turn("runtime.error", error="mine", code=1, retryable=False)
    told = {"error": "another's", "code": 1, "retryable": False}
    story.tell("runtime.error", {"thread_id": "side", "turn_id": "s1"}, **told)
    story.tell("runtime.error", error="everybody's", code=1, retryable=False)
    assert [one["message"] for one in story.thread["incidents"]] == ["mine", "everybody's"]
    assert len(story.snapshot["incidents"]) == 3


def test_the_last_of_each_are_kept_and_the_others_counted() -> None:
    story = Story()
    for number in range(60):
        story.in_turn("runtime.error", error=f"e{number}", code=1, retryable=False)
        story.tell("runtime.warning", message=f"w{number}")
    kept = story.state.records
    assert lines(story, "incidents")[-1] == ("runtime.error", "e59")
    assert len(lines(story, "incidents")) == MOST_INCIDENTS
    assert kept.older("incidents") == 60 - MOST_INCIDENTS
    assert len(lines(story, "diagnostics")) == MOST_DIAGNOSTICS
    assert kept.older("diagnostics") == 60 - MOST_DIAGNOSTICS
