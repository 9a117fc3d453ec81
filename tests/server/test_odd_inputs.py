"""Inputs of every type with nothing, too little or something odd in them, over every transport.

Each is answered, by an `ack` or by an error with a code, whether its id is new or was used before;
the connection lives on, and the log has no traceback.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import cbor2
import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from arp.protocol.codec import Encoding
from tests.server.scripted import app
from tests.support.serving import Serving, serving

WAIT_S = 30.0

TYPES = [
    "text",
    "action",
    "form_submit",
    "selection",
    "file",
    "gesture",
    "voice",
    "navigate",
    "focus",
    "unfocus",
    "resize",
]
ODD: list[Any] = [
    {},
    {"x": None},
    {"text": [], "action": {}, "selected": 1, "files": {}, "gesture": 0, "route": []},
    {"action": "", "fields": [], "selected": [{}], "transcript": True, "width": {}, "height": -1},
    {"action": "arp.cancel", "payload": [], "fields": {"": {}}, "width": 1e300, "height": "1"},
    {"width": None, "height": None, "files": [None], "params": 3, "meta": [], "confidence": {}},
]

Ask: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends a message and gives what answers it: the first `ack` or `error`."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@asynccontextmanager
async def by_socket(server: Serving, encoding: Encoding) -> AsyncIterator[Ask]:
    codec: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "json": (lambda value: msgspec.json.encode(value).decode(), msgspec.json.decode),
        "msgpack": (msgspec.msgpack.encode, msgspec.msgpack.decode),
        "cbor": (cbor2.dumps, cbor2.loads),
    }
    encode, decode = codec[encoding]
    name: Any = f"arp.session.v1.{encoding}"
    async with connect(server.ws, subprotocols=[name]) as socket:

        async def ask(message: dict[str, Any]) -> Any:
            await socket.send(encode(message))
            while True:
                heard = decode(await socket.recv())
                if heard["type"] in ("ack", "error"):
                    return heard

        yield ask


@asynccontextmanager
async def by_post(server: Serving) -> AsyncIterator[Ask]:
    async with httpx.AsyncClient(base_url=server.http, timeout=WAIT_S) as client:

        async def ask(message: dict[str, Any]) -> Any:
            (heard,) = (await client.post("/_arp/v1/input", json=message)).json()
            return heard

        yield ask


@asynccontextmanager
async def by_stdio() -> AsyncIterator[Ask]:
    agent = str(Path(__file__).with_name("scripted.py"))
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "arp.cli", "serve", agent, "--stdio"]
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    stdin, stdout, stderr = child.stdin, child.stdout, child.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None

    async def ask(message: dict[str, Any]) -> Any:
        stdin.write(msgspec.json.encode(message) + b"\n")
        while True:
            heard = msgspec.json.decode(await stdout.readline())
            if heard["type"] in ("ack", "error"):
                return heard

    try:
        yield ask
    finally:
        stdin.close()
        await asyncio.gather(stdout.read(), child.wait())
    assert b"Traceback" not in await stderr.read()


@pytest.mark.parametrize("transport", ["json", "msgpack", "cbor", "post", "stdio"])
async def test_odd_input_is_answered_by_an_ack_or_a_code(
    server: Serving, transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """protocol.md 5: the connection lives on after every error."""
    over = {"post": lambda: by_post(server), "stdio": by_stdio}
    opened = over.get(transport, lambda: by_socket(server, transport))
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(2 * WAIT_S), opened() as ask:
            await asked_oddly(ask, f"odd-{transport}")
    assert [record.getMessage() for record in caplog.records] == []


async def asked_oddly(ask: Ask, session_id: str) -> None:
    head = {"v": 1, "type": "input", "session_id": session_id}
    used = await ask({**head, "input_type": "text", "data": {"text": "wait"}, "id": "used"})
    assert used["turn_id"] == "t1"
    codes = set[int]()
    for input_type in TYPES:
        for number, data in enumerate(ODD):
            for input_id in ("used", f"{input_type}-{number}"):
                more = {"source_component": "" if number % 2 else "nothing"}
                message = {**head, "input_type": input_type, "data": data, "id": input_id}
                heard = await ask({**message, **(more if number > 1 else {})})
                if heard["type"] == "error":
                    assert heard["payload"]["id"] == input_id
                    codes.add(heard["payload"]["code"])
                else:
                    assert heard["id"] == input_id
    assert codes <= {1, 4, 11}
    resize = await ask({**head, "input_type": "resize", "data": {}, "id": "used"})
    assert (resize["payload"]["code"], resize["payload"]["detail"]) == (11, "data")
    alive = await ask({**head, "input_type": "text", "data": {"text": "wait"}, "id": "alive"})
    assert alive["type"] == "ack"
