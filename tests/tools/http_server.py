"""A small HTTP server of 127.0.0.1 for tests: each path answers as a function says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple


class Asked(NamedTuple):
    """A request that came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answers = Callable[[Asked], bytes | None]


def ok(value: object, kind: str = "application/json", status: str = "200 OK") -> bytes:
    """Return an answer as it goes over the wire."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + data


class HttpServer:
    """What was asked, and where it is."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []


@asynccontextmanager
async def answering(answers: Answers) -> AsyncIterator[HttpServer]:
    """Serve; an answer of `None` means that nothing is ever answered."""
    open_: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                asked = await read(reader)
                server.asked.append(asked)
                answer = answers(asked)
                if answer is None:
                    await reader.read()
                else:
                    writer.write(answer)
                    await writer.drain()
        finally:
            open_.discard(task)
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server = HttpServer(listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for task in list(open_):
            task.cancel()
        if open_:
            await asyncio.wait(open_)
        await listening.wait_closed()


async def read(reader: asyncio.StreamReader) -> Asked:
    """Read a request."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    named = (line.partition(": ") for line in lines if line)
    headers = {name.lower(): value for name, _, value in named}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)
