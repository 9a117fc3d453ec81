"""What a WebSocket client can make the server keep by control frames alone."""

from __future__ import annotations

import asyncio
import socket as socket_module
from pathlib import Path

import pytest

from tests.server.processes import Process, start
from tests.server.test_slow_reader import narrow

AGENT = Path(__file__).with_name("torrent.py")

PING = b"\x89\xfd" + bytes(4) + b"p" * 125
"""Of a client whose mask is zero."""
PONG = b"\x8a\x7d" + b"p" * 125
LAST_PING = b"\x89\x84" + bytes(4) + b"last"
LAST_PONG = b"\x8a\x04last"

PINGS, AT_ONCE = 400_000, 500
MOST_GROWTH = 8 << 20


async def upgraded(server: Process) -> socket_module.socket:
    """Return a WebSocket whose far end soon feels that nobody reads."""
    client, loop = narrow(server.port), asyncio.get_running_loop()
    head = (
        f"GET /_arp/v1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await loop.sock_sendall(client, head.encode())
    assert b" 101 " in await loop.sock_recv(client, 1024)
    return client


@pytest.mark.timeout(120)
async def test_pings_whose_pongs_are_not_read_fill_no_memory(tmp_path: Path) -> None:
    """Fifty megabytes of pongs are due; when the client reads again, it is answered again."""
    server = await start(AGENT, tmp_path / "ledger.db")
    loop = asyncio.get_running_loop()
    try:
        client = await upgraded(server)
        before = server.rss()
        async with asyncio.timeout(90):
            for _ in range(PINGS // AT_ONCE):
                await loop.sock_sendall(client, PING * AT_ONCE)
            grown = server.rss() - before
            told = b""
            while not told.endswith(LAST_PONG):
                await loop.sock_sendall(client, LAST_PING)
                told += await loop.sock_recv(client, 1 << 16)
        client.close()
    finally:
        await server.aclose()
    assert grown < MOST_GROWTH, f"grew by {grown} bytes"
    assert 0 < told.count(PONG) < PINGS


async def test_pings_of_who_reads_are_all_answered(tmp_path: Path) -> None:
    server = await start(AGENT, tmp_path / "ledger.db")
    loop = asyncio.get_running_loop()
    try:
        client = await upgraded(server)
        told = b""
        async with asyncio.timeout(30):
            for _ in range(20):
                await loop.sock_sendall(client, PING * 10 + LAST_PING)
                while not told.endswith(LAST_PONG):
                    told += await loop.sock_recv(client, 1 << 16)
                assert told.count(PONG) == 10
                told = b""
        client.close()
    finally:
        await server.aclose()
