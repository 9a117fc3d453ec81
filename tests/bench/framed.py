"""Renderers over Unix sockets and gRPC that store what they receive, each in its own thread."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any, Protocol

import grpc
import msgspec
from msgspec import Struct

from arp.client.options import renderer_hello
from arp.protocol.codec import Encoding, encode, recode
from arp.protocol.framing.envelope import CONNECT, seal, unseal
from arp.protocol.framing.length_prefix import FrameSplitter, prefixed
from tests.bench.plan import END, Plan, order

TIMEOUT_S = 60.0
READ_BYTES = 1 << 18

SESSION, FINAL = b"session", {"msgpack": b"\xa5final\xc3", "json": b'"final":true'}


class Way(Struct, frozen=True):
    """One transport of a server, with its address: a path for `unix`, or HOST:PORT for `grpc`."""

    name: str
    unix: str = ""
    grpc: str = ""

    @property
    def encoding(self) -> Encoding:
        """The default encoding of the transport."""
        return "msgpack" if self.unix else "json"


class Carrier(Protocol):
    """One connection."""

    frames: list[bytes]
    """The received frames."""

    def send(self, frame: bytes) -> None: ...

    def close(self) -> None: ...


class Wanted:
    """Waits for bytes in a received frame, or in a piece of the stream."""

    def __init__(self) -> None:
        self._needle = b"\0never"
        self._found = threading.Event()

    def expect(self, needle: bytes) -> None:
        self._found.clear()
        self._needle = needle

    def look(self, data: bytes) -> None:
        if self._needle in data:
            self._found.set()

    def wait(self) -> None:
        if not self._found.wait(TIMEOUT_S):
            raise TimeoutError(f"{self._needle!r} was not received")


class UnixCarrier:
    """A Unix socket; the stream is split into frames when `frames` is read."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self._raw = socket.socket(socket.AF_UNIX)
        self._raw.connect(path)
        self._chunks: list[bytes] = []
        self._wanted = wanted
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        tail = b""
        while data := self._raw.recv(READ_BYTES):
            self._chunks.append(data)
            self._wanted.look(tail + data)
            tail = data[-32:]

    def send(self, frame: bytes) -> None:
        self._raw.sendall(prefixed([frame]))

    @property
    def frames(self) -> list[bytes]:
        return FrameSplitter(1 << 30).feed(b"".join(self._chunks))

    @frames.setter
    def frames(self, value: list[bytes]) -> None:
        assert not value
        self._chunks.clear()

    def close(self) -> None:
        self._raw.shutdown(socket.SHUT_RDWR)


class GrpcCarrier:
    """A call on a channel of its own."""

    def __init__(self, target: str, wanted: Wanted) -> None:
        self.frames: list[bytes] = []
        self._envelopes: list[bytes] = []
        self._wanted = wanted
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(target, options=options)
        connect: Any = self._channel.stream_stream(CONNECT)
        self._call = connect(self._requests())
        threading.Thread(target=self._read, daemon=True).start()

    def _requests(self) -> Iterator[bytes]:
        while (frame := self._out.get()) is not None:
            yield seal(frame)

    def _read(self) -> None:
        try:
            for data in self._call:
                frame = unseal(data).frame
                self.frames.append(frame)
                self._wanted.look(frame)
        except grpc.RpcError:
            pass  # the call was closed

    def send(self, frame: bytes) -> None:
        self._out.put(frame)

    def close(self) -> None:
        self._out.put(None)
        self._call.cancel()
        self._channel.close()


class Renderers:
    """Several renderers of one server, each on its own session, or all on one."""

    def __init__(self, way: Way, count: int, session_id: str | None = None) -> None:
        self._way = way
        hello = encode(renderer_hello({"session_id": session_id}), way.encoding)
        self.wanted = [Wanted() for _ in range(count)]
        self.members: list[Carrier] = []
        for wanted in self.wanted:
            wanted.expect(SESSION)
            member: Carrier = (
                UnixCarrier(way.unix, wanted) if way.unix else GrpcCarrier(way.grpc, wanted)
            )
            member.send(hello)
            self.members.append(member)
        for wanted in self.wanted:
            wanted.wait()

    def __enter__(self) -> Renderers:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.close()

    def expect(self, needle: bytes) -> None:
        """Drop the received frames; `wait` then waits for `needle`."""
        for member, wanted in zip(self.members, self.wanted, strict=True):
            member.frames = []
            wanted.expect(needle)

    def order(self, plan: Plan, *, everybody: bool) -> None:
        """Send a plan from the first renderer, or from each."""
        frame = recode(order(plan).encode(), self._way.encoding)
        for member in self.members if everybody else self.members[:1]:
            member.send(frame)

    def wait(self) -> None:
        for wanted in self.wanted:
            wanted.wait()

    def check(self, tokens: int) -> int:
        """Check that every renderer received every token; return the number of frames.

        Raises:
            AssertionError: Tokens are missing.
        """
        count = 0
        for member in self.members:
            frames = member.frames
            count += len(frames)
            text = "".join(_text(frame, self._way.encoding) for frame in frames)
            if len(text) != tokens * len(END) or not text.endswith(END):
                raise AssertionError(f"received {len(text) // len(END)} of {tokens} tokens")
        return count


def _text(frame: bytes, encoding: Encoding) -> str:
    decode = msgspec.msgpack.decode if encoding == "msgpack" else msgspec.json.decode
    decoded = decode(frame)
    messages = decoded if isinstance(decoded, list) else [decoded]
    return "".join(one["payload"]["delta"] for one in messages if one["type"] == "delta")
