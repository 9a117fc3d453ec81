"""An approval is for exactly one input: the one that was shown, or the edited one."""

from __future__ import annotations

from hashlib import sha256

import pytest

from arp.session.approval import ApprovalAnswer
from arp.turn.approval.approval import Approval, digest_of
from arp.turn.approval.file_binding import FileBinding

INPUT = '{"command":"ls"}'
PLAIN = Approval.undecided(INPUT, lambda _: False)


def secret(text: str) -> bool:
    return "token" in text


def test_undecided_approval_allows_nothing() -> None:
    assert not PLAIN
    assert (PLAIN.decision, PLAIN.scope, PLAIN.input) == ("expired", None, INPUT)
    assert not PLAIN.covers(INPUT)
    assert PLAIN.digest == sha256(INPUT.encode()).hexdigest()


def test_digest_of_a_secret_cannot_be_tried() -> None:
    one, other = (Approval.undecided('"token"', secret) for _ in range(2))
    assert one.digest != other.digest
    assert one.digest == digest_of('"token"', one.salt)


@pytest.mark.parametrize("updated", [None, {"command": "ls"}])
def test_yes_is_for_the_input_that_was_shown(updated: dict[str, str] | None) -> None:
    answer = ApprovalAnswer(True, "session", updated_input=updated)
    approval = PLAIN.decided(answer, secret)
    assert approval
    assert (approval.scope, approval.edited, approval.digest) == ("session", False, PLAIN.digest)
    assert approval.covers({"command": "ls"})
    assert not approval.covers({"command": "rm"})


def test_edited_input_has_a_digest_and_a_salt_of_its_own() -> None:
    answer = ApprovalAnswer(True, updated_input={"command": "echo token"})
    approval = PLAIN.decided(answer, secret)
    assert approval.edited
    assert approval.updated_input == {"command": "echo token"}
    assert approval.salt
    assert approval.digest == digest_of(approval.input, approval.salt)
    assert not approval.covers(INPUT)


@pytest.mark.parametrize(
    ("answer", "decision", "reason"),
    [
        (None, "expired", "nobody answered in time"),
        (ApprovalAnswer(False, "session", "too risky"), "deny", "too risky"),
        (ApprovalAnswer(False, updated_input={"command": "rm"}), "deny", ""),
    ],
)
def test_anything_but_a_yes_allows_nothing(
    answer: ApprovalAnswer | None, decision: str, reason: str
) -> None:
    approval = PLAIN.decided(answer, secret)
    assert (approval.decision, approval.reason, approval.scope) == (decision, reason, None)
    assert not approval.covers(INPUT)
    assert approval.digest == PLAIN.digest


def test_refusal_after_a_yes_allows_nothing() -> None:
    refused = PLAIN.decided(ApprovalAnswer(True, "session"), secret).refused("it changed")
    assert (refused.decision, refused.scope, refused.reason) == ("deny", None, "it changed")
    assert not refused.covers(INPUT)


async def test_input_that_changed_after_it_was_shown_is_refused() -> None:
    """Also where no files are looked up, because they are on another machine."""
    tool_input = {"command": "ls"}
    binding = FileBinding(tool_input, "", secret, is_command=True)
    assert await binding.look() == []
    approval = PLAIN.decided(ApprovalAnswer(True), secret)
    assert not (await binding.recheck(approval)).refusal
    tool_input["command"] = "rm"
    refusal = (await binding.recheck(approval)).refusal
    assert (
        refusal
        == binding.refusal
        == "the input changed after it was shown, so it was not run; ask again"
    )
