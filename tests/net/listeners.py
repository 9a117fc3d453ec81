"""Every listener of this package, with bounds that a test chooses, at 127.0.0.1 or at a path."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from arp import Access, App, Bounds, Turn
from arp.commands.tools_serving import McpListener
from arp.net.bounded_server import InnerServer
from arp.runtime.remote.grpc_server import GrpcServer
from arp.runtime.remote.http_gateway import HttpGateway
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import bind
from arp.testing import FakeRuntime, Says
from arp.tools.app.agent import ToolAgent
from arp.tools.build.coding_job import CodingJob
from arp.tools.build.toolbox_server import ToolboxServer
from tests.runtime.certificates import certificates
from tests.support.serving import serving
from tests.tools.house import house

JSON = "application/json"


class Listener(NamedTuple):
    """Where a listener is, and what it takes."""

    port: int
    path: str = "/"
    """Where it takes JSON by POST."""
    headers: Mapping[str, str] = MappingProxyType({})
    tls: ssl.SSLContext | None = None
    unix: str = ""
    wrap: Callable[[Any], Any] = lambda value: value
    """Puts a value into a request that is not refused for its shape."""

    def head(self, method: str = "POST", **more: str) -> str:
        """Return the request line and headers, without the empty line that ends them."""
        fields = {"Host": f"127.0.0.1:{self.port}", **self.headers, **more}
        lines = [f"{name}: {value}\r\n" for name, value in fields.items()]
        return f"{method} {self.path} HTTP/1.1\r\n" + "".join(lines)


class Client:
    """A connection that sends what a test says, and no more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._opened_at = self._loop.time()

    async def send(self, data: str | bytes) -> None:
        self.writer.write(data.encode() if isinstance(data, str) else data)
        with suppress(ConnectionError):
            await self.writer.drain()

    async def rest(self) -> bytes:
        """Reads until the server closes."""
        got = b""
        async with asyncio.timeout(15):
            with suppress(ConnectionError):
                while part := await self.reader.read(1 << 16):
                    got += part
        return got

    @property
    def age_s(self) -> float:
        return self._loop.time() - self._opened_at


@asynccontextmanager
async def client(listener: Listener, source: str = "127.0.0.1") -> AsyncIterator[Client]:
    """Connects, over TLS where the listener has it."""
    if listener.unix:
        reader, writer = await asyncio.open_unix_connection(listener.unix)
    else:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=listener.tls, local_addr=(source, 0)
        )
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def quiet_app(bounds: Bounds, **more: Any) -> App:
    """Return an app that says one word."""
    app = App(title="Bounded", access=Access(bounds=bounds), **more)

    @app.agent
    async def agent(turn: Turn) -> None:
        await turn.say("heard")

    return app


@asynccontextmanager
async def arp_serve(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    with serving(quiet_app(bounds)) as running:
        wrap = lambda value: {"message": "go", "more": value}  # noqa: E731
        yield Listener(running.port, "/agent", {"Content-Type": JSON}, wrap=wrap)


@asynccontextmanager
async def tools_http(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    service, _ = house(place / "data")
    with serving(quiet_app(bounds, tools=ToolAgent(service=service))) as running:
        wrap = lambda value: {"params": {"a": value}}  # noqa: E731
        yield Listener(running.port, "/tools/add/invoke", {"Content-Type": JSON}, wrap=wrap)


def _mcp(value: Any) -> Any:
    params = {"name": "add", "arguments": {"a": value}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


MCP_HEADERS = {"Content-Type": JSON, "Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def mcp_path(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    service, _ = house(place / "data")
    with serving(quiet_app(bounds, tools=ToolAgent(service=service))) as running:
        yield Listener(running.port, "/mcp", MCP_HEADERS, wrap=_mcp)


@asynccontextmanager
async def mcp_port(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    """The port of MCP alone, as `arp tools serve` has it."""
    service, _ = house(place / "data")
    second = McpListener("127.0.0.1", 0)
    agent = ToolAgent(service=service, mcp_port=second.port)
    with serving(quiet_app(bounds, tools=agent)) as running:
        second.listen(running.application)
        opening = asyncio.run_coroutine_threadsafe(second.open(), running.loop)
        await asyncio.wrap_future(opening)
        try:
            yield Listener(second.port, "/mcp", MCP_HEADERS, wrap=_mcp)
        finally:
            closing = asyncio.run_coroutine_threadsafe(second.aclose(), running.loop)
            await asyncio.wrap_future(closing)
            second.close()


class _IdleJob:
    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"called": name}


@asynccontextmanager
async def toolbox(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    """The ten tools of a coding agent."""
    server = ToolboxServer(bounds)
    try:
        async with server.offered(cast(CodingJob, _IdleJob())) as (url, headers):
            port, _, path = url.removeprefix("http://127.0.0.1:").partition("/")
            yield Listener(int(port), f"/{path}", {**MCP_HEADERS, **headers}, wrap=_mcp)
    finally:
        await server.aclose()


def _ari(value: Any) -> Any:
    return {"session_id": "none", "message": {"content": "go", "parts": [], "more": value}}


@asynccontextmanager
async def ari_http(
    bounds: Bounds, place: Path, context: ssl.SSLContext | None = None, **tls: Any
) -> AsyncIterator[Listener]:
    """What `arp ari serve --http` serves."""
    runtime = FakeRuntime({"go": [Says("Ok.")]})
    listener = bind("127.0.0.1", 0)
    gateway = HttpGateway(runtime, Access(bounds=bounds))
    server = InnerServer(gateway, listener, bounds, **tls)
    await server.open()
    try:
        path, headers = "/ari/v1/send_message", {"Content-Type": JSON}
        yield Listener(server.port, path, headers, context, wrap=_ari)
    finally:
        await server.aclose()
        listener.close()


@asynccontextmanager
async def ari_https(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    files = certificates(place)
    context = ssl.create_default_context(cafile=files.ca)
    pair = {"ssl_certfile": files.certificate, "ssl_keyfile": files.key}
    async with ari_http(bounds, place, context, **pair) as listener:
        yield listener


@asynccontextmanager
async def ari_grpc(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    runtime = FakeRuntime({"go": [Says("Ok.")]})
    server = GrpcServer(runtime, Access(bounds=bounds))
    port = await server.start()
    try:
        yield Listener(port)
    finally:
        await server.stop(0)


@asynccontextmanager
async def arp_grpc(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    app = quiet_app(bounds)
    with serving(app, ports=[lambda state: GrpcPort(state, GrpcSettings())]) as running:
        yield Listener(int(running.addresses[0].rpartition(":")[2]))


@asynccontextmanager
async def arp_unix(bounds: Bounds, place: Path) -> AsyncIterator[Listener]:
    app, path = quiet_app(bounds), str(place / "s")
    settings = UnixSettings("json")
    with serving(app, ports=[lambda state: UnixPort(state, path, settings)]):
        yield Listener(0, unix=path)


HTTP = {
    "arp serve": arp_serve,
    "routes of tools": tools_http,
    "/mcp": mcp_path,
    "MCP port": mcp_port,
    "tools of a coding agent": toolbox,
    "arp ari serve --http": ari_http,
    "arp ari serve --http, TLS": ari_https,
}
"""Listeners of HTTP."""

GRPC = {"arp serve --grpc": arp_grpc, "arp ari serve --grpc": ari_grpc}


def body_of(listener: Listener, value: Any) -> bytes:
    """Return a request as JSON."""
    return json.dumps(listener.wrap(value)).encode()
