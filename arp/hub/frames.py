"""Frames on their way: shared by all that get the same, several messages in one where asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arp.protocol.agent_connection import MAX_BATCH
from arp.protocol.codec import Encoding

MAX_FRAME_BYTES = 256 << 10
"""A frame is closed when it has grown to this; a single larger message still goes whole."""


ARRAY_BYTES = MAX_BATCH + 2
"""What an array adds to its messages: brackets and commas in JSON, less in the others."""


class Frames(list[bytes]):
    """Frames that several renderers get."""

    __slots__ = ("__weakref__", "wire")

    def __init__(self, frames: Iterable[bytes] = ()) -> None:
        super().__init__(frames)
        self.wire: bytes | None = None
        """What a transport made of them, the same for all."""


def pack(frames: Sequence[bytes], encoding: Encoding, most: int | None = None) -> Frames:
    """Joins frames of one message each into arrays, as few as the bounds allow.

    Args:
        frames: In order.
        encoding: Of all of them.
        most: Bytes that the renderer takes in one; `None` = it set no limit.
    """
    if len(frames) == 1:
        return Frames(frames)
    out = Frames()
    held: list[bytes] = []
    size = 0
    bound = MAX_FRAME_BYTES if most is None else min(MAX_FRAME_BYTES, most - ARRAY_BYTES)
    for frame in frames:
        if held and (size + len(frame) > bound or len(held) == MAX_BATCH):
            out.append(_array(held, encoding))
            held, size = [], 0
        held.append(frame)
        size += len(frame)
    if held:
        out.append(_array(held, encoding))
    return out


def _array(frames: list[bytes], encoding: Encoding) -> bytes:
    if len(frames) == 1:
        return frames[0]
    if encoding == "json":
        return b"[" + b",".join(frames) + b"]"
    count = len(frames)
    if encoding == "msgpack":
        head = bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")
    else:
        head = bytes((0x80 | count,)) if count < 24 else bytes((0x98, count))
    return head + b"".join(frames)
