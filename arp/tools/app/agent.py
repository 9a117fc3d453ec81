"""`ToolAgent`: tools that are found, built, run and monitored in an app: `App(tools=ToolAgent(…))`.

Theory of operation. `attach` adds to an app the agent `tool-agent`, the routes of the HTTP and MCP
interfaces, and the callbacks for the start and end of the server. A task that was requested over
HTTP or caused by an alert gets a session of that agent, which belongs to the requesting user, with
one turn for the task. A message to the agent requests a tool, which is built in that turn. Other
agents of the app may do the same: `await tool_agent.build(turn, "a tool that …")`.

A task that a restart has interrupted continues in its session, even if that belongs to another
agent: the Tool Agent begins a turn there and handles that turn itself.
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
"""Name of the agent that owns the sessions of tasks and begins their turns."""
LEAST_USD: Final = 0.000001
"""Cost limit for a runtime that may spend nothing, because a limit of 0 would mean no limit."""
MAX_TITLE: Final = 200
"""Maximum length in characters of a request that the session of a task shows."""


class ToolAgent(ToolCatalog):
    """Tool Agent of an app.

    Args:
        coder: Builder of tools: a runtime of `arp.runtime`, its name (`claude-code`), or a `Coder`.
            `None` means that tools can only be called.
        service: Tools; `None` means a service with the settings of `TOOL_AGENT_…` and
            `data/config.json`.
        session: Options for the sessions of the runtime.
        asks: Whether a person must allow each use of a tool in a chat.
        mcp_port: The only port that serves `/mcp`; `None` means every port of the server.

    Raises:
        AriError: There is no runtime of that name, or one of its requirements is missing.
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
        """Add the agent, the routes, and the server's start and end callbacks to an app."""
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
        """Interrupt the tasks, which the next start continues, and end the tools of this process.

        Containers keep running.
        """
        self._hub = None
        await self.mcp.aclose()
        await self.backend.aclose()
        if isinstance(self._coder, AriCoder):
            await self._coder.aclose()

    def _set_hub(self, hub: Hub | None) -> None:
        if hub is None:
            self.backend.coding.leave()  # so that interrupted tasks become pending again
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

        The turn is in a new session, or in the session of the interrupted task.
        """
        hub = await self._ready()
        pushed = await self._resumed(hub, task) if task.session_id else None
        if pushed is None:
            live = await hub.open(None, Principal(task.owner), AGENT)
            pushed = await push_turn(hub, live.id, _request(task, task.description))
        await pushed.over()

    async def _resumed(self, hub: Hub, task: TaskRecord) -> PushedTurn | None:
        """Begin a turn in the session of a task; return `None` if the session no longer exists."""
        text = f"The server was restarted. The task continues: {task.description}"
        request = _request(task, text)
        try:
            await withdraw_questions(hub, task.session_id, task.turn_id)
            return await push_turn(hub, task.session_id, request)
        except ArpError as refused:
            logger.info("task %s gets a new session: %s", task.task_id, refused.message)
            return None

    async def __call__(self, turn: Turn) -> None:
        """Carry out the task of a turn, or the request that a user has typed."""
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

        If a matching tool exists already, nothing is built.

        Args:
            turn: Turn that shows the work.
            description: Purpose of the tool in words.
            spec: Exact spec; `None` means that it is derived from the description.

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
        """Spend money within the budget; above the threshold a person is asked in the turn.

        Args:
            turn: Turn that shows the question.
            provider: Receiver of the payment.
            amount_usd: Amount in US dollars.
            description: Purpose of the payment.

        Raises:
            ToolFailed: The amount is above a limit, or a person did not allow it; nothing is spent.
        """
        purchase = Purchase(provider, amount_usd, description)
        given: JsonObject = msgspec.to_builtins(purchase)
        place = TurnPlace(turn)
        try:
            async with place.call("budget", given) as shown:

                async def approve(title: str, message: str) -> bool:
                    rule = "require_approval_above_usd"
                    approval = await shown.ask_permission(
                        title, rule=rule, input=given, message=message or None
                    )
                    return approval.allowed

                await self.service.budget.spend(purchase, approve)
        except ToolAgentError as refused:
            raise ToolFailed(refused.message) from refused


def _request(task: TaskRecord, title: str) -> PushRequest:
    """Return the request for the turn of a task's attempt."""
    data: JsonObject = {"task_id": task.task_id}
    push_id = f"{task.task_id}.{task.attempts}"
    return PushRequest(title[:MAX_TITLE], data, AGENT, task.owner or None, push_id)


class McpEndpoint:
    """Handler of `/mcp`; if the server has several ports, it can be limited to one."""

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
    """Return the coder that builds tools; a task may cost at most `most_usd`."""
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
    """Return a runtime by its name, without its own tools if they can be switched off.

    Some of those tools never ask for permission. Claude Code also receives the cost limit, because
    it reports its costs only at the end of a turn.
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
