"""WebSocket frames as bytes, made once for all sockets that get the same.

A server's data frames carry no mask, so the bytes on the wire are the same for every renderer of an
audience. Source: RFC 6455, 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

from arp.hub.frames import Frames

TEXT = 0x81
"""A whole text message: FIN and opcode 1."""
BINARY = 0x82
"""A whole binary message: FIN and opcode 2."""

SHORT, MEDIUM = 125, 0xFFFF
"""The longest payloads whose length stands in one byte and in two more."""


_medium = Struct(">BBH").pack
_long = Struct(">BBQ").pack


class Wire(Protocol):
    """A socket that takes ready frames; a server may offer it in `scope["extensions"]`."""

    def can_write(self) -> bool:
        """Tells whether bytes may be written now, without waiting."""

    def write(self, data: bytes) -> None:
        """Sends bytes behind what was sent before."""


EXTENSION = "arp.wire"
"""Its name among the ASGI extensions of a scope."""


def wire_bytes(frames: Sequence[bytes], opcode: int) -> bytes:
    """Gives messages as they stand on the wire; remembered by `Frames`."""
    if not isinstance(frames, Frames):
        return _join(frames, opcode)
    if frames.wire is None:
        frames.wire = _join(frames, opcode)
    return frames.wire


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
