"""Renderers that do not read cost bounded memory, are counted, are cut, and disturb nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from arp.net.connections import CHECKS_PER_STALL, Stalls
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import RendererCapabilities, RendererHello
from tests.server.processes import Process, start
from tests.server.test_slow_reader import narrow
from tests.support.waiting import becomes

AGENT = Path(__file__).with_name("bulky.py")
PARTS, TURNS = 10, 4
SESSION_BYTES = PARTS * TURNS * 100_000
MANY = 30
LARGEST = 300 << 10
"""What may wait for one renderer alone: some pieces, and what the transport takes at once."""

COMPONENTS = {"text": 1, "code-block": 1}


def hello(*features: str) -> RendererHello:
    capabilities = RendererCapabilities(COMPONENTS, ["streaming", "input", "resume", *features])
    return RendererHello(capabilities=capabilities, session_id="s")


async def metric(server: Process, name: str) -> int:
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.http}/metrics")).text
    line = next(line for line in text.splitlines() if line.startswith(f"{name} "))
    return int(float(line.split()[1]))


async def becomes_metric(server: Process, name: str, wanted: int) -> None:
    """Waits until a metric is so."""
    for _ in range(300):
        if await metric(server, name) == wanted:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{name} did not become {wanted}")


class Healthy:
    """A renderer that reads, and speaks."""

    def __init__(self, socket: ClientConnection, connection: RendererConnection) -> None:
        self.socket = socket
        self.shown = connection
        self._said = 0

    async def joined(self) -> None:
        await self.socket.send(self.shown.hello())
        while self.shown.epoch is None:
            self.shown.receive(await self.socket.recv())

    async def asks(self, text: str) -> None:
        """Says something and reads until the turn is over."""
        self._said += 1
        turn_id = f"t{len(self.shown.screen.turns) + 1}"
        frame = self.shown.input("text", {"text": text}, input_id=f"i{self._said}")
        await self.socket.send(frame)
        async with asyncio.timeout(30):
            while not (turn := self.shown.screen.turns.get(turn_id)) or not turn.final:
                self.shown.receive(await self.socket.recv())


async def stop_reading(stack: AsyncExitStack, server: Process, *features: str) -> ClientConnection:
    """Says hello over a narrow socket, and reads no more."""
    socket = await stack.enter_async_context(
        connect(
            server.ws,
            compression=None,
            max_size=None,
            max_queue=1,
            ping_interval=None,
            close_timeout=0.1,
            sock=narrow(server.port),
        )
    )
    socket.transport.pause_reading()
    await socket.send(RendererConnection(hello(*features)).hello())
    return socket


def open_stream(server: Process) -> tuple[Any, bytes]:
    """An event stream whose body nobody reads."""
    said = json.loads(RendererConnection(hello()).hello())
    coded = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    query = urlencode({"session_id": "s", "hello": coded})
    socket = narrow(server.port)
    request = f"GET /_arp/v1/events?{query} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    return socket, request.encode()


@pytest.fixture
def short_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "STALL", "1")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("features", [(), ("batch",)])
async def test_renderers_that_do_not_read_hold_little_and_are_counted(
    features: tuple[str, ...], tmp_path: Path
) -> None:
    """Thirty on a session of 4 MB held 120 MB, and the metrics said 0."""
    server = await start(AGENT, tmp_path / "ledger.db")
    try:
        async with (
            connect(server.ws, compression=None, max_size=None) as socket,
            AsyncExitStack() as all_of,
        ):
            healthy = Healthy(socket, RendererConnection(hello(*features)))
            await healthy.joined()
            for _ in range(TURNS):
                await healthy.asks(str(PARTS))
            before = server.rss()
            for _ in range(MANY):
                await stop_reading(all_of, server, *features)
            await becomes_metric(server, "arp_renderers", MANY + 1)
            await healthy.asks("Hello")
            buffered, grown = await metric(server, "arp_buffered_bytes"), server.rss() - before
    finally:
        await server.aclose()
    assert healthy.shown.screen.text("t5") == "Hello"
    assert MANY * 16_384 < buffered < 2 * SESSION_BYTES + MANY * LARGEST
    assert grown < 4 * SESSION_BYTES + MANY * LARGEST


@pytest.mark.timeout(120)
async def test_connection_that_takes_nothing_is_cut_and_the_others_are_not(
    tmp_path: Path, short_stall: None
) -> None:
    """WebSocket and event stream; who reads slowly is not cut, and ends with the same screen."""
    server = await start(AGENT, tmp_path / "ledger.db")
    try:
        async with (
            connect(server.ws, compression=None, max_size=None) as socket,
            AsyncExitStack() as all_of,
        ):
            healthy = Healthy(socket, RendererConnection(hello()))
            await healthy.joined()
            for _ in range(TURNS):
                await healthy.asks(str(PARTS))
            slow = RendererConnection(hello())
            slow_socket = await stop_reading(all_of, server)
            for _ in range(3):
                await stop_reading(all_of, server)
            stream, request = open_stream(server)
            await asyncio.get_running_loop().sock_sendall(stream, request)
            reading = asyncio.ensure_future(read_slowly(slow_socket, slow))
            await becomes_metric(server, "arp_renderers", 6)
            await healthy.asks("Hello")
            await becomes_metric(server, "arp_renderers", 2)
            await healthy.asks("Still here")
            async with asyncio.timeout(60):
                await reading
            stream.close()
            left = await metric(server, "arp_renderers")
    finally:
        await server.aclose()
    assert left == 2
    assert slow.screen.canonical() == healthy.shown.screen.canonical()


async def read_slowly(socket: ClientConnection, shown: RendererConnection) -> None:
    """Reads a little at a time, always again within a second."""
    socket.transport.resume_reading()
    while not (turn := shown.screen.turns.get("t6")) or not turn.final:
        shown.receive(await socket.recv())
        await asyncio.sleep(0.05)


class Transport:
    """A transport that tells what a test wants."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.waits

    def get_extra_info(self, name: str) -> Any:
        assert name == "socket"

    def abort(self) -> None:
        self.aborted = True


class ServerConnection:
    """A connection of a server."""

    def __init__(self, transport: Transport | None) -> None:
        self.transport: Any = transport


async def test_what_becomes_less_is_taken_where_the_system_does_not_say() -> None:
    """No TCP, or no Linux; and a connection that has no transport yet is passed over."""
    stuck, idle, slow = Transport(100), Transport(0), Transport(1000)
    connections = [ServerConnection(None), *map(ServerConnection, (stuck, idle, slow))]
    stalls = Stalls(lambda: connections, 0.2)
    stalls.start()
    assert stalls.in_transports() == 1100
    for _ in range(3 * CHECKS_PER_STALL):
        slow.waits -= 1
        await asyncio.sleep(0.2 / CHECKS_PER_STALL)
    await becomes(lambda: stuck.aborted)
    stalls.stop()
    assert not idle.aborted
    assert not slow.aborted
