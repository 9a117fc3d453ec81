"""`Workplace`: where a task is carried out, so that people see it and can be asked.

The base knows only this interface. `TurnPlace` (`turn_place`) is a turn of a session: its tools,
questions and facts are on every screen. `Headless` is for programs without sessions: nobody sees
anything, and each question is answered as the operator's settings say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from arp.protocol.json_value import Json, JsonObject


class ApprovalRequest(Struct, frozen=True):
    """A question to a person."""

    title: str
    """The question, in one line."""
    input: JsonObject
    """All of what will happen if it is allowed: what was shown is what runs."""
    rule: str
    """The rule that wants a person asked."""
    message: str = ""
    """What a person has to know besides."""
    task_rule: str = ""
    """What may be allowed for the rest of the task besides; empty: this one call alone."""
    files: list[JsonObject] = field(default_factory=list)
    """Files that can change what runs: `path`, `bytes`, `sha256`; a path that ends with `/` is of
    all that is in a directory."""
    changed: int = 0
    """So many of them, the first ones, are new or have changed since the last question."""


class ApprovalAnswer(Struct, frozen=True):
    """The answer of a person."""

    allowed: bool
    reason: str = ""
    """Why not, if that is known."""
    for_task: bool = False
    """Whether they allowed `task_rule` too."""


class ProcessRun(Struct, frozen=True):
    """A process that ran for a call."""

    command: str
    cwd: str
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    sandbox: str = ""
    """What kept it in; empty: nothing."""


Recheck: TypeAlias = Callable[[], Awaitable[str]]
"""Called with a yes before it counts; returns why it does not count, or an empty text."""


class WorkCall(Protocol):
    """One call of a tool, as it is shown."""

    def progress(self, text: str) -> None:
        """Show its progress."""

    def result(self, value: Json) -> None:
        """Show its result."""

    async def ran(self, run: ProcessRun) -> None:
        """Record a process that ran for it."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Ask a person whether it may go on; nobody there is a no.

        Cancel: Safe; the question is withdrawn.
        """


class Workplace(Protocol):
    """Where a task is carried out."""

    @property
    def session_id(self) -> str:
        """The session in which people are asked; empty: there is none."""

    @property
    def turn_id(self) -> str:
        """The turn of that session; empty: there is none."""

    async def say(self, text: str) -> None:
        """Show what the coding agent says."""

    def think(self, text: str) -> None:
        """Show what the coding agent thinks."""

    def call(self, name: str, args: JsonObject) -> AbstractAsyncContextManager[WorkCall]:
        """Show that a tool runs, and how it ended; what the inside raises is how it failed."""

    def cost(self, model: str, amount_usd: float) -> None:
        """Record what the coding agent has cost."""


class Headless:
    """A workplace that nobody sees.

    Args:
        allows: How each question is answered.
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
        """Show nothing."""
        yield _UnseenCall(self._allows)


class _UnseenCall:
    """A call that nobody sees."""

    def __init__(self, allows: bool) -> None:
        self._allows = allows

    def progress(self, text: str) -> None:
        """Do nothing."""

    def result(self, value: Json) -> None:
        """Do nothing."""

    async def ran(self, run: ProcessRun) -> None:
        """Do nothing."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Answer as the operator's settings say."""
        if not self._allows:
            return ApprovalAnswer(False, "nobody is there who could approve it")
        refusal = await recheck() if recheck is not None else ""
        return ApprovalAnswer(not refusal, refusal, for_task=bool(request.task_rule))
