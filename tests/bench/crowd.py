"""Many WebSockets of one server, read by one loop that only stores the bytes and their times.

It reads as fast as the kernel delivers; the text is decoded afterwards (`received.py`).
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable

from arp.client.options import renderer_hello
from arp.protocol.codec import encode_json

TIMEOUT_S = 60.0
"""A wait that takes longer fails."""

READ_BYTES = 1 << 18

Chunk = tuple[int, bytes]
"""The time of receipt, in nanoseconds of the monotonic clock, and the bytes."""

_UPGRADE = (
    "GET /_arp/v1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Socket:
    """One connection, with the bytes that it has received."""

    __slots__ = ("_tail", "chunks", "raw")

    def __init__(self, port: int) -> None:
        self.chunks: list[Chunk] = []
        self._tail = b""
        self.raw = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.raw.sendall(_UPGRADE.format(port=port).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += (part := self.raw.recv(4096))
            if not part:
                break
        head, _, rest = answer.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise RuntimeError(f"no WebSocket: {head[:80]!r}")
        self.chunks.append((time.monotonic_ns(), rest))

    def send(self, text: str) -> None:
        """Send one text message, with a mask of zeros, which leaves the bytes unchanged."""
        body = text.encode()
        size = bytes((0x80 | len(body),)) if len(body) < 126 else struct.pack(">BH", 254, len(body))
        self.raw.sendall(b"\x81" + size + bytes(4) + body)

    def read(self, needle: bytes) -> bool:
        """Read what is available; return whether `needle` was in it."""
        data = self.raw.recv(READ_BYTES)
        if not data:
            raise RuntimeError("the server closed a connection")
        self.chunks.append((time.monotonic_ns(), data))
        joined = self._tail + data  # `needle` may be split between two reads
        self._tail = joined[-len(needle) :] if needle else b""
        return bool(needle) and needle in joined


class Crowd:
    """Renderers of one server, each on its own session, or all on one session.

    Args:
        port: Of the server.
        count: How many renderers connect at first.
        session_id: The session of all; `None`: each has its own.
    """

    def __init__(self, port: int, count: int, session_id: str | None = None) -> None:
        self.members: list[Socket] = []
        self._selector = selectors.DefaultSelector()
        self._port = port
        self._hello = encode_json(renderer_hello({"session_id": session_id})).decode()
        self.grow(count)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.raw.close()
        self._selector.close()

    def grow(self, count: int) -> None:
        """Connect more renderers, and wait until each is attached to its session."""
        new = [Socket(self._port) for _ in range(count)]
        for member in new:
            self.members.append(member)
            self._selector.register(member.raw, selectors.EVENT_READ, member)
            member.send(self._hello)
        self.wait_for(b'"type":"session"', new)

    def wait_for(self, needle: bytes, members: Iterable[Socket] | None = None) -> None:
        """Read until each of the members (`None`: all) has received `needle`.

        Raises:
            TimeoutError: Some have not received it within `TIMEOUT_S`.
        """
        missing = set(self.members if members is None else members)
        deadline = time.monotonic() + TIMEOUT_S
        while missing:
            for key, _ in self._selector.select(1.0):
                if key.data.read(needle):
                    missing.discard(key.data)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(missing)} renderers did not receive {needle!r}")

    def read_until(self, time_ns: int) -> None:
        """Read until a time of the monotonic clock."""
        while (left := time_ns - time.monotonic_ns()) > 0:
            for key, _ in self._selector.select(left / 1e9):
                key.data.read(b"")

    def forget(self) -> None:
        """Drop the bytes received so far."""
        for member in self.members:
            member.chunks.clear()
