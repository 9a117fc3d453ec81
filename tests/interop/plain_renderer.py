"""A renderer in the object dialect, written from the draft alone, on any transport that carries it.

It offers version 1 of each interface and no conversation, answers `sync` with an empty payload, and
keeps what its surfaces show. The test plays its user.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cbor2
import grpc.aio
import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from arp.protocol.framing.envelope import CONNECT, seal, unseal

INTERFACES = ("ArpCompositor", "ArpInput", "ArpShell", "ArpSession")
COMPONENTS = ("component:table", "component:status-card")

WRITE: dict[str, Callable[[Any], bytes]] = {
    "json": lambda message: json.dumps(message).encode(),
    "msgpack": msgspec.msgpack.encode,
    "cbor": cbor2.dumps,
}
READ: dict[str, Callable[[bytes], Any]] = {
    "json": json.loads,
    "msgpack": msgspec.msgpack.decode,
    "cbor": cbor2.loads,
}

Send = Callable[[Any], Any]


class PlainRenderer:
    """One connection, and what shows on it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._seq = 0
        self.objects: dict[str, int] = {}
        self.names: dict[str, int] = {}
        """Globals by interface."""
        self.registry = 0
        self.surface = 0
        self.toplevel = 0
        self.serial = 9
        self.tree: dict[str, dict[str, Any]] = {}
        self.got: list[dict[str, Any]] = []
        """Every message of the agent side."""
        self.pending: list[dict[str, Any]] = []
        self.finals = 0
        self.is_gone = asyncio.Event()
        self._came = asyncio.Event()

    async def say(self, object_id: int, op: str, **payload: Any) -> int:
        self._seq += 1
        number = self._seq  # another message may be sent meanwhile
        message = {"v": 1, "id": object_id, "op": op, "seq": number, "payload": payload}
        await self._send(message)
        return number

    async def act(self, kind: str, data: dict[str, Any], **more: Any) -> int:
        """Sends an input; the number of its message."""
        self.serial += 1
        given = {"surface_id": self.surface, "serial": self.serial, "type": kind, "data": data}
        return await self.say(self.objects["ArpInput"], "input", **given, **more)

    async def configure(self, *states: str) -> None:
        await self.say(self.toplevel, "configure", width=800, height=600, states=list(states))

    def ops(self, *names: str) -> list[dict[str, Any]]:
        return [one for one in self.got if one["op"] in names]

    async def until(self, ready: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not ready():
                assert not self.is_gone.is_set(), self.got[-3:]
                self._came.clear()
                await self._came.wait()

    async def take(self, frame: Any) -> None:
        for message in frame if isinstance(frame, list) else [frame]:
            self.got.append(message)
            await self._take(message["id"], message["op"], message["seq"], message["payload"])
        self._came.set()

    async def _take(self, object_id: int, op: str, number: int, payload: dict[str, Any]) -> None:
        match op:
            case "get_registry":
                self.registry = payload["new_id"]
                for name, interface in enumerate((*INTERFACES, *COMPONENTS), 1):
                    self.names[interface] = name
                    offered = {"name": name, "interface": interface, "version": 1}
                    await self.say(self.registry, "global", **offered)
            case "bind":
                self.objects[payload["interface"]] = payload["new_id"]
            case "sync":
                await self.say(payload["callback_id"], "done")
            case "create_surface" if not self.surface:
                self.surface = payload["new_id"]
            case "get_toplevel" if payload["surface_id"] == self.surface:
                self.toplevel = payload["new_id"]
                await self.configure("activated")
            case "render" | "patch" if object_id == self.surface:
                self.pending.append(payload)
            case "commit" if object_id == self.surface:
                self._commit()
                self.finals += payload.get("final", False)
                await self.say(self.surface, "frame_ack", commit_seq=number)
            case _:
                pass

    def _commit(self) -> None:
        for change in self.pending:
            if change.get("replace"):
                self.tree.clear()
            for one in change.get("components", ()):
                self.tree[one["id"]] = one
            for op in change.get("ops", ()):
                if "component" in op:
                    self.tree[op["component"]["id"]] = op["component"]
                elif op["op"] == "remove":
                    del self.tree[op["target"]]
                elif op["op"] == "update":
                    *keys, last = op["path"].split(".")
                    place: Any = self.tree[op["target"]]
                    for key in keys:
                        place = place[key]
                    place[last] = op["value"]
        self.pending.clear()


async def _reading(renderer: PlainRenderer, receive: Callable[[], Any]) -> None:
    try:
        while True:
            await renderer.take(await receive())
    except (ConnectionClosed, EOFError, asyncio.IncompleteReadError, grpc.RpcError):
        renderer.is_gone.set()
        renderer._came.set()


@asynccontextmanager
async def _reads(renderer: PlainRenderer, receive: Callable[[], Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(_reading(renderer, receive))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


@asynccontextmanager
async def on_socket(url: str, encoding: str) -> AsyncIterator[PlainRenderer]:
    async with connect(url, subprotocols=[Subprotocol(f"arp.v1.{encoding}")]) as socket:

        async def receive() -> Any:
            return READ[encoding](await socket.recv(decode=False))

        renderer = PlainRenderer(
            lambda message: socket.send(WRITE[encoding](message), text=encoding == "json")
        )
        async with _reads(renderer, receive):
            yield renderer


@asynccontextmanager
async def on_unix(path: str) -> AsyncIterator[PlainRenderer]:
    reader, writer = await asyncio.open_unix_connection(path)

    async def send(message: Any) -> None:
        frame = WRITE["msgpack"](message)
        writer.write(struct.pack(">I", len(frame)) + frame)
        await writer.drain()

    async def receive() -> Any:
        (size,) = struct.unpack(">I", await reader.readexactly(4))
        if size == 0:
            raise EOFError
        return READ["msgpack"](await reader.readexactly(size))

    renderer = PlainRenderer(send)
    async with _reads(renderer, receive):
        yield renderer
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def on_grpc(address: str) -> AsyncIterator[PlainRenderer]:
    async with grpc.aio.insecure_channel(address.removeprefix("grpc:")) as channel:
        method: Any = channel.stream_stream(CONNECT)
        call = method(metadata=(("arp-dialect", "object"),))

        async def receive() -> Any:
            data = await call.read()
            if data is grpc.aio.EOF:
                raise EOFError
            return READ["json"](unseal(data).frame)

        writing = asyncio.Lock()  # gRPC takes one write at a time, and two tasks here write

        async def send(message: Any) -> None:
            async with writing:
                await call.write(seal(WRITE["json"](message), "object"))

        renderer = PlainRenderer(send)
        async with _reads(renderer, receive):
            yield renderer
        call.cancel()


@asynccontextmanager
async def on_stdio(agent: Path) -> AsyncIterator[PlainRenderer]:
    command = [sys.executable, "-m", "arp", "serve", str(agent), "--stdio", "--dialect", "object"]
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, stdout = child.stdin, child.stdout

    async def send(message: Any) -> None:
        stdin.write(WRITE["json"](message) + b"\n")
        await stdin.drain()

    async def receive() -> Any:
        line = await stdout.readline()
        if not line:
            raise EOFError
        return READ["json"](line)

    renderer = PlainRenderer(send)
    async with _reads(renderer, receive):
        yield renderer
    stdin.close()
    await child.wait()
