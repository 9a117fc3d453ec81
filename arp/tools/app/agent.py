"""`ToolAgent`: tools that are found, built, run and watched, in an app: `App(tools=ToolAgent(…))`.

Theory of operation. `attach` gives an app the agent `tool-agent`, the routes of the HTTP and MCP
interfaces, and what starts and ends with the server. A task that somebody asked for over HTTP, or
that an alert has caused, gets a session of that agent, of who asked, with one turn in which it is
carried out. Who types to the agent asks for a tool; it is built in that turn. An agent of the
author may do the same: `await tool_agent.build(turn, "a tool that …")`.

A task that a restart has cut off goes on in the session in which it ran, whichever agent that is
of: the Tool Agent begins a turn there, and carries out all turns that it has begun.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final, cast

import msgspec
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from arp.access.principal import Principal
from arp.hub.extension import AppExtension
from arp.hub.pushed import PushedTurn, PushRequest, push_turn, withdraw_questions
from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Workflow
from arp.runtime.named import environment_of, named_runtime
from arp.tools.app.ari_coder import AriCoder
from arp.tools.app.imported import SCHEME, McpImports
from arp.tools.budget import Purchase
from arp.tools.build.backend import ToolBackend
from arp.tools.build.router import TaskRequest
from arp.tools.build.turn_place import TurnPlace
from arp.tools.build.workplace import ApprovalRequest
from arp.tools.errors import ToolAgentError
from arp.tools.faces.catalog import ToolCatalog
from arp.tools.faces.mcp_face import MCP_PATH, McpFace
from arp.tools.faces.routes import ToolRoutes
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskRecord, TaskStatus
from arp.turn.tool import ToolFailed

if TYPE_CHECKING:
    from arp.hub.extension import ExtensibleApp
    from arp.hub.hub import Hub
    from arp.runtime.contract.services import RuntimeService
    from arp.runtime.contract.types import CreateSessionRequest
    from arp.tools.build.coding_job import Coder
    from arp.tools.tasks.task_specs import TaskSpec
    from arp.turn.turn import Turn

logger = logging.getLogger(__name__)

AGENT: Final = "tool-agent"
"""The agent in whose sessions tasks are carried out, and who begins their turns."""
LEAST_USD: Final = 0.000001
"""The limit of a runtime that may spend nothing, where 0 means that there is none."""
MAX_TITLE: Final = 200
"""Characters of a task that its session shows as what was asked."""


class ToolAgent(ToolCatalog):
    """A Tool Agent.

    Args:
        coder: Who builds tools: a runtime of `arp.runtime`, its name (`claude-code`), or a `Coder`;
            `None`: nobody, so tools are only called.
        service: With the tools; `None`: as `TOOL_AGENT_…` and `data/config.json` say.
        session: How sessions of the runtime are created.
        asks: Whether a person allows each use of a tool in a chat.
        mcp_port: The one port on which `/mcp` is served; `None`: every port of the server.

    Raises:
        AriError: There is no runtime of that name, or what it needs is not installed.
        ToolAgentError: The settings or a file of the data directory cannot be read.
    """

    def __init__(
        self,
        coder: RuntimeService | Coder | str | None = None,
        *,
        service: ToolService | None = None,
        session: CreateSessionRequest | None = None,
        asks: bool = False,
        mcp_port: int | None = None,
    ) -> None:
        self.mcp_port = mcp_port
        self.service = service or ToolService()
        super().__init__(self.service, asks=asks)
        self._coder = _coder(coder, session, self.service.settings.current.coding_task_usd)
        self.backend = ToolBackend(self.service, self._coder, self._open_place)
        self.imports = McpImports(self.service)
        self.service.runtimes.add_scheme(SCHEME, self.imports)
        self.mcp = McpFace(self.service)
        self._hub: asyncio.Future[Hub] | None = None

    # -- the app ---------------------------------------------------------------------------------

    def attach(self, app: ExtensibleApp) -> None:
        """Give an app the agent, the routes, and what starts and ends with its server."""
        described = Workflow(
            AGENT,
            "Tool Agent",
            "Builds, repairs and runs tools.",
            ("I need a tool that compresses images",),
        )
        app.extend(
            AppExtension(
                self.open,
                self.aclose,
                self._set_hub,
                {AGENT: (described, self)},
                self.routes(),
                {AGENT: self},
            )
        )

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the HTTP interface, and of MCP at `/mcp`."""
        return [
            *ToolRoutes(self.backend).routes(),
            Route(MCP_PATH, McpEndpoint(self.mcp, self.mcp_port)),
        ]

    async def open(self) -> None:
        """Start; may be repeated.

        Raises:
            ToolAgentError: A file of the data directory cannot be read.
            AriError: The coder cannot be opened again; the message says what to do.
        """
        if isinstance(self._coder, AriCoder):
            await self._coder.open()
        await self.backend.start()
        await self.mcp.open()

    async def aclose(self) -> None:
        """Stop: tasks are cancelled, and tools end that would not outlive us."""
        self._hub = None
        await self.mcp.aclose()
        await self.backend.aclose()
        if isinstance(self._coder, AriCoder):
            await self._coder.aclose()

    def _set_hub(self, hub: Hub | None) -> None:
        if hub is None:
            self.backend.coding.leave()  # before turns are interrupted
            self._hub = None
            return
        waiting = self._ready()
        if not waiting.done():
            waiting.set_result(hub)

    def _ready(self) -> asyncio.Future[Hub]:
        """Return a future of the hub, which is set when the hub has started."""
        if self._hub is None:
            self._hub = asyncio.get_running_loop().create_future()
        return self._hub

    # -- tasks -----------------------------------------------------------------------------------

    async def _open_place(self, task: TaskRecord) -> None:
        """Begin a turn for a task; return when the turn is over.

        It is in a session of its own, or in the one in which the task was cut off.
        """
        hub = await self._ready()
        pushed = await self._resumed(hub, task) if task.session_id else None
        if pushed is None:
            live = await hub.open(None, Principal(task.owner), AGENT)
            pushed = await push_turn(hub, live.id, _request(task, task.description))
        await pushed.over()

    async def _resumed(self, hub: Hub, task: TaskRecord) -> PushedTurn | None:
        """Begin a turn in the session of a task; `None`: it is gone."""
        request = _request(task, f"The server was restarted. The task goes on: {task.description}")
        try:
            await withdraw_questions(hub, task.session_id, task.turn_id)
            return await push_turn(hub, task.session_id, request)
        except ArpError as refused:
            logger.info("task %s gets a new session: %s", task.task_id, refused.message)
            return None

    async def __call__(self, turn: Turn) -> None:
        """Carry out the task of a turn, or what somebody has typed."""
        task_id = turn.input.data.get("task_id")
        if turn.origin == AGENT and isinstance(task_id, str):
            task = await self.backend.coding.work(task_id, TurnPlace(turn))
            self._show(turn, task)
        elif turn.text.strip():
            await self.build(turn, turn.text)
        else:
            await turn.say("Say in words which tool you need, or which one to repair.")

    async def build(self, turn: Turn, description: str, spec: TaskSpec | None = None) -> TaskRecord:
        """Build a tool in a turn, which shows the steps and asks for permission.

        If there is such a tool already, nothing is built.

        Args:
            turn: In which it is built.
            description: What the tool is to do, in words.
            spec: What exactly is to be done; `None`: it is made of the words.

        Returns:
            The task, completed; `tool_id` is the tool.

        Raises:
            ToolFailed: It could not be built; the message is for people.
        """
        request = TaskRequest(description, owner=turn.user.name, spec=spec)
        try:
            task = await self.backend.build(request, TurnPlace(turn))
        except ToolAgentError as refused:
            raise ToolFailed(refused.message) from refused
        self._show(turn, task)
        return task

    def _show(self, turn: Turn, task: TaskRecord) -> None:
        """Show the outcome of a task.

        Raises:
            ToolFailed: The task has failed.
        """
        if task.status is not TaskStatus.COMPLETED:
            raise ToolFailed(task.error or str(task.status))
        message = f"{task.result[:1].upper()}{task.result[1:]}. {task.url}".strip()
        props = {"status": "success", "title": f"{task.tool_id} is ready", "message": message}
        turn.show(Component("", "status-card", props))

    # -- money -----------------------------------------------------------------------------------

    async def spend(self, turn: Turn, provider: str, amount_usd: float, description: str) -> None:
        """Spend money as the budget allows; above the threshold a person is asked in the turn.

        Args:
            turn: In which the question is asked.
            provider: Who gets it.
            amount_usd: How much.
            description: What for.

        Raises:
            ToolFailed: It is above a limit, or a person did not allow it; nothing is spent.
        """
        purchase = Purchase(provider, amount_usd, description)
        given: JsonObject = msgspec.to_builtins(purchase)
        place = TurnPlace(turn)
        try:
            async with place.call("budget", given) as shown:

                async def approve(title: str, message: str) -> bool:
                    rule = "require_approval_above_usd"
                    return (await shown.ask(ApprovalRequest(title, given, rule, message))).allowed

                await self.service.budget.spend(purchase, approve)
        except ToolAgentError as refused:
            raise ToolFailed(refused.message) from refused


def _request(task: TaskRecord, title: str) -> PushRequest:
    """Return the turn of an attempt of a task."""
    data: JsonObject = {"task_id": task.task_id}
    push_id = f"{task.task_id}.{task.attempts}"
    return PushRequest(title[:MAX_TITLE], data, AGENT, task.owner or None, push_id)


class McpEndpoint:
    """`/mcp`, on one port of the server alone if there are several."""

    def __init__(self, face: McpFace, port: int | None) -> None:
        self._face, self._port = face, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._port is not None and (scope.get("server") or ("", 0))[1] != self._port:
            text = f"MCP is served on port {self._port}"
            await JSONResponse({"error": text}, 404)(scope, receive, send)
            return
        await self._face(scope, receive, send)


def _coder(
    given: RuntimeService | Coder | str | None,
    session: CreateSessionRequest | None,
    most_usd: float,
) -> Coder | None:
    """Return the coder that builds tools; a task may cost `most_usd`."""
    if given is None:
        return None
    if isinstance(given, str):
        return AriCoder(_without_own_tools(given, most_usd), session)
    if isinstance(given, type) or not (hasattr(given, "send_message") or hasattr(given, "work")):
        got = getattr(given, "__name__", repr(given))
        raise TypeError(f"coder: expected a runtime, its name or a Coder, got {got:.60}")
    if hasattr(given, "send_message"):
        return AriCoder(cast("RuntimeService", given), session)
    return given


def _without_own_tools(name: str, most_usd: float) -> RuntimeService:
    """Return a runtime by its name, without its own tools where it can leave them out.

    Some of them ask nobody. Claude Code says at the end of a turn what that has cost, so it gets
    the limit too.
    """
    environment = environment_of(name, os.environ)
    if name == "claude-code":
        from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime

        options = ClaudeCodeOptions(own_tools=False, max_budget_usd=most_usd or LEAST_USD)
        return ClaudeCodeRuntime(environment=environment, options=options)
    if name == "codex":
        from arp.runtime.programs.codex.codex import CodexRuntime

        return CodexRuntime(environment=environment, mode="ask", own_tools=False)
    return named_runtime(name, environment=environment)
