"""`Workplace`: where a task is carried out, visible to people who can answer its questions.

The other modules use only this interface. `TurnPlace` (`turn_place`) is a turn of a session: its
tools, questions and facts are on every screen. `Headless` is for programs without sessions: nothing
is shown, and the operator's settings answer each question.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Literal, Protocol, Unpack

from msgspec import Struct

from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import json_text
from arp.turn.approval.approval import Approval, PermissionOptions, digest_of


class ProcessRun(Struct, frozen=True):
    """Process that ran for a call."""

    command: str
    cwd: str
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    sandbox: str = ""
    """Name of the sandbox; empty if there was none."""


NO_PERSON: Final = "no person is available to approve it"
"""Reason of the denial if no person can be asked."""


class WorkCall(Protocol):
    """Tool call in a workplace."""

    def progress(self, text: str) -> None:
        """Show the progress of the call."""

    def result(self, value: Json) -> None:
        """Show the result of the call."""

    async def ran(self, run: ProcessRun) -> None:
        """Record a process that ran for the call."""

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        """Ask a person for approval; if no person can answer, the answer is no.

        The session does not remember the answer. If the answer allows everything that
        `session_rule` describes, the caller remembers that for its task.

        Args:
            title: Question in one line.
            rule: Name of the rule that requires a person's approval.
            input: Complete description of the action: exactly what is shown will run.
            options: See `ToolCall.ask_permission`.

        Cancel: Safe; the question is withdrawn.
        """


class Workplace(Protocol):
    """Place where a task is carried out."""

    @property
    def session_id(self) -> str:
        """Id of the session that shows questions; empty if there is none."""

    @property
    def turn_id(self) -> str:
        """Id of the turn in that session; empty if there is none."""

    async def say(self, text: str) -> None:
        """Show output of the coding agent."""

    def think(self, text: str) -> None:
        """Show reasoning of the coding agent."""

    def call(self, name: str, args: JsonObject) -> AbstractAsyncContextManager[WorkCall]:
        """Show a tool call and its end; an exception in the block is shown as its failure."""

    def cost(self, model: str, amount_usd: float) -> None:
        """Record a cost of the coding agent."""


class Headless:
    """Workplace that shows nothing.

    Args:
        allows: Whether each question is answered with yes.
    """

    session_id = ""
    turn_id = ""

    def __init__(self, allows: bool) -> None:
        self._allows = allows

    async def say(self, text: str) -> None:
        """Do nothing."""

    def think(self, text: str) -> None:
        """Do nothing."""

    def cost(self, model: str, amount_usd: float) -> None:
        """Do nothing."""

    @asynccontextmanager
    async def call(self, name: str, args: JsonObject) -> AsyncIterator[WorkCall]:
        """Yield a call that is not shown."""
        yield _UnseenCall(self._allows)


class _UnseenCall:
    """Call that is not shown."""

    def __init__(self, allows: bool) -> None:
        self._allows = allows

    def progress(self, text: str) -> None:
        """Do nothing."""

    def result(self, value: Json) -> None:
        """Do nothing."""

    async def ran(self, run: ProcessRun) -> None:
        """Do nothing."""

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        """Return the answer that follows from the operator's settings."""
        text = json_text(input)
        digest = digest_of(text)
        if not self._allows:
            return Approval("deny", text, digest, reason=NO_PERSON)
        scope: Literal["once", "session"] = "session" if options.get("session_rule") else "once"
        approval = Approval("allow", text, digest, scope=scope)
        recheck = options.get("recheck")
        refusal = (await recheck(approval)).refusal if recheck is not None else ""
        return approval.refused(refusal) if refusal else approval
