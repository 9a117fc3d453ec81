"""While large hostile messages arrive, a client beside them is served as before."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from arp.protocol.codec import ENCODINGS, recode
from tests.server.processes import Process, start

AGENT = Path(__file__).with_name("scripted.py")
MIB = 1 << 20
MOST_S = 2.0
"""One such message stopped the server for about a second, twenty for as many."""


def said(data: dict[str, object]) -> bytes:
    head = {"type": "input", "v": 1, "input_type": "text", "session_id": "h", "id": "1"}
    return msgspec.json.encode({**head, "data": data})


FRAMES = [
    *(b"[" + b",".join([item] * (MIB // (len(item) + 1) - 1)) + b"]" for item in (b"{}", b"null")),
    said({"text": "x", "more": [{}] * 300_000}),
    said({"text": "x", **{f"k{n}": n for n in range(70_000)}}),
    said({"text": "sk-" * 100_000}),
]


async def attack(server: Process, frame: bytes, subprotocol: str) -> None:
    """Sends one frame, and waits for what the server says to it."""
    protocol = Subprotocol(f"arp.session.v1.{subprotocol}")
    async with connect(
        server.ws, compression=None, max_size=None, subprotocols=[protocol]
    ) as socket:
        await socket.recv()
        await socket.send(frame.decode() if subprotocol == "json" else frame)
        await socket.recv()


async def longest_ping(server: Process, until: asyncio.Event) -> float:
    longest = 0.0
    async with connect(server.ws, compression=None) as socket:
        while not until.is_set():
            began = time.perf_counter()
            await (await socket.ping())
            longest = max(longest, time.perf_counter() - began)
            await asyncio.sleep(0.005)
    return longest


@pytest.mark.timeout(120)
async def test_client_is_served_while_twenty_large_hostile_frames_arrive(tmp_path: Path) -> None:
    server = await start(AGENT, tmp_path / "ledger.db")
    over = asyncio.Event()
    try:
        probing = asyncio.ensure_future(longest_ping(server, over))
        frames = [(recode(frame, kind), kind) for frame in FRAMES for kind in ENCODINGS]
        await asyncio.gather(*(attack(server, *one) for one in [*frames, *frames][:20]))
        over.set()
        longest = await probing
    finally:
        await server.aclose()
    assert longest < MOST_S
