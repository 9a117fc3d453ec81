"""`Approval`: the one input that may run, after a person has answered.

The facts hold only a digest of the input. The digest is salted if the input holds a secret, because
a short secret could be guessed from a plain digest.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final, Literal, TypedDict

import msgspec
from msgspec import Struct

from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import encoded, json_text
from arp.session.approval import ApprovalAnswer

SALT_BYTES: Final = 16
"""Length of the salt of a digest. There are too many values to try."""


class Approval(Struct, frozen=True):
    """Outcome of a question for permission, with the input that it is about."""

    decision: Literal["allow", "deny", "expired"]
    input: str
    """The input as JSON, secrets included: what was approved, or what was shown."""
    digest: str
    """Digest of `input`, as facts and renderers hold it; see `digest_of`."""
    salt: bytes = b""
    """Salt of the digest; neither facts nor renderers hold it."""
    scope: Literal["once", "session"] | None = None
    """Extent of the approval; `None` if there is none."""
    edited: bool = False
    """Whether the person has changed the input."""
    reason: str = ""
    """Reason of a refusal, if it is known."""

    def __bool__(self) -> bool:
        """Return `allowed`, so that `if await tool.ask_permission(…)` is right."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the tool may run."""
        return self.decision == "allow"

    @property
    def args(self) -> Json:
        """The input, decoded; a new copy each time."""
        return msgspec.json.decode(self.input)

    @property
    def updated_input(self) -> JsonObject | None:
        """The input if the person changed it, else `None`; a new copy each time."""
        changed: JsonObject | None = self.args if self.edited else None
        return changed

    def covers(self, value: Json) -> bool:
        """Return whether exactly this input may run.

        A process that runs the input for another one compares it here right before it runs it.

        Args:
            value: The input, or its JSON as a string.
        """
        if isinstance(value, str):
            return self.allowed and json_text(value) == self.input
        return self.allowed and json_text(value) == encoded(self.args).decode()

    @classmethod
    def undecided(cls, text: str, hides: Callable[[str], bool]) -> Approval:
        """Return the approval of an input before its answer: it allows nothing.

        Args:
            text: The input as JSON.
            hides: Returns whether a text has a secret, so that its digest needs a salt.
        """
        salt = secrets.token_bytes(SALT_BYTES) if hides(text) else b""
        return cls("expired", text, digest_of(text, salt), salt)

    def decided(self, answer: ApprovalAnswer | None, hides: Callable[[str], bool]) -> Approval:
        """Return the approval that an answer gives to this undecided one.

        Args:
            answer: The accepted answer; `None` if the question was closed without one.
            hides: As in `undecided`; an edited input has a digest of its own.
        """
        if answer is None:
            return msgspec.structs.replace(self, reason="nobody answered in time")
        if not answer.allows:
            return msgspec.structs.replace(self, decision="deny", reason=answer.reason)
        approval, updated = self, answer.updated_input
        # An input that comes back unchanged is not an edit.
        is_edited = updated is not None and encoded(updated) != encoded(self.args)
        if is_edited:
            approval = Approval.undecided(encoded(updated).decode(), hides)
        return msgspec.structs.replace(
            approval, decision="allow", scope=answer.scope, edited=is_edited
        )

    def refused(self, reason: str) -> Approval:
        """Return a denial instead of this approval."""
        return msgspec.structs.replace(self, decision="deny", scope=None, reason=reason)


class RecheckResult(Struct, frozen=True):
    """Result of the check that follows a person's approval, before the approval counts."""

    refusal: str = ""
    """Reason to reject the approval if the files differ from what was shown; otherwise empty."""
    files: list[JsonObject] | None = None
    """Files as they are now, for the ledger, if they differ from those that were shown."""


SecondLook = RecheckResult
"""Earlier name of `RecheckResult`, which `arp.api` exports."""


class PermissionOptions(TypedDict, total=False):
    """Options of a question for permission; `None` means the default."""

    reason: str | None
    """Reason for the question, for the ledger."""
    session_rule: str | None
    """Rule that a person may allow for the whole session, in words that they read.

    The input has to be covered by the rule. A later question with the same rule for the same tool
    is allowed without asking. Absent: a person can allow only this input, once."""
    keeps_grant: bool
    """`False` if the caller stores the grant itself; then every question is asked."""
    editable: bool
    """Whether the person may change the input. Ignored if the input hides secrets: a person cannot
    approve what is not shown."""
    timeout_s: float | None
    """Seconds until the question expires on all renderers; absent: at the end of the turn."""
    files: list[JsonObject] | None
    """Files that the input names, for the ledger: `path`, `bytes`, `sha256`."""
    recheck: Callable[[Approval], Awaitable[RecheckResult]] | None
    """Check that runs after a person's approval and before it counts: what the input refers to may
    have changed. `session_rule` then requires `keeps_grant=False`, because a grant would skip the
    check."""
    message: str | None
    """Text of the question; see `turn.confirm`, also for the options below."""
    confirm_label: str | None
    deny_label: str | None
    destructive: bool | None


def digest_of(text: str, salt: bytes = b"") -> str:
    """Return the SHA-256 of a salt and an input as JSON text (UTF-8), in hex."""
    return sha256(salt + text.encode()).hexdigest()
