"""Who allowed what, and who did not."""

from __future__ import annotations

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.ledger.payload_fields import AuthorityKind
from tests.record.rig import Recording


@pytest.mark.parametrize("kind", ["rule", "mode", "hook", "hostPolicy", "person"])
def test_a_denied_permission_says_who_denied_it(kind: AuthorityKind) -> None:
    """ledger.md 6: which rule, mode, hook or host policy denied it."""
    recording = Recording()
    permission = recording.record.permission("shell")
    permission.evaluated("deny", kind, "no-network")
    permission.denied(kind, "no-network")
    by = {"kind": kind, "name": "no-network"}
    ids = {"request_id": "permission-1"}
    assert recording.told() == [
        ("permission.evaluated", {"tool": "shell", "decision": "deny", "decidedBy": by}, ids),
        ("permission.resolved", {"tool": "shell", "decision": "deny", "deniedBy": by}, ids),
    ]


def test_a_permission_that_is_asked_for_is_allowed_or_stays_unanswered() -> None:
    recording = Recording()
    permission = recording.record.permission("shell", "r")
    permission.requested("it writes")
    permission.allowed()
    permission.unanswered("cancelled")
    permission.unanswered("expired")
    ids = {"request_id": "r"}
    assert recording.told() == [
        ("permission.requested", {"tool": "shell", "reason": "it writes"}, ids),
        ("permission.resolved", {"tool": "shell", "decision": "allow"}, ids),
        ("permission.resolved", {"tool": "shell", "decision": "cancelled"}, ids),
        ("permission.resolved", {"tool": "shell", "decision": "expired"}, ids),
    ]


@pytest.mark.parametrize("payload", [{"decision": "deny"}, {"decision": "allow", "deniedBy": 1}])
def test_a_denial_by_nobody_and_an_approval_with_one_are_refused(
    payload: dict[str, object],
) -> None:
    recording = Recording()
    if "deniedBy" in payload:
        payload["deniedBy"] = {"kind": "rule", "name": "x"}
    with pytest.raises(ProfileViolation, match="deniedBy must be present if and only if decision"):
        recording.record("permission.resolved", {"tool": "x", **payload}, request_id="r")


def test_two_uses_of_a_tool_are_two_requests() -> None:
    recording = Recording()
    one, other = recording.record.permission("shell"), recording.record.permission("shell")
    other.allowed()
    one.allowed()
    one.allowed()
    ids = [ids["request_id"] for _, _, ids in recording.told()]
    assert ids == ["permission-1", "permission-2", "permission-2"]
