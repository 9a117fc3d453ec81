"""Many WebSockets of one server, read by one loop that only keeps the bytes and when they came.

It reads as fast as the kernel hands out; what was said is worked out afterwards (`heard.py`).
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
"""Nothing here takes as long."""

READ_BYTES = 1 << 18

Chunk = tuple[int, bytes]
"""When it came, on the monotonic clock, in nanoseconds; and what."""

_UPGRADE = (
    "GET /_arp/v1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Socket:
    """One connection, with what came over it."""

    __slots__ = ("_found", "chunks", "raw")

    def __init__(self, port: int) -> None:
        self.chunks: list[Chunk] = []
        self._found = b""
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

    def tell(self, text: str) -> None:
        """Sends one text message. Its mask is zero, which leaves the bytes as they are."""
        body = text.encode()
        size = bytes((0x80 | len(body),)) if len(body) < 126 else struct.pack(">BH", 254, len(body))
        self.raw.sendall(b"\x81" + size + bytes(4) + body)

    def read(self, needle: bytes) -> bool:
        """Takes what is there; tells whether `needle` has come with it."""
        data = self.raw.recv(READ_BYTES)
        if not data:
            raise RuntimeError("the server closed a connection")
        self.chunks.append((time.monotonic_ns(), data))
        seen = self._found + data
        self._found = seen[-len(needle) :] if needle else b""
        return bool(needle) and needle in seen


class Crowd:
    """Renderers of one server. All are on sessions of their own, or on the one that is named."""

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
        """Connects more renderers and waits until each is attached to its session."""
        fresh = [Socket(self._port) for _ in range(count)]
        for member in fresh:
            self.members.append(member)
            self._selector.register(member.raw, selectors.EVENT_READ, member)
            member.tell(self._hello)
        self.wait_for(b'"type":"session"', fresh)

    def wait_for(self, needle: bytes, whom: Iterable[Socket] | None = None) -> None:
        """Reads until each has got `needle`, in one piece or two."""
        missing = set(self.members if whom is None else whom)
        deadline = time.monotonic() + TIMEOUT_S
        while missing:
            for key, _ in self._selector.select(1.0):
                if key.data.read(needle):
                    missing.discard(key.data)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(missing)} renderers never got {needle!r}")

    def read_until(self, time_ns: int) -> None:
        """Reads up to a time of the monotonic clock."""
        while (left := time_ns - time.monotonic_ns()) > 0:
            for key, _ in self._selector.select(left / 1e9):
                key.data.read(b"")

    def forget(self) -> None:
        """Drops what came so far."""
        for member in self.members:
            member.chunks.clear()
