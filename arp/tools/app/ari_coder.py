"""`AriCoder`: any runtime of the Agent Runtime Interface as coding agent.

Theory of operation. Each task is a session of the runtime with one message. The runtime uses the
ten tools as the MCP server `tool_agent`, over HTTP, or in this process if it supports that. The ten
tools ask a person themselves. Therefore a permission request of the runtime about one of them is
answered with yes, and any other with no. Actions that a runtime takes without asking are not
visible here. If selected by name, `claude-code` has no tools of its own, and `codex` has only tools
that read files and a tool that asks for permission; other runtimes need a mode that asks for
permission. The session is closed and removed when the task is over.

Costs that the runtime reports are passed on to the job: those of each request to a model, if
available, and those of the whole turn at its end, even if it is cancelled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError
from arp.runtime.contract.services import RuntimeService
from arp.runtime.turns.linked_session import RuntimeHandle
from arp.tools.build.coding_job import CodingJob, CodingOutcome
from arp.tools.build.toolbox import TEN_TOOLS
from arp.tools.build.toolbox_server import SERVER_NAME, ToolboxServer, server_of
from arp.tools.tasks.task_words import INSTRUCTIONS

_OURS: Final = re.compile(
    rf"(?:mcp__)?(?:{SERVER_NAME}(?:__|[./: _-]))?(?P<tool>{'|'.join(TEN_TOOLS)})"
)
"""Names that runtimes give to the ten tools."""
NOT_OURS: Final = (
    f"Use the tools of the MCP server {SERVER_NAME} for this; no other tool may run here."
)
END_S: Final = 10.0
"""Time limit for closing a session, in seconds."""


@runtime_checkable
class TakesServers(Protocol):
    """Runtime that accepts MCP servers of this process; `ClaudeCodeRuntime` does."""

    def offer_server(self, name: str, server: Any) -> ari.McpServer:
        """Offer a server; return the reference that a request for a session contains."""

    def withdraw_server(self, offered: ari.McpServer) -> None:
        """Withdraw a server."""


class AriCoder:
    """Coder that carries out tasks with a runtime.

    Args:
        runtime: Any runtime that accepts `mcp_servers`.
        session: Options for its sessions, in addition to those of a task.
    """

    def __init__(
        self, runtime: RuntimeService, session: ari.CreateSessionRequest | None = None
    ) -> None:
        self.runtime = runtime
        self.name = str(getattr(runtime, "name", "")) or "runtime"
        self._runtime_handle = RuntimeHandle(runtime)
        self._request = session or ari.CreateSessionRequest()
        self._toolbox = ToolboxServer()

    async def work(self, job: CodingJob) -> CodingOutcome:
        """Carry out a job in a new session.

        Cancel: Safe; the session is closed.
        """
        async with self._offer_tools(job) as server:
            request = msgspec.structs.replace(
                self._request,
                instructions="\n\n".join(filter(None, (INSTRUCTIONS, self._request.instructions))),
                mcp_servers=(*self._request.mcp_servers, server),
            )
            try:
                created = await self._create_session(request, job)
            except AriError as failed:
                return CodingOutcome(error=f"{self.name}: {failed.message}")
            session_id = created.session_id
            try:
                return await self._run_turn(job, session_id)
            except AriError as failed:
                return CodingOutcome(error=f"{self.name}: {failed.message}")
            finally:
                await asyncio.shield(self._end_session(session_id))

    @asynccontextmanager
    async def _offer_tools(self, job: CodingJob) -> AsyncIterator[ari.McpServer]:
        """Offer the ten tools within a block, in this process if the runtime supports that."""
        if isinstance(self.runtime, TakesServers):
            server = self.runtime.offer_server(SERVER_NAME, server_of(job))
            try:
                yield server
            finally:
                self.runtime.withdraw_server(server)
            return
        async with self._toolbox.offered(job) as address:
            yield ari.McpServer(SERVER_NAME, url=address.url, headers=address.headers)

    async def _create_session(
        self, request: ari.CreateSessionRequest, job: CodingJob
    ) -> ari.RuntimeSession:
        """Create the session; put the instructions into the message if the runtime accepts none."""
        try:
            return (await self.runtime.create_session(request)).session
        except AriError as refused:
            if "instructions" not in refused.message:
                raise
        job.words = f"{request.instructions}\n\n{job.words}"
        plain = msgspec.structs.replace(request, instructions="")
        return (await self.runtime.create_session(plain)).session

    async def open(self) -> None:
        """Open the runtime, which an earlier run may have closed.

        Raises:
            AriError: It cannot be opened again; the message says what to do.
        """
        await self._runtime_handle.open()

    async def aclose(self) -> None:
        """Close the runtime, and stop offering tools."""
        await self._runtime_handle.aclose()
        await self._toolbox.aclose()

    async def _run_turn(self, job: CodingJob, session_id: str) -> CodingOutcome:
        message = ari.RuntimeMessage(content=job.words)
        sent = await self.runtime.send_message(ari.SendMessageRequest(session_id, message))
        reader = TurnReader(job, session_id, sent.turn_id, sent.sequence)
        try:
            async for event in reader.events(self.runtime):
                await self._handle(job, session_id, event)
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel_turn(reader))
            raise
        return reader.outcome or CodingOutcome(error=f"{self.name} ended before the task was over")

    async def _cancel_turn(self, reader: TurnReader) -> None:
        """Cancel a turn, and read its events to the last one, which has the cost of the turn."""
        with suppress(AriError, TimeoutError):
            async with asyncio.timeout(END_S):
                await self.runtime.cancel_turn(ari.CancelTurnRequest(reader.session_id))
                async for _ in reader.events(self.runtime):
                    pass  # reading is enough: the reader records the cost

    async def _handle(self, job: CodingJob, session_id: str, event: ari.Event) -> None:
        match event.type:
            case ari.EventType.TEXT:
                await job.say(event.content)
            case ari.EventType.THINKING:
                job.place.think(event.content)
            case ari.EventType.TOOL_CALL if _OURS.fullmatch(event.tool_name) is None:
                job.log.tool_use(event.tool_name, dict(event.tool_input_raw or {}))
            case ari.EventType.PERMISSION_REQUEST:
                await self._answer_permission(session_id, event)

    async def _answer_permission(self, session_id: str, event: ari.Event) -> None:
        permission = event.permission
        name = permission.tool_name if permission is not None else event.tool_name
        is_ours = _OURS.fullmatch(name) is not None
        message = (
            NOT_OURS if permission is not None and permission.takes_message and not is_ours else ""
        )
        response = ari.PermissionResponse("allow" if is_ours else "deny", message=message)
        with suppress(AriError):  # it was withdrawn meanwhile
            await self.runtime.respond_permission(
                ari.RespondPermissionRequest(session_id, event.request_id, response)
            )

    async def _end_session(self, session_id: str) -> None:
        """Close and remove a session, even while a turn runs."""
        with suppress(AriError, TimeoutError):
            async with asyncio.timeout(END_S):
                with suppress(AriError):
                    await self.runtime.cancel_turn(ari.CancelTurnRequest(session_id))
                await self.runtime.close_session(ari.CloseSessionRequest(session_id))
                await self.runtime.delete_session(ari.DeleteSessionRequest(session_id))


class TurnReader:
    """Reads the events of one turn, and reports its costs.

    Args:
        job: Job of the turn.
        session_id: Id of the session in the runtime.
        turn_id: Id of the turn.
        after: Last event before the turn.
    """

    def __init__(self, job: CodingJob, session_id: str, turn_id: str, after: int) -> None:
        self._job = job
        self.session_id = session_id
        self._turn_id = turn_id
        self._after = after
        self._cost_usd = 0.0
        """Sum of the costs reported for single requests to models."""
        self.outcome: CodingOutcome | None = None
        """Outcome of the turn; `None` until it has ended."""

    async def events(self, runtime: RuntimeService) -> AsyncIterator[ari.Event]:
        """Yield events until the turn is over; may be called again after a cancellation."""
        request = ari.SessionEventsRequest(self.session_id, after=self._after)
        events = await runtime.session_events(request)
        try:
            async for event in events:
                self._after = event.sequence
                await self._count(event)
                if event.turn_id == self._turn_id and event.done:
                    error = event.error.message if event.error is not None else ""
                    self.outcome = CodingOutcome(event.content, error=error)
                    return
                yield event
        finally:
            await events.aclose()

    async def _count(self, event: ari.Event) -> None:
        if event.done and event.usage is not None:
            cost = _usd(event.usage.cost, event.usage.currency)
        elif event.lifecycle is ari.Lifecycle.USAGE:
            cost = _usd(event.details.get("cost"), event.details.get("currency", ""))
            self._cost_usd += cost
            cost = self._cost_usd
        else:
            return
        await self._job.spent(cost, str(event.details.get("model") or ""))


def _usd(cost: object, currency: object) -> float:
    """Return a cost in US dollars; 0 if it is unknown or in another currency."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if is_number and currency in ("", "USD") else 0.0  # type: ignore[arg-type]
