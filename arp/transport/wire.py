"""WebSocket frames as bytes, encoded once for all sockets that send the same messages.

Data frames of a server are not masked, so their bytes are equal for every renderer of a group.

Source: RFC 6455, 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol

from arp.protocol.framing.backlog import Backlog
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


class WireBacklog(Backlog):
    """Queue of messages for a socket, which are dequeued in pieces of bounded size.

    A piece is encoded when it is dequeued. The server may send a control frame between two pieces.
    """

    __slots__ = ("_opcode", "_sent")

    def __init__(self, opcode: int) -> None:
        super().__init__()
        self._opcode = opcode
        self._sent = 0
        """Number of bytes of the next message that were dequeued as fragments. The message is in
        the queue as a whole until its last fragment, but `size` counts only the rest."""

    def clear(self) -> None:
        """Drop all messages."""
        super().clear()
        self._sent = 0

    def dequeue_piece(self) -> bytes:
        """Remove and return the next piece, encoded for the wire."""
        # Between two fragments of a message, no other message may be sent (RFC 6455, 5.4).
        if self._sent or (self._first is None and len(self._waiting()[0]) > PIECE_BYTES):
            return self._dequeue_fragment()
        return _join(self.dequeue_most(PIECE_BYTES), self._opcode)

    def _dequeue_fragment(self) -> bytes:
        message = self._waiting()[0]
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
