"""Frames on a byte stream, each with a length prefix of four bytes in big-endian order.

A length of 0 is not a message: the sender closes the connection. A close code of two bytes and a
reason in UTF-8 follow up to the end of the stream, as in the close frame of a WebSocket.

Theory of operation. A length is only an announcement. A frame that is too long is refused as soon
as its length has arrived. Memory is allocated for received bytes, never for announced bytes.
Source: protocol.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import NamedTuple

PREFIX_BYTES = 4

MAX_REASON_BYTES = 123
"""Longest reason, as in a WebSocket (RFC 6455, 5.5.1)."""

_pack = Packer(">I").pack
_unpack_from = Packer(">I").unpack_from


class Farewell(NamedTuple):
    """The close code and the reason that the peer sent."""

    code: int
    """WebSocket close code."""
    reason: str


def prefixed(frames: Sequence[bytes]) -> bytes:
    """Return frames with their length prefixes."""
    if len(frames) == 1:
        (frame,) = frames
        return _pack(len(frame)) + frame
    return b"".join([part for frame in frames for part in (_pack(len(frame)), frame)])


def farewell(code: int, reason: str) -> bytes:
    """Return the last bytes of a stream, with the close code and the reason."""
    text = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
    return bytes(PREFIX_BYTES) + code.to_bytes(2, "big") + text


class FrameSplitter:
    """Splits a stream into frames, however its bytes are divided.

    Args:
        max_frame_bytes: Longest accepted frame.
    """

    __slots__ = ("_held", "_is_begun", "_is_closing", "begun", "max_frame_bytes", "refused")

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.begun = 0
        """Number of frames with at least one received byte."""
        self.refused: int | None = None
        """Length of a frame that is too long; everything after it is ignored."""
        self._held = bytearray()
        """Received bytes that do not form a complete frame yet."""
        self._is_begun = False
        """Whether `begun` already includes the frame at the beginning of `_held`."""
        self._is_closing = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now. Never raises."""
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
        """Whether the stream may end here, because no frame is incomplete."""
        return not self._is_begun or self._is_closing

    @property
    def farewell(self) -> Farewell | None:
        """The close code and reason of the peer; `None` if it has not sent them."""
        if not self._is_closing or len(self._held) < 2:
            return None
        code = int.from_bytes(self._held[:2], "big")
        return Farewell(code, self._held[2:].decode(errors="replace"))
