"""Real MCP servers for tests: over pipes, at an address, and one that writes what it should not."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvicorn
from starlette.responses import PlainTextResponse

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.types import McpServer
from arp.runtime.mcp.tools import LinkLimits, McpTools

SHOP = f"{sys.executable} {Path(__file__).with_name('mcp_shop.py')}"
SUMS = f"{sys.executable} {Path(__file__).with_name('mcp_server.py')}"
WAIT_S = 30.0


class Listening:
    """A caller that notes progress and answers each question the same way."""

    def __init__(
        self, answer: JsonObject | None = None, session_id: str = "a", turn_id: str = "a.1"
    ) -> None:
        self.answer = answer
        self.session_id, self.turn_id = session_id, turn_id
        self.heard: list[tuple[str, float, float | None]] = []
        self.asked: list[str] = []

    def progress(self, text: str, done: float, total: float | None) -> None:
        self.heard.append((text, done, total))

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        self.asked.append(message)
        return self.answer


@asynccontextmanager
async def opened(
    *servers: str | McpServer, limits: LinkLimits | None = None
) -> AsyncIterator[McpTools]:
    tools = McpTools(servers, limits)
    await tools.open()
    try:
        yield tools
    finally:
        await tools.aclose()


def servers_running() -> list[int]:
    """Return the processes of shops over pipes; one at an address has another argument."""
    children = psutil.Process().children(recursive=True)
    return [one.pid for one in children if " ".join(one.cmdline()).endswith("mcp_shop.py")]


@contextmanager
def listening_shop() -> Iterator[str]:
    """Serve the shop over HTTP to clients with a key; yield its address."""
    from tests.runtime.mcp_shop import server as made

    inner = made.streamable_http_app()

    async def keyed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"x-key") != b"of the shop":
            await PlainTextResponse("no", 401)(scope, receive, send)
        else:
            await inner(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(keyed, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


class ShopAtAddress:
    """The shop in a process of its own, at an address that stays when it restarts."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        number = self._listener.fileno()
        process = subprocess.Popen([*SHOP.split(), str(number)], pass_fds=[number])
        httpx.get(self.url, timeout=WAIT_S)  # it is refused, as soon as somebody listens
        return process

    def restart(self) -> None:
        """End the process, and start another."""
        self.end()
        self._process = self._started()

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it for good."""
        self.end()
        self._listener.close()


@contextmanager
def shop_over(transport: str) -> Iterator[str]:
    """Yield where the shop is: a command, or an address."""
    if transport == "stdio":
        yield SHOP
        return
    with shop_at_address() as url:
        yield url


@contextmanager
def shop_at_address() -> Iterator[str]:
    """Run the shop in a process of its own; yield its address."""
    shop = ShopAtAddress()
    try:
        yield shop.url
    finally:
        shop.close()
