"""`McpTools`: the tools of MCP servers, for apps and for the models of `model_agent`.

Theory of operation. Each session that calls a server has a connection of its own (`ServerLink`), so
that the server's questions can reach only that session. The first session that calls a tool gets
the connection that read the list of tools. The number of connections is limited. An idle connection
is closed, and the next call opens a new one. A `shared` server has one connection for all sessions.
The session of its questions is unknown, so they are answered with `cancel`.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import mcp_types as mcp

from arp.protocol.components import is_link
from arp.protocol.errors import ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.types import McpServer
from arp.runtime.contract.user_questions import ask_user, is_user_question
from arp.runtime.mcp.connection import CONNECT_S, McpConnection, QuestionLimit, SessionGone
from arp.turn.tool import (
    MAX_COUNT,
    ToolCall,
    ToolCaller,
    ToolFailed,
    ToolLink,
    ToolOutput,
    ToolSpec,
)
from arp.values.display import display_or_none

logger = logging.getLogger(__name__)

OPEN_S: Final = 30.0
"""Seconds that a call, and the start of the app, wait for a connection."""
RETRY_S: Final = 0.5
MAX_RETRY_S: Final = 30.0
"""Seconds between attempts to read the list of tools: the first pause and the longest one. The
pause doubles each time."""


class LinkLimits(NamedTuple):
    """Limits for the connections to one server."""

    connections: int = 32
    """Largest number of connections. At the limit, a connection without a call is replaced."""
    idle_s: float = 600.0
    """Seconds after which an unused connection is closed."""
    questions: int = 20
    """Largest number of questions in a turn; further questions are answered with `cancel`."""


class ServerLink:
    """The connections to one server: one for each session, or one for all if it is `shared`."""

    def __init__(self, server: McpServer, limits: LinkLimits | None = None) -> None:
        self.server = server
        self.tools: Sequence[mcp.Tool] = ()
        """Tools of the newest list; empty until the server has been reached."""
        self.problem = ""
        """Reason why the server has not been reached; empty if there is none."""
        self._limits = limits or LinkLimits()
        self._questions = QuestionLimit(self._limits.questions)
        self._connections: dict[str, McpConnection] = {}
        """Connections by session, least recently used first."""
        self._spare: McpConnection | None = None
        """Connection that read the list; `None` once a session uses it or it is closed."""
        self._timers: dict[McpConnection, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._listing: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()

    @property
    def is_listed(self) -> bool:
        """Whether the server has been reached and its tools are known."""
        return self._listing is not None and self._listing.done()

    async def open(self) -> None:
        """Start to read the list of tools, and wait at most `OPEN_S` for the first attempt.

        Until the server is reached, its tools are missing. The reason why it cannot be reached is
        logged once. May be called again, also after `aclose` and in another event loop.
        """
        if self._listing is None:
            self._tried = asyncio.Event()
            self._listing = asyncio.get_running_loop().create_task(self._list())
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self._tried.wait()

    async def aclose(self) -> None:
        """Disconnect, and end the server's processes if it has any; running calls fail."""
        listing, self._listing = self._listing, None
        if listing is not None:
            listing.cancel()
            await asyncio.wait([listing])
        spare = [self._spare] if self._spare is not None else []
        connections = [*self._connections.values(), *spare]
        self._connections, self._spare, self.tools, self.problem = {}, None, (), ""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await asyncio.gather(*(one.aclose() for one in connections), *self._closing)

    async def call(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool over the connection of the caller's session.

        Raises:
            ToolFailed: The server is gone, refuses the call, or sends an unreadable answer.

        Cancel: Safe; the server is notified, and its questions are withdrawn.
        """
        try:
            return await self._call(name, args, caller)
        except SessionGone:  # the call was not carried out, so it may be repeated once
            try:
                return await self._call(name, args, caller)
            except SessionGone:
                raise ToolFailed(
                    f"{name}: the MCP server {self.server.name} forgets its connections"
                ) from None

    async def check(self) -> None:
        """Read the list of tools again.

        Raises:
            ToolFailed: The server does not answer.
        """
        connection = self._acquire("")
        try:
            await connection.opened(OPEN_S)
            await connection.refresh()
        finally:
            self._release(connection)

    # -- the list --------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Connect repeatedly until the server has been reached once."""
        wait_s = RETRY_S
        while True:
            self._spare = spare = self._new_connection()
            try:
                await spare.opened(2 * CONNECT_S)
            except ToolFailed as failed:
                if failed.message != self.problem:  # do not repeat the same line for each attempt
                    logger.error("%s", failed.message)
                self.problem, self._spare = failed.message, None
                self._tried.set()
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, MAX_RETRY_S)
            else:
                self.problem = ""
                self._tried.set()
                self._close_when_idle(spare)
                return

    def _set_tools(self, tools: Sequence[mcp.Tool]) -> None:
        self.tools = tools

    # -- connections -----------------------------------------------------------------------------

    async def _call(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        connection = self._acquire(caller.session_id)
        try:
            await connection.opened(OPEN_S)
            return await connection.call(name, args, caller)
        finally:
            self._release(connection)

    def _acquire(self, session_id: str) -> McpConnection:
        """Return the connection of a session, marked as in use until `_release`."""
        if self._listing is None:
            raise ToolFailed(f"the MCP server {self.server.name} is closed")
        key = "" if self.server.shared else session_id
        found = self._connections.pop(key, None)
        if found is None or found.is_over:
            found = self._unused()
        self._connections[key] = found
        found.in_use += 1
        timer = self._timers.pop(found, None)
        if timer is not None:
            timer.cancel()
        return found

    def _unused(self) -> McpConnection:
        """Return a connection that no session has used.

        Raises:
            ToolFailed: The limit is reached, and all connections are in use.
        """
        spare, self._spare = self._spare, None
        if spare is not None and not spare.is_over:
            return spare
        self._connections = {key: one for key, one in self._connections.items() if not one.is_over}
        if len(self._connections) >= self._limits.connections:
            unused = [one for one in self._connections.values() if not one.in_use]
            if not unused:
                raise ToolFailed(
                    f"the MCP server {self.server.name} is in use by {len(self._connections)} "
                    "sessions, which is the limit; try again later"
                )
            self._close(unused[0])
        return self._new_connection()

    def _new_connection(self) -> McpConnection:
        return McpConnection(self.server, self._questions, self._set_tools)

    def _release(self, connection: McpConnection) -> None:
        connection.in_use -= 1
        if not connection.in_use and self._listing is not None:
            self._close_when_idle(connection)

    def _close_when_idle(self, connection: McpConnection) -> None:
        loop = asyncio.get_running_loop()
        self._timers[connection] = loop.call_later(self._limits.idle_s, self._close, connection)

    def _close(self, connection: McpConnection) -> None:
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()
        if connection is self._spare:
            self._spare = None
        # Removed before it is closed, which takes time: no new call may use it meanwhile.
        self._connections = {
            key: one for key, one in self._connections.items() if one is not connection
        }
        task = asyncio.get_running_loop().create_task(connection.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class McpTools:
    """The tools of several MCP servers; a `ToolProvider`.

    Args:
        servers: Servers, each given by an address (`https://…`), a command (`npx some-server`) or
            an `McpServer`.
        limits: Limits for the connections to each server.
    """

    def __init__(
        self, servers: Iterable[str | McpServer], limits: LinkLimits | None = None
    ) -> None:
        named = [_server(one, number) for number, one in enumerate(servers, 1)]
        self._links = [ServerLink(server, limits) for server in named]

    async def open(self) -> None:
        """Read the tools of all servers at the same time.

        May be called again, also after `aclose`.
        """
        await asyncio.gather(*(link.open() for link in self._links))

    async def aclose(self) -> None:
        """Disconnect from all servers."""
        await asyncio.gather(*(link.aclose() for link in self._links))

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools of the servers that have been reached."""
        return [
            ToolSpec(name, tool.description or "", tool.input_schema)
            for name, (_, tool) in self._named().items()
        ]

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call; show its progress, its questions as forms, and its result."""
        result = await self.run(tool.name, args, _ShownCaller(tool))
        if result.failed:
            raise ToolFailed(result.text or f"{tool.name} failed")
        try:
            for content, mime in result.images:
                await tool.show_image(content, mime, alt=f"From {tool.name}")
            for file in result.files:
                await tool.show_file(*file)
        except ResourceLimit as large:
            raise ToolFailed(f"{tool.name}: {large.message}") from large
        for link in result.links:
            tool.show_foreign(_as_component(link))
        if (made := display_or_none(result.value)) is not None:
            tool.show_foreign(made)
        return result.value

    async def run(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool by name.

        Raises:
            ToolFailed: The tool does not exist, the server is gone, or it refuses the call.
        """
        found = self._named().get(name)
        if found is None:
            problems = [link.problem for link in self._links if link.problem]
            raise ToolFailed("; ".join([f"there is no tool {name!r:.60}", *problems]))
        link, tool = found
        return await link.call(tool.name, args, caller)

    def _named(self) -> dict[str, tuple[ServerLink, mcp.Tool]]:
        """Return the tools by name; names of several tools get the server's name as a prefix."""
        listed = [(link, tool) for link in self._links for tool in link.tools]
        names = [tool.name for _, tool in listed]
        return {
            tool.name if names.count(tool.name) == 1 else f"{link.server.name}_{tool.name}": (
                link,
                tool,
            )
            for link, tool in listed
        }


class _ShownCaller:
    """Caller that shows the progress and the questions of a tool in a `ToolCall`."""

    def __init__(self, tool: ToolCall) -> None:
        self._tool = tool
        self.session_id, self.turn_id = tool.session_id, tool.turn_id

    def progress(self, text: str, done: float, total: float | None) -> None:
        is_whole = float(done).is_integer() and (total is None or float(total).is_integer())
        most = MAX_COUNT if total is None else min(total, MAX_COUNT)
        if is_whole and 0 <= done <= most and (total is None or total <= MAX_COUNT):
            end = None if total is None else int(total)
            self._tool.progress(text, done=int(done), total=end)
        else:
            self._tool.progress(text or f"{done:g}")

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        question: JsonObject = {"message": message, "schema": schema}
        if not is_user_question(question):
            raise ToolFailed(f"the server asks what no form can show: {message}")
        return await ask_user(self._tool, question)


def _as_component(link: ToolLink) -> JsonObject:
    """Return a link as a card, or as text if browsers cannot open the address."""
    if is_link(link.uri):
        cards: JsonObject = {"cards": [{"name": link.title, "url": link.uri}]}
        return {"type": "product-cards", "props": cards}
    return {"type": "text", "props": {"content": f"{link.title}: {link.uri}", "format": "plain"}}


def _server(given: str | McpServer, number: int) -> McpServer:
    if isinstance(given, McpServer):
        return given
    if given.startswith(("http://", "https://")):
        return McpServer(f"server{number}", url=given)
    command, *args = shlex.split(given)
    return McpServer(f"server{number}", command, tuple(args))
