"""A disk that takes no more: only what is durable is seen, reading goes on, it comes back (F04)."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.server.processes import Process, start

AGENT = Path(__file__).with_name("restless.py")
FREE = 300_000
"""Bytes that each file of the ledger may take."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")


def limit(server: Process, most: int) -> None:
    """Sets how large a file the server may write."""
    resource.prlimit(server.child.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


async def hello(socket: ClientConnection) -> None:
    capabilities = {"components": ["text", "progress"], "features": ["streaming", "input"]}
    body = {"v": 1, "type": "hello", "session_id": "s", "capabilities": capabilities}
    await socket.send(json.dumps(body))


async def say(socket: ClientConnection, text: str, input_id: str) -> None:
    said = {"v": 1, "type": "input", "session_id": "s", "input_type": "text", "id": input_id}
    await socket.send(json.dumps({**said, "data": {"text": text}}))


async def read_to_the_end(socket: ClientConnection) -> tuple[list[Any], int | None]:
    """Gives every message until the server closes, and the close code."""
    seen: list[Any] = []
    try:
        while True:
            seen.append(json.loads(await socket.recv()))
    except ConnectionClosed:
        pass
    return seen, socket.close_code


def texts(messages: list[Any]) -> str:
    """Return the text of the first turn, from deltas or from a snapshot."""
    parts = [part for one in messages for part in one.get("components", [])]
    rendered = [part["props"]["content"] for part in parts if part["id"].startswith("t1/")]
    said = [one["payload"]["delta"] for one in messages if is_delta(one)]
    return "".join([*rendered, *said])


def is_delta(message: Any) -> bool:
    return bool(message["type"] == "delta" and message.get("turn_id") == "t1")


async def accepted(server: Process, input_id: str) -> list[Any]:
    """Says something again and again, as a client does, until it is accepted."""
    for _ in range(100):
        async with connect(server.ws, compression=None, max_queue=None) as socket:
            await hello(socket)
            await say(socket, "ask", input_id)
            seen: list[Any] = []
            try:
                async for frame in socket:
                    seen.append(json.loads(frame))
                    if seen[-1]["type"] == "ack":
                        return seen
            except ConnectionClosed:
                pass
        await asyncio.sleep(0.05)
    raise AssertionError("it was never accepted")


@pytest.mark.timeout(60)
async def test_full_disk_is_survived(tmp_path: Path) -> None:
    """G1, G8: fail closed, and recover without a restart."""
    server = await start(AGENT, tmp_path / "ledger.db")
    try:
        async with asyncio.timeout(40):
            async with connect(server.ws, compression=None, max_queue=None) as socket:
                await hello(socket)
                await say(socket, "stream", "i1")
                await socket.recv()
                limit(server, FREE)
                seen, code = await read_to_the_end(socket)
            posted, chat, health = await while_it_refuses(server)
            limit(server, resource.RLIM_INFINITY)
            back = await accepted(server, "i2")
    finally:
        await server.aclose()
    errors = [one["payload"] for one in seen if one["type"] == "error"]
    assert code == 1013
    assert [(one["code"], one["retryable"]) for one in errors] == [(19, True)]
    assert "ledger cannot be written" in errors[0]["error"]
    assert str(tmp_path) not in json.dumps(errors)
    assert posted.status_code == 503
    assert posted.json()[0]["payload"]["retryable"] is True
    assert (chat.status_code, health.status_code) == (200, 200)
    assert len(texts(seen)) > 1000
    assert chat.json()["messages"][1]["content"] == texts(seen)
    assert texts(back) == texts(seen)


async def while_it_refuses(server: Process) -> list[httpx.Response]:
    """Tries to write, and to read, over HTTP."""
    said = {"v": 1, "type": "input", "session_id": "s", "input_type": "text"}
    async with httpx.AsyncClient(base_url=server.http) as client:
        return [
            await client.post("/_arp/v1/input", json={**said, "data": {"text": "ask"}}),
            await client.get("/_api/chats/s"),
            await client.get("/health"),
        ]
