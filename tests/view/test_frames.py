"""Several messages in one frame, as few frames as the bounds allow (feature `batch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cbor2
import msgspec
import pytest

from arp.protocol.codec import ENCODINGS, Encoding, encode_json, recode
from arp.view.frames import MAX_FRAME_BYTES, pack

DECODE: dict[Encoding, Callable[[bytes], Any]] = {
    "json": msgspec.json.decode,
    "msgpack": msgspec.msgpack.decode,
    "cbor": cbor2.loads,
}


def frames(count: int, encoding: Encoding, text: str = "x") -> list[bytes]:
    return [recode(encode_json({"n": n, "t": text}), encoding) for n in range(count)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("count", [2, 15, 16, 23, 24, 63, 64])
def test_frames_become_one_array_up_to_sixty_four_messages(encoding: Encoding, count: int) -> None:
    """Each encoding changes the form of its array head on the way there."""
    packed = pack(frames(count, encoding), encoding)
    assert len(packed) == 1
    assert DECODE[encoding](packed[0]) == [{"n": n, "t": "x"} for n in range(count)]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_more_than_sixty_four_messages_go_into_several_arrays(encoding: Encoding) -> None:
    """No peer need take a longer array than we would."""
    packed = [DECODE[encoding](frame) for frame in pack(frames(150, encoding), encoding)]
    assert [len(array) for array in packed] == [64, 64, 22]
    assert [message["n"] for array in packed for message in array] == list(range(150))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_message_stays_what_it_is(encoding: Encoding) -> None:
    """Also the last one that is left over."""
    alone = frames(1, encoding)
    assert pack(alone, encoding) == alone
    left = pack(frames(65, encoding), encoding)
    assert DECODE[encoding](left[-1]) == {"n": 64, "t": "x"}


def test_frame_is_closed_when_it_has_grown() -> None:
    """A frame is bounded in bytes too; a single larger message still goes whole."""
    long = "x" * (100 << 10)
    packed = pack(frames(5, "json", long), "json")
    assert [len(msgspec.json.decode(frame)) for frame in packed[:2]] == [2, 2]
    assert all(len(frame) <= MAX_FRAME_BYTES for frame in packed)
    huge = frames(2, "json", "x" * (300 << 10))
    assert pack(huge, "json") == huge


def test_nothing_is_packed_into_nothing() -> None:
    """No empty array is sent."""
    assert pack([], "json") == []
