"""WebSocket frames as bytes, encoded once for all sockets that send the same messages.

Data frames of a server are not masked, so their bytes are equal for every renderer of a group.

Source: RFC 6455, 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from arp.view.frames import Frames

TEXT = 0x81
"""First byte of a complete text message: FIN and opcode 1."""
BINARY = 0x82
"""First byte of a complete binary message: FIN and opcode 2."""

PIECE_BYTES = 64 << 10
"""Largest number of payload bytes in one write; a longer message is sent in fragments."""

_REST = 0x00
_LAST = 0x80
"""First byte of a continuation fragment, and its bit in the last fragment (RFC 6455, 5.4)."""

SHORT, MEDIUM = 125, 0xFFFF
"""Longest payloads with a length field of one byte and of two additional bytes."""


_medium = Struct(">BBH").pack
_long = Struct(">BBQ").pack


class Wire(Protocol):
    """A socket that sends encoded frames; a server may offer it in `scope["extensions"]`."""

    def can_write(self) -> bool:
        """Return whether bytes can be written now without waiting."""

    def write(self, data: bytes) -> None:
        """Send bytes after all earlier ones."""

    when_writable: Callable[[], None]
    """Called when bytes can be written again."""


EXTENSION = "arp.wire"
"""Name of the ASGI extension that offers a `Wire`."""


def one_piece(frames: Sequence[bytes], opcode: int) -> bytes | None:
    """Return encoded messages; `None` if they are longer than one piece.

    `Frames` cache the result, so that all sockets of a group share it.
    """
    if not isinstance(frames, Frames):
        # Most deltas are one frame for one renderer, which needs no sum and no join.
        if len(frames) == 1:
            (frame,) = frames
            return _message(frame, opcode) if len(frame) <= PIECE_BYTES else None
        return _join(frames, opcode) if sum(map(len, frames)) <= PIECE_BYTES else None
    if frames.wire is None and sum(map(len, frames)) <= PIECE_BYTES:
        frames.wire = _join(frames, opcode)
    return frames.wire


class Backlog:
    """Queue of messages for a socket, which are dequeued in pieces of bounded size.

    The queue contains the original messages, so that several sockets can share them; a piece is
    encoded when it is dequeued. The server may send a control frame between two pieces.
    """

    __slots__ = ("_first", "_frames", "_opcode", "_sent", "size")

    def __init__(self, opcode: int) -> None:
        self._opcode = opcode
        self._frames: deque[bytes] | None = None
        """Created for the first message. An empty deque has 760 bytes, and few sockets need it."""
        self._first: bytes | None = None
        """Message that is sent before the others."""
        self._sent = 0
        """Number of bytes of `_frames[0]` that were dequeued as fragments."""
        self.size = 0
        """Bytes in the queue, without frame headers."""

    def __bool__(self) -> bool:
        """Return whether the queue has messages."""
        return self._first is not None or bool(self._frames)

    def add(self, frames: Sequence[bytes]) -> None:
        """Enqueue messages."""
        if self._frames is None:
            self._frames = deque()
        self._frames.extend(frames)
        self.size += sum(map(len, frames))

    def add_first(self, frame: bytes) -> None:
        """Enqueue a message before the others; it replaces an earlier such message."""
        self.size += len(frame) - len(self._first or b"")
        self._first = frame

    def frames(self) -> list[bytes]:
        """Return the queued messages. The first one is complete even if a part of it was sent."""
        return [*(() if self._first is None else (self._first,)), *(self._frames or ())]

    def clear(self) -> None:
        """Drop all messages."""
        self._frames = self._first = None
        self._sent = self.size = 0

    def dequeue(self) -> bytes:
        """Remove and return the next message without encoding it."""
        frame = self._pop_first() or self._waiting().popleft()
        self.size -= len(frame)
        return frame

    def dequeue_piece(self) -> bytes:
        """Remove and return the next piece, encoded for the wire."""
        # Between two fragments of a message, no other message may be sent (RFC 6455, 5.4).
        if not self._sent and (ahead := self._pop_first()):
            self.size -= len(ahead)
            return _message(ahead, self._opcode)
        waiting = self._waiting()
        first = waiting[0]
        if self._sent or len(first) > PIECE_BYTES:
            return self._fragment(first)
        frames, size = [waiting.popleft()], len(first)
        while waiting and size + len(waiting[0]) <= PIECE_BYTES:
            size += len(waiting[0])
            frames.append(waiting.popleft())
        self.size -= size
        return _join(frames, self._opcode)

    def _pop_first(self) -> bytes | None:
        first, self._first = self._first, None
        return first

    def _waiting(self) -> deque[bytes]:
        assert self._frames is not None  # callers check first that the queue is not empty
        return self._frames

    def _fragment(self, message: bytes) -> bytes:
        begin, end = self._sent, self._sent + PIECE_BYTES
        piece = message[begin:end]
        self.size -= len(piece)
        # Only the first fragment has the opcode, and only the last one has FIN (RFC 6455, 5.4).
        head = _REST if begin else self._opcode & ~_LAST
        if end >= len(message):
            head |= _LAST
            self._waiting().popleft()
            end = 0
        self._sent = end
        return _message(piece, head)


def _join(messages: Sequence[bytes], opcode: int) -> bytes:
    """Return messages encoded one after the other."""
    return b"".join([_message(one, opcode) for one in messages])


def _message(payload: bytes, opcode: int) -> bytes:
    """Return a message, or a fragment of one, with its frame header."""
    length = len(payload)
    if length <= SHORT:
        return b"%c%c%b" % (opcode, length, payload)
    if length <= MEDIUM:
        return _medium(opcode, 126, length) + payload
    return _long(opcode, 127, length) + payload
