"""What waits for a decision, and who decided."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.models import entities
from tests.audit.models.story import IN_TURN, Story

MOST_DECISIONS = entities.DECISIONS.most[1]
MOST_PENDING = entities.REQUESTS.most[0]
MOST_POLICIES = entities.MOST_POLICIES
MOST_VIOLATIONS = entities.VIOLATIONS.most[1]

CONFIRM = {"id": "q1", "type": "confirm", "props": {"title": "Delete it?", "state": "open"}}


def asked() -> Story:
    story = Story()
    story.start()
    story.in_turn("action.required", {"action_id": "a1"}, component=CONFIRM, surface="main")
    return story


def test_a_question_blocks_its_thread_and_is_pending_with_all_that_tells_it() -> None:
    """ledger.md 6: a tool that needs approval emits `action.required` and waits."""
    story = asked()
    assert story.thread["status"] == "blocked"
    assert story.thread["turns"][0]["status"] == "waiting"
    assert story.thread["pendingRequests"] == [
        {
            "kind": "action",
            "actionId": "a1",
            "threadId": "main",
            "turnId": "t1",
            "prompt": "Delete it?",
            "component": "confirm",
            "componentId": "q1",
            "surface": "main",
            "requestedAt": "2026-01-02T03:00:03.000000Z",
            "firstSequence": 4,
            "lastSequence": 4,
        }
    ]


def test_an_answer_closes_the_question_and_the_turn_runs_on() -> None:
    story = asked()
    story.in_turn("action.resolved", {"action_id": "a1"}, decision="answered", resumes=True)
    assert story.thread["status"] == "running"
    assert story.thread["pendingRequests"] == []
    assert story.state.records.maps["questions"] == {"answered": 1}
    times = story.snapshot["telemetrySummary"]["times"]
    assert times["requestWait"] == {"count": 1, "totalMs": 1000, "maxMs": 1000}


def test_a_question_that_closes_without_an_answer_is_no_answer() -> None:
    story = asked()
    story.in_turn("action.resolved", {"action_id": "a1"}, decision="cancelled", resumes=True)
    assert story.state.records.maps["questions"] == {"unanswered": 1}


def test_after_a_crash_the_question_is_pending_under_the_same_id() -> None:
    """ledger.md 2: a pending action is still pending with the same id."""
    story = asked()
    story.end(reason="interrupted")
    assert story.thread["status"] == "failed"
    (request,) = story.thread["pendingRequests"]
    assert (request["actionId"], request["turnEnded"]) == ("a1", True)


def test_a_turn_that_was_cut_off_while_it_waited_is_no_failure() -> None:
    """It waits until its question is closed; the thread is blocked, and there is no incident."""
    story = asked()
    ids = IN_TURN | {"status": "waiting", "status_reason": "interrupted"}
    story.tell("turn.failed", ids, status="waiting")
    assert (story.thread["status"], story.thread["turns"][0]["status"]) == ("blocked", "waiting")
    assert story.thread["incidents"] == []
    ended = {"decision": "answered", "resumes": False, "ends": "completed"}
    story.in_turn("action.resolved", {"action_id": "a1"}, **ended)
    assert (story.thread["status"], story.thread["turns"][0]["status"]) == ("completed",) * 2
    story.in_turn("action.resolved", {"action_id": "a2"}, **(ended | {"ends": "cancelled"}))
    assert story.thread["turns"][0]["status"] == "completed"


def test_the_end_of_another_turn_says_nothing_about_a_question() -> None:
    story = asked()
    story.tell("turn.completed", IN_TURN | {"turn_id": "t0"}, status="completed")
    assert "turnEnded" not in story.thread["pendingRequests"][0]


def test_an_answer_to_a_question_that_is_not_known_closes_none() -> None:
    story = asked()
    story.in_turn("action.resolved", {"action_id": "other"}, decision="answered", resumes=True)
    assert len(story.thread["pendingRequests"]) == 1


def test_a_permission_and_the_action_that_asks_for_it_are_one_request() -> None:
    story = Story()
    story.start()
    ids = {"request_id": "r1", "tool_call_id": "c1"}
    story.in_turn("permission.requested", ids, tool="shell", reason="it writes")
    story.in_turn(
        "action.required",
        {"request_id": "r1", "action_id": "a1"},
        component=CONFIRM,
        surface="main",
        prompt="May it?",
    )
    (request,) = story.thread["pendingRequests"]
    assert (request["kind"], request["tool"], request["prompt"]) == (
        "permission",
        "shell",
        "May it?",
    )
    assert (request["actionId"], request["requestId"], request["toolCallId"]) == ("a1", "r1", "c1")
    story.in_turn("action.resolved", {"action_id": "a1"}, decision="answered", resumes=True)
    story.in_turn("permission.resolved", {"request_id": "r1"}, tool="shell", decision="allow")
    assert story.thread["pendingRequests"] == []
    assert story.snapshot["permissionSandboxSummary"]["decisionCounts"] == {"allow": 1}


@pytest.mark.parametrize("kind", ["rule", "mode", "hook", "hostPolicy"])
def test_a_denied_permission_says_which_rule_mode_hook_or_host_policy_denied_it(kind: str) -> None:
    """ledger.md 6."""
    story = Story()
    story.start()
    by, ids = {"kind": kind, "name": "no-shell"}, {"request_id": "r1"}
    story.in_turn("permission.evaluated", ids, tool="shell", decision="deny", decidedBy=by)
    summary = story.snapshot["permissionSandboxSummary"]
    (denial,) = summary["denials"]
    assert (denial["tool"], denial["deniedBy"], denial["turnId"]) == ("shell", by, "t1")
    assert summary["decisionCounts"] == {"deny": 1}
    (incident,) = story.thread["incidents"]
    assert (incident["type"], incident["by"]) == ("permission.evaluated", by)


def test_a_person_who_denies_is_named_too() -> None:
    story = Story()
    by = {"kind": "person", "name": "user"}
    ids = {"request_id": "r1"}
    story.in_turn("permission.requested", ids, tool="shell")
    story.in_turn("permission.resolved", ids, tool="shell", decision="deny", deniedBy=by)
    (denial,) = story.snapshot["permissionSandboxSummary"]["denials"]
    assert denial["deniedBy"] == by


def test_a_denial_that_names_nobody_says_unknown() -> None:
    story = Story()
    story.in_turn("permission.resolved", {"request_id": "r1"}, tool="shell", decision="deny")
    assert story.snapshot["permissionSandboxSummary"]["denials"][0]["deniedBy"] == "unknown"


def test_a_decision_that_is_no_word_of_the_profile_counts_as_unknown() -> None:
    story = Story()
    story.in_turn("permission.resolved", {"request_id": "r1"}, tool="shell", decision="perhaps")
    story.in_turn("permission.resolved", {"request_id": "r2"}, tool="shell")
    assert story.snapshot["permissionSandboxSummary"]["decisionCounts"] == {"unknown": 2}


def test_an_approval_that_is_forwarded_is_pending_with_whom_it_went_to() -> None:
    story = Story()
    story.in_turn("permission.requested", {"request_id": "r1"}, tool="shell")
    told = {"request_id": "r1", "channel_id": "phone"}
    story.tell("channel.permission_forwarded", told, tool="shell")
    story.tell("channel.permission_forwarded", told | {"request_id": "other"}, tool="shell")
    (request,) = story.snapshot["permissionSandboxSummary"]["pendingApprovals"]
    assert request["forwardedTo"] == "phone"


def test_the_sandbox_is_the_one_that_was_applied_last_and_its_violations_are_kept() -> None:
    story = Story()
    story.in_turn("sandbox.applied", sandbox="loose")
    story.in_turn("sandbox.applied", sandbox="box", mode="strict", network=False, writable=["/w"])
    told: dict[str, Any] = {"sandbox": "box", "operation": "write", "target": "/etc"}
    story.in_turn("sandbox.violation", {"tool_call_id": "c1"}, **told)
    summary = story.snapshot["permissionSandboxSummary"]
    assert summary["sandbox"] == {
        "sandbox": "box",
        "mode": "strict",
        "network": False,
        "writable": ["/w"],
        "turnId": "t1",
        "sequence": 3,
    }
    (violation,) = summary["violations"]
    assert violation["operation"] == "write"
    assert violation["toolCallId"] == "c1"


def test_policies_and_hooks_are_told_as_they_stand() -> None:
    story = Story()
    story.tell("policy.changed", policy="permissionMode", value="ask")
    story.tell("policy.changed", policy="permissionMode", value="plan", previous="ask")
    story.tell("policy.changed", value="nameless")
    story.in_turn("hook.started", {"request_id": "r"}, hook="lint")
    story.in_turn("hook.failed", {"request_id": "r"}, hook="lint", reason="no")
    summary = story.snapshot["permissionSandboxSummary"]
    assert summary["permissionMode"] == "plan"
    assert summary["policies"] == {"permissionMode": "plan"}
    assert summary["hooks"] == {"started": 1, "failed": 1}


def test_what_is_kept_of_each_is_bounded() -> None:
    story = Story()
    for number in range(120):
        ids = {"request_id": f"r{number}", "action_id": f"a{number}"}
        story.in_turn("permission.evaluated", ids, tool="x", decision="allow")
        story.in_turn("action.required", ids, component=CONFIRM, surface="main")
        story.in_turn("sandbox.violation", sandbox="box", operation="write")
        story.tell("policy.changed", policy=f"p{number}", value=number)
    summary = story.snapshot["permissionSandboxSummary"]
    assert len(story.thread["pendingRequests"]) == MOST_PENDING
    assert len(summary["decisions"]) == MOST_DECISIONS
    assert summary["olderDecisions"] == 120 - MOST_DECISIONS
    assert len(summary["violations"]) == MOST_VIOLATIONS
    assert summary["olderViolations"] == 120 - MOST_VIOLATIONS
    assert len(summary["policies"]) == MOST_POLICIES
