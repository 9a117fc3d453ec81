"""`Workplace`: where a task is carried out, visible to people who can answer its questions.

The other modules use only this interface. `TurnPlace` (`turn_place`) is a turn of a session: its
tools, questions and facts are on every screen. `Headless` is for programs without sessions: nothing
is shown, and each question is answered by the operator's settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from arp.protocol.json_value import Json, JsonObject


class ApprovalRequest(Struct, frozen=True):
    """Question to a person."""

    title: str
    """Question in one line."""
    input: JsonObject
    """Complete description of the action: exactly what is shown will run."""
    rule: str
    """Name of the rule that requires a person's approval."""
    message: str = ""
    """Further information for the person."""
    task_rule: str = ""
    """Permission that may be given for the rest of the task; empty if only this call can be
    allowed."""
    files: list[JsonObject] = field(default_factory=list)
    """Files that can change what runs: `path`, `bytes`, `sha256`; a path that ends with `/` stands
    for the whole content of a directory."""
    changed: int = 0
    """Number of files, from the first, that are new or have changed since the last question."""


class ApprovalAnswer(Struct, frozen=True):
    """Answer of a person."""

    allowed: bool
    reason: str = ""
    """Reason for a no, if known."""
    for_task: bool = False
    """Whether `task_rule` is allowed too."""


class ProcessRun(Struct, frozen=True):
    """Process that ran for a call."""

    command: str
    cwd: str
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    sandbox: str = ""
    """Name of the sandbox; empty if there was none."""


Recheck: TypeAlias = Callable[[], Awaitable[str]]
"""Called after a yes, before it counts; returns why it does not count, or an empty text."""


class WorkCall(Protocol):
    """Call of a tool, as it is shown."""

    def progress(self, text: str) -> None:
        """Show the progress of the call."""

    def result(self, value: Json) -> None:
        """Show the result of the call."""

    async def ran(self, run: ProcessRun) -> None:
        """Record a process that ran for the call."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Ask a person for approval; if no person can answer, the answer is no.

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
        allows: Answer to each question.
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
    """Call that is not shown."""

    def __init__(self, allows: bool) -> None:
        self._allows = allows

    def progress(self, text: str) -> None:
        """Do nothing."""

    def result(self, value: Json) -> None:
        """Do nothing."""

    async def ran(self, run: ProcessRun) -> None:
        """Do nothing."""

    async def ask(self, request: ApprovalRequest, recheck: Recheck | None = None) -> ApprovalAnswer:
        """Answer by the operator's settings."""
        if not self._allows:
            return ApprovalAnswer(False, "nobody is there who could approve it")
        refusal = await recheck() if recheck is not None else ""
        return ApprovalAnswer(not refusal, refusal, for_task=bool(request.task_rule))
