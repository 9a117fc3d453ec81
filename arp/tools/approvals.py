"""Who is asked before the Tool Agent does something, and what they may answer.

The base knows only this interface. `desk` asks in a turn of a session, so that the question is on
every screen; tests and operators who allow everything have `AllowAll`, and where nobody can be
asked `DenyAll` says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct, field

from arp.protocol.json_value import JsonObject


class ApprovalRequest(Struct, frozen=True):
    """What is asked."""

    tool: str
    """Whose call it is: one of the ten tools, or `budget`."""
    title: str
    """The question, in one line."""
    input: JsonObject
    """All of what will happen if it is allowed: what was shown is what runs."""
    rule: str
    """The rule that wants a person asked."""
    message: str = ""
    """What a person has to know besides."""
    session_rule: str = ""
    """What may be allowed for the rest of the task; empty: this one call alone."""
    files: list[JsonObject] = field(default_factory=list)
    """Files that will run: `path`, `bytes`, `sha256`."""


class ApprovalAnswer(Struct, frozen=True):
    """What a person said."""

    allowed: bool
    reason: str = ""
    """Why not, if they told it."""
    for_task: bool = False
    """Whether they allowed `session_rule` too."""


Recheck = Callable[[], Awaitable[str]]
"""Called with a yes before it counts; returns why it does not count, or an empty text."""


class Approver(Protocol):
    """Asks a person."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Ask, and return the answer; nobody there is a no.

        Cancel: Safe; the question is withdrawn.
        """


class AllowAll:
    """The operator's settings say that nobody is asked (`approve_builds` is false)."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Return a yes."""
        refusal = await recheck() if recheck is not None else ""
        return ApprovalAnswer(not refusal, refusal)


class DenyAll:
    """Nobody can be asked."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Return a no that says why."""
        return ApprovalAnswer(False, "nobody is there who could approve it")
