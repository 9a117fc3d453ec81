"""WebSocket frames as bytes, encoded once for all sockets that get the same.

A server's data frames carry no mask, so the bytes on the wire are the same for every renderer of a
group. Source: RFC 6455, 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from arp.view.frames import Frames

TEXT = 0x81
"""A whole text message: FIN and opcode 1."""
BINARY = 0x82
"""A whole binary message: FIN and opcode 2."""

PIECE_BYTES = 64 << 10
"""How much of the queue a socket gets at once; a longer message is sent in fragments."""

_REST = 0x00
_LAST = 0x80
"""The first byte of a fragment that continues a message, and of the last one (RFC 6455, 5.4)."""

SHORT, MEDIUM = 125, 0xFFFF
"""The longest payloads whose length fits into one byte, and into two more."""


_medium = Struct(">BBH").pack
_long = Struct(">BBQ").pack


class Wire(Protocol):
    """A socket that accepts encoded frames; a server may offer it in `scope["extensions"]`."""

    def can_write(self) -> bool:
        """Return whether bytes may be written now, without waiting."""

    def write(self, data: bytes) -> None:
        """Send bytes after those that were sent before."""

    when_writable: Callable[[], None]
    """Is called when bytes may be written again."""


EXTENSION = "arp.wire"
"""Its name among the ASGI extensions of a scope."""


def one_piece(frames: Sequence[bytes], opcode: int) -> bytes | None:
    """Return messages as they are on the wire; `None` if they are too many for one piece.

    `Frames` remember the bytes, so that all sockets of a group send the same.
    """
    if not isinstance(frames, Frames):
        return _join(frames, opcode) if sum(map(len, frames)) <= PIECE_BYTES else None
    if frames.wire is None and sum(map(len, frames)) <= PIECE_BYTES:
        frames.wire = _join(frames, opcode)
    return frames.wire


class Backlog:
    """The queue of messages for a socket, which takes them in pieces of a bounded size.

    Frames stay as they are, so that several sockets share them; a piece is made when the socket
    takes it. A control frame may go between any two pieces.
    """

    __slots__ = ("_first", "_frames", "_opcode", "_place", "size")

    def __init__(self, opcode: int) -> None:
        self._opcode = opcode
        self._frames: deque[bytes] | None = None
        """Made for the first message: an empty one has 760 bytes, and few sockets need it."""
        self._first: bytes | None = None
        """Is sent before the others."""
        self._place = 0
        """How much of the first of `_frames` was taken."""
        self.size = 0
        """Bytes in the queue, without frame headers."""

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return self._first is not None or bool(self._frames)

    def add(self, frames: Sequence[bytes]) -> None:
        """Append messages."""
        if self._frames is None:
            self._frames = deque()
        self._frames.extend(frames)
        self.size += sum(map(len, frames))

    def add_first(self, frame: bytes) -> None:
        """Put a message before the others, in place of one that was put there before."""
        self.size += len(frame) - len(self._first or b"")
        self._first = frame

    def frames(self) -> list[bytes]:
        """Return the messages that wait; the first is whole, also if a part of it was taken."""
        return [*(() if self._first is None else (self._first,)), *(self._frames or ())]

    def clear(self) -> None:
        """Drop what waits."""
        self._frames = self._first = None
        self._place = self.size = 0

    def next(self) -> bytes:
        """Return the next message, as it is."""
        frame = self._take_first() or self._waiting().popleft()
        self.size -= len(frame)
        return frame

    def take(self) -> bytes:
        """Return the next piece, as it is on the wire."""
        if not self._place and (ahead := self._take_first()):
            self.size -= len(ahead)
            return _join([ahead], self._opcode)
        waiting = self._waiting()
        first = waiting[0]
        if self._place or len(first) > PIECE_BYTES:
            return self._fragment(first)
        frames, size = [waiting.popleft()], len(first)
        while waiting and size + len(waiting[0]) <= PIECE_BYTES:
            size += len(waiting[0])
            frames.append(waiting.popleft())
        self.size -= size
        return _join(frames, self._opcode)

    def _take_first(self) -> bytes | None:
        first, self._first = self._first, None
        return first

    def _waiting(self) -> deque[bytes]:
        assert self._frames is not None  # callers check first that the queue is not empty
        return self._frames

    def _fragment(self, message: bytes) -> bytes:
        begin, end = self._place, self._place + PIECE_BYTES
        piece = message[begin:end]
        self.size -= len(piece)
        head = _REST if begin else self._opcode & ~_LAST
        if end >= len(message):
            head |= _LAST
            self._waiting().popleft()
            end = 0
        self._place = end
        return _head(len(piece), head) + piece


def _join(frames: Sequence[bytes], opcode: int) -> bytes:
    if len(frames) == 1:
        (frame,) = frames
        return _head(len(frame), opcode) + frame
    return b"".join([part for one in frames for part in (_head(len(one), opcode), one)])


def _head(length: int, opcode: int) -> bytes:
    if length <= SHORT:
        return bytes((opcode, length))
    if length <= MEDIUM:
        return _medium(opcode, 126, length)
    return _long(opcode, 127, length)
