"""`CheckedProxy`: an HTTP proxy on 127.0.0.1 that connects to checked addresses only.

A browser opens its own sockets, so the check takes place in this proxy, the only address that the
browser can reach. The proxy resolves each name, checks the addresses by the rules, and connects to
a checked one. It supports `CONNECT` and, for `http:` URLs, requests with an absolute URL.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import httpcore

from arp.tools.errors import ToolAgentError
from arp.tools.run.addresses import AddressRules, resolved_and_allowed

logger = logging.getLogger(__name__)

MAX_HEAD: Final = 64 * 2**10
CONNECT_S: Final = 15.0
IDLE_S: Final = 120.0
HEAD_S: Final = 10.0
"""Time limit for receiving the head of a request, in seconds."""
MAX_CONNECTIONS: Final = 256
"""Maximum number of open connections; further ones are closed. A browser uses a few per host."""

REFUSED_BY: Final = "x-arp-refused"
"""Header that marks the proxy's own answer to a request that it refuses."""

_REFUSED: Final = (
    b"HTTP/1.1 403 Forbidden\r\nx-arp-refused: address\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)
_FAILED: Final = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class CheckedProxy:
    """HTTP proxy that checks addresses; `start` begins and `aclose` ends it.

    Args:
        rules: Addresses that may be reached.
    """

    def __init__(self, rules: AddressRules) -> None:
        self.rules = rules
        self.refused: list[str] = []
        """Most recent hosts that were refused."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """URL of the proxy."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, limit=MAX_HEAD)

    async def aclose(self) -> None:
        """Close the proxy and all its connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            logger.debug("a connection of the proxy ended")
        except asyncio.CancelledError:
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = head.partition(b"\r\n")
        method, target, _ = first.decode("latin-1").split(" ", 2)
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname or "", parts.port or 80
        try:
            away_reader, away_writer = await self._connect(host, port)
        except ToolAgentError:
            self.refused = [*self.refused[-20:], f"{host}:{port}"]
            writer.write(_REFUSED)
            return await writer.drain()
        except (OSError, httpcore.ConnectError):
            writer.write(_FAILED)
            return await writer.drain()
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                away_writer.write(_for_server(method, parts.path, parts.query, rest))
            await _join(reader, away_writer, away_reader, writer)
        finally:
            away_writer.close()
        return None

    async def _connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        failed: OSError = OSError(f"{host} has no address")
        for address in await resolved_and_allowed(self.rules, host, port):
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(str(address), port)
            except OSError as error:
                failed = error
        raise failed


def _for_server(method: str, path: str, query: str, rest: bytes) -> bytes:
    """Return the head of a request for the server; the connection carries this one request only."""
    target = (path or "/") + (f"?{query}" if query else "")
    dropped = (b"proxy-", b"connection:", b"keep-alive:")
    lines = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(dropped)]
    head = [f"{method} {target} HTTP/1.1".encode("latin-1"), *lines, b"Connection: close"]
    return b"\r\n".join(head) + b"\r\n\r\n"


async def _join(
    reader: asyncio.StreamReader,
    away_writer: asyncio.StreamWriter,
    away_reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Copy bytes in both directions until the server has ended or nothing arrives for `IDLE_S`."""
    up = asyncio.create_task(_carry(reader, away_writer))
    try:
        await _carry(away_reader, writer)
    finally:
        up.cancel()
        with suppress(asyncio.CancelledError):
            await up


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while True:
            async with asyncio.timeout(IDLE_S):
                data = await reader.read(2**16)
            if not data:
                break
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
