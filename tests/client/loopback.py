"""Servers on loopback for these tests: a WebSocket one, and HTTP spelled out byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message as Headers
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from tests.client import agent_messages as say
from tests.client.agent_messages import decoded, encoded

SUBPROTOCOLS: list[Any] = [f"arp.session.v1.{name}" for name in ("json", "msgpack", "cbor")]


class Peer:
    """The server's end of a WebSocket connection, in the words of these tests."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        self.encoding = (socket.subprotocol or "json").rpartition(".")[2]

    async def say(self, *messages: Any) -> None:
        for message in messages:
            frame = encoded(message, self.encoding)
            await self.socket.send(frame, text=self.encoding == "json")

    async def hear(self) -> Any:
        frame = await self.socket.recv()
        assert isinstance(frame, str) is (self.encoding == "json")
        return decoded(frame, self.encoding)

    async def welcome(self, resume: str = "new", seq: int = 0) -> Any:
        """Says hello, hears hello, names the session; gives what it heard."""
        await self.say(say.HELLO)
        heard = await self.hear()
        assert heard["type"] == "hello"
        await self.say(say.session(resume, seq))
        return heard

    def cut(self) -> None:
        """Ends the connection without a word."""
        self.socket.transport.abort()


Talk = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def websocket_server(talk: Talk, **settings: Any) -> AsyncIterator[str]:
    """Return the address of a server that talks so with each client."""

    async def handler(socket: ServerConnection) -> None:
        await talk(Peer(socket))

    def select(_: ServerConnection, offered: Sequence[Any]) -> Any:
        return next((name for name in SUBPROTOCOLS if name in offered), None)

    settings = {"select_subprotocol": select, "compression": None, **settings}
    async with serve(handler, "127.0.0.1", 0, **settings) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/_arp/v1"


@dataclass
class Request:
    """One request, whole."""

    method: str
    target: str
    headers: Headers
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def parts(self) -> list[tuple[str, str | None, str, Any]]:
        """Name, file name, type and content of each part of a multipart body."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + self.body)
        return [
            (
                str(part.get_param("name", header="content-disposition")),
                part.get_filename(),
                part.get_content_type(),
                part.get_payload(decode=True),
            )
            for part in form.iter_parts()
        ]


class Answer:
    """Writes the answer to one request."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def send(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        await self.writer.drain()

    async def stream(self) -> None:
        """Begins an event stream, which ends when the connection does."""
        self.writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Connection: close\r\n\r\n"
        )
        await self.writer.drain()

    async def event(self, message: Any) -> None:
        await self.raw(b"id: e1-0\ndata: " + encoded(message) + b"\n\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def cut(self) -> None:
        self.writer.transport.abort()


Serve = Callable[[Request, Answer], Awaitable[None]]


@asynccontextmanager
async def http_server(answer: Serve) -> AsyncIterator[str]:
    """Return the address of a server that answers each request so."""
    running: set[asyncio.Task[None]] = set()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await answer(await read_request(reader), Answer(writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    line, _, rest = head.partition(b"\r\n")
    method, target, _ = line.decode().split(" ")
    headers = BytesParser(policy=HTTP).parsebytes(rest)
    body = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return Request(method, target, headers, body)
