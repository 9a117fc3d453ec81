"""`arp tools serve`, `import` and `budget`: the commands that import the Tool Agent."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arp.app import App
from arp.commands.output import cut, fail, printable
from arp.commands.serve.serve_settings import given_flags, read_settings
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
"""Time for a stop when the tools are served over standard input and output."""
LEDGER = "tools"
"""Name of the default ledger of `arp tools serve`."""


def _service() -> ToolService:
    """Return the service for the data directory, or end with an error."""
    try:
        from arp.tools.errors import ToolAgentError
        from arp.tools.service import ToolService
    except ModuleNotFoundError as missing:
        fail(not_installed(missing, "tools").message)
    except Exception as error:  # noqa: BLE001 - errors of the settings say what is missing
        fail(str(error))
    try:
        return ToolService()
    except ToolAgentError as error:
        fail(error.message)


def read_registry(read: Callable[[ToolRegistry], T]) -> T:
    """Call `read` with the registry of the data directory; end with an error if it fails."""
    from arp.tools.errors import ToolAgentError

    try:
        return read(_service().registry)
    except ToolAgentError as error:
        fail(error.message)


def show_budget(
    settle: str | None, amount: str | None, cancel: str | None, rebuild: str | None
) -> None:
    """Print the budget, after settling or cancelling a reservation or rebuilding the state.

    Args:
        settle: Id of the reservation that was paid.
        amount: Amount that was paid, in USD; `None` means the reserved amount.
        cancel: Id of the reservation that was not paid.
        rebuild: Amount that was spent this month, in USD, if the state is lost; `all` computes it
            from the log.
    """
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
    """Return the address of `arp tools serve` on this machine."""
    return f"http://127.0.0.1:{_service().settings.current.fastapi_port}"


def import_server(
    name: str, server_words: Sequence[str], env: Sequence[str], headers: Sequence[str]
) -> None:
    """Register the tools of an MCP server, and print them.

    Args:
        name: Name of the server.
        server_words: Address of the server, or the command that starts it.
        env: Environment variables of the command, as `NAME=VALUE`.
        headers: Headers of requests, as `NAME: VALUE`.
    """
    from arp.runtime.contract.types import McpServer
    from arp.tools.app.imported import McpImports
    from arp.tools.errors import ToolAgentError

    words = shlex.split(server_words[0]) if len(server_words) == 1 else list(server_words)
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
        loop, stop_requested = asyncio.get_running_loop(), asyncio.Event()

        def on_signal(number: int) -> None:
            deadline.begin()
            with suppress(RuntimeError):  # the loop is closed: everything has ended
                loop.call_soon_threadsafe(stop_requested.set)

        signals.append(StopSignals(on_signal))
        async with _service() as service:
            serving = asyncio.ensure_future(serve_stdio(service))
            stopping = asyncio.ensure_future(stop_requested.wait())
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            # Otherwise its thread still waits for a line, and cannot be cancelled. It ends with
            # the process.

    try:
        run_to_end(work(), has_signals=lambda: bool(signals))
    finally:
        deadline.cancel()
    leave(0)


def serve_tools(coder: str | None, flags: dict[str, Any]) -> None:
    """Serve the Tool Agent until a signal is received, then end the process."""
    service = _service()
    from arp.tools.app.agent import ToolAgent
    from arp.tools.build.coding_log import log_to

    settings = service.settings.current
    serving = read_settings(None, {"port": settings.fastapi_port, **given_flags(flags)})
    mcp_listener, mcp_port = None, None
    # The main port serves MCP too, at `/mcp`, so a listener is needed only for a different port.
    if settings.mcp_port not in (settings.fastapi_port, serving.port or None):
        mcp_listener = McpListener(serving.host, settings.mcp_port)
        mcp_port = mcp_listener.port
    try:
        try:
            agent = ToolAgent(coder, service=service, mcp_port=mcp_port)
        except AriError as error:
            fail(f"--coder: {error.message}")
        app = App(title="Tool Agent", description="Builds, repairs and runs tools.", tools=agent)
        if mcp_listener is not None:
            app.extend(AppExtension(mcp_listener.open, mcp_listener.aclose, lambda hub: None))
        log_to(lambda line: click.echo(printable(line)))
        application = application_of(app, LEDGER, serving)
        check_reachable(application, serving.host)
        if mcp_listener is not None:
            mcp_listener.listen(application)
        serve_application(application, LEDGER, serving)
    finally:
        if mcp_listener is not None:
            mcp_listener.close()


class McpListener:
    """A second port, where the application answers only at `/mcp`.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 selects a free one. If it is in use, the process ends with an
            error.
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
        """Set the application that answers; call it before `open`."""
        self._application = application

    async def open(self) -> None:
        """Start to serve."""
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
        """Stop serving."""
        if self._server is not None:
            await self._server.aclose()

    def close(self) -> None:
        """Close the port, even if `open` was never called."""
        self._socket.close()


def _pair(text: str, between: str) -> tuple[str, str]:
    name, found, value = text.partition(between)
    if not found or not name.strip():
        fail(f"{text!r}: write NAME{between}VALUE")
    return name.strip(), value.strip()
