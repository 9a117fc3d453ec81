"""A reader that stops costs bounded memory, delays nobody, and is right after one catch-up."""

from __future__ import annotations

import asyncio
import json
import socket as socket_module
from pathlib import Path

import h11
import httpx
import pytest
from websockets.asyncio.client import connect

from arp.client.links.sse_link import stream_url
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.connection.screen import Screen
from arp.protocol.framing.event_stream import SseParser
from arp.protocol.messages import RendererCapabilities, RendererHello
from tests.server.processes import Process, start

DELTAS = 200_000
TOKEN = "token "
AGENT = Path(__file__).with_name("torrent.py")
MOST_GROWTH = 5 << 20

COMPONENTS = {"text": 1, "progress": 1}


def hello(session_id: str) -> RendererHello:
    features = ["streaming", "input", "resume", "batch", "patch-append"]
    return RendererHello(
        capabilities=RendererCapabilities(COMPONENTS, features), session_id=session_id
    )


async def read(server: Process, session_id: str, told: asyncio.Event) -> Screen:
    """Reads a whole turn, and gives the screen."""
    connection = RendererConnection(hello(session_id))
    async with connect(server.ws, compression=None, max_size=None) as socket:
        await socket.send(connection.hello())
        async for frame in socket:
            connection.receive(frame)
            if connection.epoch is not None:
                told.set()
            turn = connection.screen.turns.get("t1")
            if turn is not None and turn.final:
                return connection.screen
    raise AssertionError("the connection ended early")


def narrow(port: int) -> socket_module.socket:
    """Return a connection whose far end soon feels that nobody reads."""
    narrow = socket_module.socket()
    narrow.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 4096)
    narrow.connect(("127.0.0.1", port))
    narrow.setblocking(False)
    return narrow


async def behind(server: Process) -> int:
    """Return how many renderers the server knows to be behind."""
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.http}/metrics")).text
    line = next(line for line in text.splitlines() if line.startswith("arp_renderers_behind "))
    return int(float(line.split()[1]))


async def warm_up(server: Process) -> None:
    """One whole turn first, so that what grows later is not the caches of the first one."""
    async with connect(server.ws, compression=None, max_size=None) as socket:
        said = {"v": 1, "type": "input", "session_id": "warm", "input_type": "text"}
        await socket.send(json.dumps({**said, "data": {"text": "20000"}}))
        async for frame in socket:
            if json.loads(frame).get("final"):
                return


async def ask(server: Process, session_id: str) -> None:
    async with connect(server.ws, compression=None, max_size=None) as socket:
        said = {"v": 1, "type": "input", "session_id": session_id, "input_type": "text", "id": "1"}
        await socket.send(json.dumps({**said, "data": {"text": str(DELTAS)}}))
        async for frame in socket:
            if json.loads(frame)["type"] == "ack":
                return


@pytest.mark.timeout(120)
async def test_stopped_reader_is_bounded_and_catches_up(tmp_path: Path) -> None:
    """200,000 deltas; one renderer stops reading, another one and the agent do not notice.

    Spec: S4.
    """
    server = await start(AGENT, tmp_path / "ledger.db")
    try:
        await warm_up(server)
        stopped = RendererConnection(hello("s"))
        async with connect(
            server.ws,
            compression=None,
            max_size=None,
            max_queue=1,
            ping_interval=None,
            sock=narrow(server.port),
        ) as socket:
            await socket.send(stopped.hello())
            stopped.receive(await socket.recv())
            stopped.receive(await socket.recv())
            socket.transport.pause_reading()
            there = asyncio.Event()
            reading = asyncio.ensure_future(read(server, "s", there))
            await there.wait()
            before = server.rss()
            await ask(server, "s")
            screen = await reading
            grown = server.rss() - before
            assert await behind(server) == 1
            socket.transport.resume_reading()
            frames = 0
            while not (turn := stopped.screen.turns.get("t1")) or not turn.final:
                stopped.receive(await socket.recv())
                frames += 1
    finally:
        await server.aclose()
    expected = "".join(f"{TOKEN}" for _ in range(DELTAS))
    assert screen.text("t1") == expected
    assert stopped.screen.canonical() == screen.canonical()
    assert grown < MOST_GROWTH, f"grew by {grown} bytes in {frames} frames to catch up"


class StoppedStream:
    """An event stream that is read only when a test says so."""

    def __init__(self, reader: asyncio.StreamReader, session_id: str) -> None:
        self.shown = RendererConnection(hello(session_id))
        self._reader = reader
        self._http = h11.Connection(h11.CLIENT)
        self._parser = SseParser()

    def request(self, path: str, host: str) -> bytes:
        """Returns the bytes that ask for the stream."""
        asked = h11.Request(method="GET", target=path, headers=[("host", host)])
        return (self._http.send(asked) or b"") + (self._http.send(h11.EndOfMessage()) or b"")

    async def read(self) -> None:
        """Reads a little."""
        data = await self._reader.read(4096)
        assert data, "the stream ended early"
        self._http.receive_data(data)
        while (event := self._http.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                assert event.status_code == 200
            elif isinstance(event, h11.Data):
                for told in self._parser.feed(bytes(event.data)):
                    self.shown.receive(told.data)


@pytest.mark.timeout(120)
async def test_stream_that_is_not_read_is_bounded_and_catches_up(tmp_path: Path) -> None:
    """The same over server-sent events, whose only word is that the socket is full."""
    server = await start(AGENT, tmp_path / "ledger.db")
    try:
        await warm_up(server)
        url = stream_url(f"{server.http}/_arp/v1/events", hello("s")).removeprefix(server.http)
        reader, writer = await asyncio.open_connection(sock=narrow(server.port), limit=4096)
        stopped = StoppedStream(reader, "s")
        writer.write(stopped.request(url, f"127.0.0.1:{server.port}"))
        while stopped.shown.epoch is None:
            await stopped.read()
        there = asyncio.Event()
        reading = asyncio.ensure_future(read(server, "s", there))
        await there.wait()
        before = server.rss()
        await ask(server, "s")
        screen = await reading
        grown = server.rss() - before
        assert await behind(server) == 1
        while not (turn := stopped.shown.screen.turns.get("t1")) or not turn.final:
            await stopped.read()
        writer.close()
    finally:
        await server.aclose()
    assert screen.text("t1") == TOKEN * DELTAS
    assert stopped.shown.screen.canonical() == screen.canonical()
    assert grown < MOST_GROWTH, f"grew by {grown} bytes"
