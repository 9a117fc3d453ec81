"""`arp tools serve`, `import` and `budget`: what needs the Tool Agent itself."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arp.app import App
from arp.commands.output import cut, fail, printable
from arp.commands.serve.serve_settings import read_settings
from arp.commands.serve.serving import check_reachable, in_address, serve_application
from arp.commands.serve.serving_app import application_of
from arp.hub.extension import AppExtension
from arp.process.stop_signals import StopSignals
from arp.runtime.contract.errors import AriError
from arp.runtime.named import not_installed
from arp.server.ending import Deadline, leave, run_to_end

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from arp.net.bounded_server import InnerServer
    from arp.server.application import Application
    from arp.tools.registry.registry import ToolRegistry
    from arp.tools.service import ToolService

T = TypeVar("T")

STOP_S = 10.0
"""What a stop over standard input and output may take."""
LEDGER = "tools"
"""What the ledger of `arp tools serve` is named after."""


def _service() -> ToolService:
    """Return the service of the data directory; end with an error if it cannot be had."""
    try:
        from arp.tools.errors import ToolAgentError
        from arp.tools.service import ToolService
    except ModuleNotFoundError as missing:
        fail(not_installed(missing, "tools").message)
    except Exception as error:  # noqa: BLE001 - settings say by their own errors what is missing
        fail(str(error))
    try:
        return ToolService()
    except ToolAgentError as error:
        fail(error.message)


def read_registry(read: Callable[[ToolRegistry], T]) -> T:
    """Read the registry of the data directory; end with an error if that fails."""
    from arp.tools.errors import ToolAgentError

    try:
        return read(_service().registry)
    except ToolAgentError as error:
        fail(error.message)


def show_budget(
    settle: str | None, amount: str | None, cancel: str | None, rebuild: str | None
) -> None:
    """Settle or cancel a reservation if one is named, or rebuild the state; print the budget."""
    from arp.tools.budget import Budget
    from arp.tools.errors import ToolAgentError
    from arp.tools.settings import LiveSettings

    try:
        settings = LiveSettings()
        settings.check()
        budget = Budget(settings)
        if rebuild is not None:
            budget.rebuild(None if rebuild == "all" else rebuild)
        if settle is not None:
            budget.settle(settle, amount)
        if cancel is not None:
            if all(one.id != cancel for one in budget.reservations()):
                fail(f"there is no reservation {cancel!r:.40}; arp tools budget lists them")
            budget.cancel(cancel)
        limit, spent = settings.current.monthly_limit_usd, budget.spent_this_month()
        click.echo(f"spent this month  ${spent:,.2f} of ${limit:,.2f}")
        click.echo(f"left              ${budget.left_this_month():,.2f}")
        for one in budget.reservations():
            text = f"{one.id} ${one.amount_usd:,.2f} {one.provider}: {one.description}"
            click.echo(cut(printable(f"reserved {text}"), 120))
    except ToolAgentError as error:
        fail(error.message)


def own_address() -> str:
    """Return where `arp tools serve` of this machine is."""
    return f"http://127.0.0.1:{_service().settings.current.fastapi_port}"


def import_server(
    name: str, place: Sequence[str], env: Sequence[str], headers: Sequence[str]
) -> None:
    """Register the tools of an MCP server, and print them."""
    from arp.runtime.contract.types import McpServer
    from arp.tools.app.imported import McpImports
    from arp.tools.errors import ToolAgentError

    words = shlex.split(place[0]) if len(place) == 1 else list(place)
    if words[0].startswith(("http://", "https://")):
        server = McpServer(name, url=words[0], headers=dict(_pair(one, ":") for one in headers))
    else:
        variables = dict(_pair(one, "=") for one in env)
        server = McpServer(name, words[0], tuple(words[1:]), variables)

    async def work() -> None:
        imports = McpImports(_service())
        try:
            for tool in await imports.add(server):
                click.echo(printable(f"{tool.tool_id}  {tool.description}"))
        finally:
            await imports.aclose()

    try:
        asyncio.run(work())
    except ToolAgentError as error:
        fail(error.message)


def serve_tools_stdio() -> None:
    """Serve the tools by MCP over standard input and output."""
    from arp.tools.faces.mcp_face import serve_stdio

    deadline, signals = Deadline(STOP_S), list[StopSignals]()

    async def work() -> None:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        def told(number: int) -> None:
            deadline.begin()
            with suppress(RuntimeError):  # the loop is closed: everything has ended
                loop.call_soon_threadsafe(asked.set)

        signals.append(StopSignals(told))
        async with _service() as service:
            serving = asyncio.ensure_future(serve_stdio(service))
            waiting = asyncio.ensure_future(asked.wait())
            await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            # Else its thread waits for a line: the end of the process ends it.

    try:
        run_to_end(work(), has_signals=lambda: bool(signals))
    finally:
        deadline.cancel()
    leave(0)


def serve_tools(coder: str | None, flags: dict[str, Any]) -> None:
    """Serve the Tool Agent until a signal comes, and end the process."""
    service = _service()
    from arp.tools.app.agent import ToolAgent
    from arp.tools.build.coding_log import log_to

    now = service.settings.current
    flags["port"] = now.fastapi_port if flags["port"] is None else flags["port"]
    serving = read_settings(None, flags)
    second, port = None, None
    if now.mcp_port not in (now.fastapi_port, serving.port or None):
        second = McpListener(serving.host, now.mcp_port)
        port = second.port
    try:
        try:
            agent = ToolAgent(coder, service=service, mcp_port=port)
        except AriError as error:
            fail(f"--coder: {error.message}")
        app = App(title="Tool Agent", description="Builds, repairs and runs tools.", tools=agent)
        if second is not None:
            app.extend(AppExtension(second.open, second.aclose, lambda hub: None))
        log_to(lambda line: click.echo(printable(line)))
        application = application_of(app, LEDGER, serving)
        check_reachable(application, serving.host)
        if second is not None:
            second.listen(application)
        serve_application(application, LEDGER, serving)
    finally:
        if second is not None:
            second.close()


class McpListener:
    """A second port, on which the application answers at `/mcp` alone.

    Args:
        host: Where it listens.
        port: On which port; 0: any free one. The process ends with an error if it is taken.
    """

    def __init__(self, host: str, port: int) -> None:
        from arp.server.serve import bind

        try:
            self._socket = bind(host, port)
        except OSError as error:
            fail(
                f"MCP cannot listen on {host}:{port}: {error.strerror}; set TOOL_AGENT_MCP_PORT to "
                "another port, or to 0 for any free one"
            )
        self.port = int(self._socket.getsockname()[1])
        self._host = host
        self._application: Application | None = None
        self._server: InnerServer | None = None

    def listen(self, application: Application) -> None:
        """Say which application answers."""
        self._application = application

    async def open(self) -> None:
        """Begin to serve."""
        from arp.net.bounded_server import InnerServer
        from arp.tools.faces.mcp_face import MCP_PATH

        assert self._application is not None
        state = self._application.state
        bounds, proxies = state.served.access.bounds, state.guard.proxies
        self._server = InnerServer(self._answer, self._socket, bounds, proxies)
        await self._server.open()
        click.echo(f"MCP on http://{in_address(self._host)}:{self.port}{MCP_PATH}")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import JSONResponse

        from arp.tools.faces.mcp_face import MCP_PATH

        if self._application is not None and scope["path"] == MCP_PATH:
            await self._application(scope, receive, send)
        else:
            answer = JSONResponse({"error": f"only {MCP_PATH} is here"}, 404)
            await answer(scope, receive, send)

    async def aclose(self) -> None:
        """Stop to serve."""
        if self._server is not None:
            await self._server.aclose()

    def close(self) -> None:
        """Give the port back, also if it was never served."""
        self._socket.close()


def _pair(text: str, between: str) -> tuple[str, str]:
    name, found, value = text.partition(between)
    if not found or not name.strip():
        fail(f"{text!r}: write NAME{between}VALUE")
    return name.strip(), value.strip()
