"""Several messages in one frame, for renderers with feature `batch`."""

from __future__ import annotations

from collections.abc import Sequence

from arp.protocol.agent_connection import MAX_BATCH
from arp.protocol.codec import Encoding

MAX_FRAME_BYTES = 256 << 10
"""A frame is closed when it has grown to this; a single larger message still goes whole."""


def pack(frames: Sequence[bytes], encoding: Encoding) -> list[bytes]:
    """Joins frames of one message each into arrays, as few as the bounds allow."""
    if len(frames) == 1:
        return list(frames)
    out: list[bytes] = []
    held: list[bytes] = []
    size = 0
    for frame in frames:
        if held and (size + len(frame) > MAX_FRAME_BYTES or len(held) == MAX_BATCH):
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
