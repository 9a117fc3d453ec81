"""Frames on a stream of bytes: each follows its length, four bytes in big-endian order.

A frame of length 0 is no message. It says that the sender closes the connection: a close code of
two bytes and a reason in UTF-8 follow, as in the close frame of a WebSocket, up to the end.

Theory of operation. The length is only an announcement. A frame longer than the receiver takes is
refused when its length has arrived, and memory is used for bytes that came, never for bytes that
were announced. Source: protocol.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import NamedTuple

PREFIX_BYTES = 4

MAX_REASON_BYTES = 123
"""As in a WebSocket (RFC 6455, 5.5.1)."""

_pack = Packer(">I").pack
_unpack_from = Packer(">I").unpack_from


class Farewell(NamedTuple):
    """Why a connection is closed, as its other end says."""

    code: int
    """A close code of WebSocket."""
    reason: str


def prefixed(frames: Sequence[bytes]) -> bytes:
    """Return frames as they are on the stream."""
    if len(frames) == 1:
        (frame,) = frames
        return _pack(len(frame)) + frame
    return b"".join([part for frame in frames for part in (_pack(len(frame)), frame)])


def farewell(code: int, reason: str) -> bytes:
    """Return the last bytes of a stream: why it is closed."""
    text = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
    return bytes(PREFIX_BYTES) + code.to_bytes(2, "big") + text


class FrameSplitter:
    """Splits a stream into frames, however its bytes are cut.

    Args:
        max_frame_bytes: The longest frame that is taken.
    """

    __slots__ = ("_held", "_is_begun", "_is_closing", "begun", "max_frame_bytes", "refused")

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.begun = 0
        """How many frames have begun: their first byte has come."""
        self.refused: int | None = None
        """The length of a frame that is too long; nothing after it is read."""
        self._held = bytearray()
        self._is_begun = False
        """Whether the frame at the beginning of `_held` counts as begun already."""
        self._is_closing = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now; never raises for what is in them."""
        held = self._held
        if self.refused is not None:
            return []
        held += data
        if self._is_closing:
            del held[2 + MAX_REASON_BYTES :]
            return []
        frames: list[bytes] = []
        at, there = 0, len(held)
        while at < there:
            if not self._is_begun:
                self._is_begun = True
                self.begun += 1
            begin = at + PREFIX_BYTES
            if begin > there:
                break
            size: int = _unpack_from(held, at)[0]
            if not size:
                self._is_closing, at = True, begin
                break
            if size > self.max_frame_bytes:
                self.refused = size
                held.clear()
                return frames
            at_end = begin + size
            if at_end > there:
                break
            frames.append(bytes(held[begin:at_end]))
            at, self._is_begun = at_end, False
        del held[:at]
        if self._is_closing:
            del held[2 + MAX_REASON_BYTES :]
        return frames

    @property
    def is_between_frames(self) -> bool:
        """Whether the stream may end here: no frame has begun that is not complete."""
        return not self._is_begun or self._is_closing

    @property
    def farewell(self) -> Farewell | None:
        """Why the other end closes the stream, if it has said so."""
        if not self._is_closing or len(self._held) < 2:
            return None
        code = int.from_bytes(self._held[:2], "big")
        return Farewell(code, self._held[2:].decode(errors="replace"))
