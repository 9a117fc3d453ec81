"""A proxy whose connections a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def broken_proxy(url: str) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """Give the port of a proxy, and a function that cuts all of its connections."""
    _, _, port = url.rpartition(":")
    writers: set[asyncio.StreamWriter] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", int(port))
        writers.update((writer, back))
        await asyncio.gather(copy(reader, back), copy(there, writer))

    def cut() -> None:
        for writer in writers:
            writer.transport.abort()
        writers.clear()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], cut
        cut()
