"""Simulate a network that fails silently: a proxy that stops passing bytes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class HoldingProxy:
    """TCP proxy that can stop passing bytes on without closing any connection.

    Args:
        port: Port of the server on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.free = asyncio.Event()
        """Set while the proxy passes bytes on; clear it to hold all bytes back.

        A new event here applies to new connections; earlier ones keep theirs.
        """
        self.free.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Run the proxy until the block ends, and yield its address."""
        tasks: set[asyncio.Task[None]] = set()
        writers: set[asyncio.StreamWriter] = set()

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            free = self.free
            with suppress(OSError):
                while data := await reader.read(1 << 16):
                    await free.wait()
                    writer.write(data)
                    await writer.drain()
                writer.close()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            other, out = await asyncio.open_connection("127.0.0.1", self._port)
            writers.update((writer, out))
            for pair in ((reader, out), (other, writer)):
                tasks.add(asyncio.create_task(pump(*pair)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in writers:
                writer.transport.abort()
