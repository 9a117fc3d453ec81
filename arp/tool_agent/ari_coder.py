"""`AriCoder`: any runtime of the Agent Runtime Interface as coding agent.

Theory of operation. Each task is a session of the runtime with one message. The ten tools come to
it as the MCP server `tool_agent`, over HTTP, or in this process where the runtime can take that.
What they do asks a person by themselves, so the runtime's own question about one of them gets a
yes, and about anything else with no. What a runtime runs without asking is not seen here:
`claude-code` by its name has no tools of its own, other runtimes need a mode in which they ask. The
session is closed and removed when the task is over.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from arp.runtime import types as ari
from arp.runtime.errors import AriError
from arp.runtime.services import RuntimeService
from arp.tools.coding_agent import CodingJob, CodingOutcome
from arp.tools.task_words import INSTRUCTIONS
from arp.tools.toolbox import TEN_TOOLS
from arp.tools.toolbox_server import SERVER_NAME, ToolboxServer, server_of

_OURS: Final = re.compile(
    rf"(?:mcp__)?(?:{SERVER_NAME}(?:__|[./: _-]))?(?P<tool>{'|'.join(TEN_TOOLS)})"
)
"""How runtimes call one of the ten tools."""
NOT_OURS: Final = (
    f"Use the tools of the MCP server {SERVER_NAME} for this; no other tool may run here."
)
END_S: Final = 10.0
"""So long closing a session may take."""


@runtime_checkable
class TakesServers(Protocol):
    """A runtime that takes MCP servers of this process; `ClaudeCodeRuntime` does."""

    def offer_server(self, name: str, server: Any) -> ari.McpServer:
        """Return it as a server that sessions take."""

    def withdraw_server(self, offered: ari.McpServer) -> None:
        """Forget it."""


class AriCoder:
    """A runtime that carries out tasks.

    Args:
        runtime: Any; it takes `mcp_servers`.
        session: How its sessions are created, besides what a task needs.
    """

    def __init__(
        self, runtime: RuntimeService, session: ari.CreateSessionRequest | None = None
    ) -> None:
        self.runtime = runtime
        self.name = str(getattr(runtime, "name", "")) or "runtime"
        self._request = session or ari.CreateSessionRequest()
        self._toolbox = ToolboxServer()

    async def work(self, job: CodingJob) -> CodingOutcome:
        """Carry out a job in a session of its own.

        Cancel: Safe; the session is closed.
        """
        async with self._offered(job) as server:
            request = msgspec.structs.replace(
                self._request,
                instructions="\n\n".join(filter(None, (INSTRUCTIONS, self._request.instructions))),
                mcp_servers=(*self._request.mcp_servers, server),
            )
            try:
                created = await self._created(request, job)
            except AriError as failed:
                return CodingOutcome(error=f"{self.name}: {failed.message}")
            session_id = created.session_id
            try:
                return await self._played(job, session_id)
            except AriError as failed:
                return CodingOutcome(error=f"{self.name}: {failed.message}")
            finally:
                await asyncio.shield(self._ended(session_id))

    @asynccontextmanager
    async def _offered(self, job: CodingJob) -> AsyncIterator[ari.McpServer]:
        """Offer the ten tools within a block: in this process if the runtime can take that."""
        if isinstance(self.runtime, TakesServers):
            server = self.runtime.offer_server(SERVER_NAME, server_of(job))
            try:
                yield server
            finally:
                self.runtime.withdraw_server(server)
            return
        async with self._toolbox.offered(job) as address:
            yield ari.McpServer(SERVER_NAME, url=address.url, headers=address.headers)

    async def _created(
        self, request: ari.CreateSessionRequest, job: CodingJob
    ) -> ari.RuntimeSession:
        """Create the session; a runtime that takes no instructions gets them with the message."""
        try:
            return (await self.runtime.create_session(request)).session
        except AriError as refused:
            if "instructions" not in refused.message:
                raise
        job.words = f"{request.instructions}\n\n{job.words}"
        plain = msgspec.structs.replace(request, instructions="")
        return (await self.runtime.create_session(plain)).session

    async def aclose(self) -> None:
        """Close the runtime, and stop to offer tools."""
        await self.runtime.close(ari.CloseRequest())
        await self._toolbox.aclose()

    async def _played(self, job: CodingJob, session_id: str) -> CodingOutcome:
        message = ari.RuntimeMessage(content=job.words)
        sent = await self.runtime.send_message(ari.SendMessageRequest(session_id, message))
        events = await self.runtime.session_events(
            ari.SessionEventsRequest(session_id, after=sent.sequence)
        )
        try:
            async for event in events:
                if event.turn_id == sent.turn_id and event.done:
                    return _outcome(event)
                await self._took(job, session_id, event)
        finally:
            await events.aclose()
        return CodingOutcome(error=f"{self.name} ended before the task was over")

    async def _took(self, job: CodingJob, session_id: str, event: ari.Event) -> None:
        match event.type:
            case ari.EventType.TEXT:
                await job.say(event.content)
            case ari.EventType.THINKING:
                job.place.think(event.content)
            case ari.EventType.TOOL_CALL if _OURS.fullmatch(event.tool_name) is None:
                job.log.used(event.tool_name, dict(event.tool_input_raw or {}))
            case ari.EventType.PERMISSION_REQUEST:
                await self._answered(session_id, event)

    async def _answered(self, session_id: str, event: ari.Event) -> None:
        asked = event.permission
        name = asked.tool_name if asked is not None else event.tool_name
        is_ours = _OURS.fullmatch(name) is not None
        told = NOT_OURS if asked is not None and asked.takes_message and not is_ours else ""
        response = ari.PermissionResponse("allow" if is_ours else "deny", message=told)
        with suppress(AriError):  # it was withdrawn meanwhile
            await self.runtime.respond_permission(
                ari.RespondPermissionRequest(session_id, event.request_id, response)
            )

    async def _ended(self, session_id: str) -> None:
        """End a session, whatever it does."""
        with suppress(AriError, TimeoutError):
            async with asyncio.timeout(END_S):
                with suppress(AriError):
                    await self.runtime.cancel_turn(ari.CancelTurnRequest(session_id))
                await self.runtime.close_session(ari.CloseSessionRequest(session_id))
                await self.runtime.delete_session(ari.DeleteSessionRequest(session_id))


def _outcome(event: ari.Event) -> CodingOutcome:
    used = event.usage
    cost = used.cost if used is not None and used.currency in ("", "USD") else None
    error = event.error.message if event.error is not None else ""
    return CodingOutcome(event.content, cost, error=error)
