"""While large hostile messages arrive, a client beside them is served as before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import httpx
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


async def attack_by_post(server: Process, body: bytes) -> None:
    """Asks for a turn by `POST /{workflow}`, and waits for its end."""
    async with httpx.AsyncClient(base_url=server.http, timeout=60) as client:
        head = {"content-type": "application/json"}
        response = await client.post("/scripted", content=body, headers=head)
        assert response.status_code in (200, 400, 413), response.text


async def attack_by_rpc(server: Process, frame: bytes) -> None:
    """Sends one frame of JSON-RPC, and waits for its answer."""
    url = f"ws://127.0.0.1:{server.port}/_api/rpc"
    async with connect(url, compression=None, max_size=None) as socket:
        await socket.send(frame.decode())
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


DATA: list[dict[str, object]] = [
    {"text": "wait", "more": [{}] * 300_000},
    {"text": "wait", **{f"k{n}": n for n in range(70_000)}},
    {"text": "wait", "token": "sk-" * 300_000},
]


def asked(data: dict[str, object]) -> bytes:
    params = {"input": {"data": data}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "agentSession/turn/start", "params": params}
    return msgspec.json.encode(body)


def by_socket(server: Process) -> list[Coroutine[None, None, None]]:
    frames = [(recode(frame, kind), kind) for frame in FRAMES for kind in ENCODINGS]
    return [attack(server, *one) for one in [*frames, *frames][:20]]


def by_post(server: Process) -> list[Coroutine[None, None, None]]:
    bodies = [msgspec.json.encode(data) for data in DATA]
    return [attack_by_post(server, body) for body in [*bodies, *bodies, *FRAMES[:2]]]


def by_rpc(server: Process) -> list[Coroutine[None, None, None]]:
    frames = [asked(data) for data in DATA]
    return [attack_by_rpc(server, frame) for frame in [*frames, *frames, *FRAMES[:2]]]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("attacks", [by_socket, by_post, by_rpc])
async def test_client_is_served_while_large_hostile_messages_arrive(
    attacks: Callable[[Process], list[Coroutine[None, None, None]]], tmp_path: Path
) -> None:
    server = await start(AGENT, tmp_path / "ledger.db")
    over = asyncio.Event()
    try:
        probing = asyncio.ensure_future(longest_ping(server, over))
        await asyncio.gather(*attacks(server))
        over.set()
        longest = await probing
    finally:
        await server.aclose()
    assert longest < MOST_S
