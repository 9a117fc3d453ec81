"""Renderers over Unix sockets and gRPC that do not read: bounded memory, cut, nobody is delayed.

`test_stalls.py` has WebSocket and event streams.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import grpc.aio
import pytest

from arp.client.client import ArpClient
from arp.protocol.codec import encode_json
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.framing.envelope import CONNECT, seal, unseal
from arp.protocol.framing.length_prefix import FrameSplitter, prefixed
from arp.protocol.messages import RendererCapabilities
from arp.unix.socket_path import connect_to
from tests.server.processes import Process, start
from tests.server.test_stalls import (
    COMPONENTS,
    PARTS,
    SESSION_BYTES,
    TURNS,
    becomes_metric,
    hello,
    metric,
    short_stall,
)

__all__ = ["short_stall"]

AGENT = Path(__file__).with_name("bulky.py")
MANY = 15
"""Of each transport."""
LARGEST = 400 << 10
"""What may wait for one renderer alone: some pieces, and what the transport takes at once."""

CAPABILITIES = RendererCapabilities(COMPONENTS, ["streaming", "input", "resume"])


class Bulky(NamedTuple):
    """A server with a large session, and where it is reached."""

    process: Process
    path: str
    target: str


async def started(folder: Path) -> Bulky:
    path = str(folder / "s")
    options = ("--unix", path, "--grpc", "0")
    process = await start(AGENT, folder / "ledger.db", *options)
    assert process.child.stdout is not None
    lines = [(await process.child.stdout.readline()).decode().split() for _ in options[1::2]]
    target = next(line[-1] for line in lines if line[-1].startswith("grpc:"))
    return Bulky(process, f"unix:{path}", target.removeprefix("grpc:"))


def healthy(server: Bulky, transport: str) -> ArpClient:
    url = server.path if transport == "unix" else f"grpc:{server.target}"
    return ArpClient(url, session_id="s", capabilities=CAPABILITIES)


async def stop_reading(stack: AsyncExitStack, server: Bulky, transport: str) -> Any:
    """Says hello, and reads no more."""
    said = encode_json(hello())
    if transport == "unix":
        own = connect_to(server.path.removeprefix("unix:"))
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stack.callback(own.close)
        own.send(prefixed([RendererConnection(hello(), "msgpack").hello()]))
        return own
    channel = await stack.enter_async_context(
        grpc.aio.insecure_channel(
            server.target,
            options=[("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)],
        )
    )
    call: Any = channel.stream_stream(CONNECT)()
    stack.callback(call.cancel)
    await call.write(seal(said))
    return call


async def read_slowly(stopped: Any, shown: RendererConnection) -> None:
    """Reads a little at a time, always again soon, until the last turn is there."""
    splitter = FrameSplitter(16 << 20)
    loop = asyncio.get_running_loop()
    while not (turn := shown.screen.turns.get("t6")) or not turn.final:
        if isinstance(stopped, socket.socket):
            for frame in splitter.feed(await loop.sock_recv(stopped, 64 << 10)):
                shown.receive(frame)
        else:
            shown.receive(unseal(await stopped.read()).frame)
        await asyncio.sleep(0.02)


@pytest.fixture
async def server(tmp_path: Path, short_stall: None) -> AsyncIterator[Bulky]:
    made = await started(tmp_path)
    try:
        yield made
    finally:
        await made.process.aclose()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["unix", "grpc"])
async def test_renderers_that_do_not_read_hold_little_are_cut_and_delay_nobody(
    server: Bulky, transport: str
) -> None:
    """One that reads slowly is not cut, and ends with the same screen."""
    async with AsyncExitStack() as all_of, healthy(server, transport) as client:
        for _ in range(TURNS):
            await client.ask(str(PARTS))
        before = server.process.rss()
        shown = RendererConnection(hello(), "msgpack" if transport == "unix" else "json")
        slow = await stop_reading(all_of, server, transport)
        reading = asyncio.ensure_future(read_slowly(slow, shown))
        for _ in range(MANY):
            await stop_reading(all_of, server, transport)
        await becomes_metric(server.process, "arp_renderers", MANY + 2)
        async with asyncio.timeout(10):
            await client.ask("Hello")
        buffered = await metric(server.process, "arp_buffered_bytes")
        grown = server.process.rss() - before
        await becomes_metric(server.process, "arp_renderers", 2)
        async with asyncio.timeout(60):
            await client.ask("Still here")
            await reading
        left = await metric(server.process, "arp_renderers")
        screen = client.screen.canonical()
    assert left == 2
    assert buffered < 2 * SESSION_BYTES + MANY * LARGEST
    assert grown < 4 * SESSION_BYTES + MANY * LARGEST
    assert shown.screen.canonical() == screen
