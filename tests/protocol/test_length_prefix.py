"""Frames on a stream of bytes (protocol.md 6)."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.length_prefix import Farewell, FrameSplitter, farewell, prefixed

frames_of_any_size = st.lists(st.binary(min_size=1, max_size=300), max_size=12)


def split(data: bytes, cuts: list[int], most: int = 1000) -> tuple[FrameSplitter, list[bytes]]:
    """Feeds data in pieces."""
    splitter, out, at = FrameSplitter(most), list[bytes](), 0
    for cut in cuts:
        out += splitter.feed(data[at : at + cut])
        at += cut
    return splitter, out + splitter.feed(data[at:])


def test_a_frame_follows_its_length_in_four_bytes() -> None:
    assert prefixed([b"ab"]) == b"\0\0\0\x02ab"
    assert prefixed([b"ab", b"c"]) == b"\0\0\0\x02ab\0\0\0\x01c"


@given(frames_of_any_size, st.lists(st.integers(0, 50), max_size=40))
def test_any_split_of_the_bytes_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    splitter, out = split(prefixed(frames), cuts)
    assert out == frames
    assert splitter.begun == len(frames)
    assert splitter.is_between_frames


@given(st.binary(max_size=400), st.lists(st.integers(0, 50), max_size=40))
def test_any_bytes_end_in_frames_or_a_refusal_however_they_are_cut(
    data: bytes, cuts: list[int]
) -> None:
    """And nothing is kept beyond what came."""
    first, once = split(data, [], most=100)
    second, pieces = split(data, cuts, most=100)
    assert once == pieces
    assert first.refused == second.refused
    assert first.farewell == second.farewell
    assert all(len(frame) <= 100 for frame in once)


def test_an_end_within_a_frame_is_noticed() -> None:
    for part in (1, 4, 5):
        splitter, out = split(prefixed([b"ab"])[:part], [])
        assert not out
        assert not splitter.is_between_frames


def test_a_frame_of_length_0_says_why_the_connection_is_closed() -> None:
    data = prefixed([b"a"]) + farewell(1008, "not allowed: ö")
    for cuts in ([], [1] * len(data)):
        splitter, out = split(data, cuts)
        assert out == [b"a"]
        assert splitter.farewell == Farewell(1008, "not allowed: ö")
        assert splitter.is_between_frames


def test_a_reason_is_cut_and_what_follows_a_farewell_is_not_kept() -> None:
    assert len(farewell(1000, "ö" * 500)) <= 4 + 2 + 123
    splitter = FrameSplitter(10)
    for _ in range(1000):
        assert splitter.feed(bytes(4) + b"\x03\xe8" + b"x" * 1000) == []
    told = splitter.farewell
    assert told is not None
    assert told.code == 1000
    assert len(told.reason) == 123


@pytest.mark.parametrize("length", [101, 2**31, 2**32 - 1])
def test_a_length_bomb_is_refused_without_allocation(length: int) -> None:
    """Spec: T1. The bytes after the length are not kept either."""
    splitter = FrameSplitter(100)
    tracemalloc.start()
    try:
        assert splitter.feed(length.to_bytes(4, "big")) == []
        for _ in range(100):
            assert splitter.feed(b"x" * 65_536) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert splitter.refused == length
    assert peak < 200_000


def test_memory_follows_the_bytes_that_came_and_not_those_announced() -> None:
    splitters = [FrameSplitter(4 << 20) for _ in range(100)]
    tracemalloc.start()
    try:
        for splitter in splitters:
            splitter.feed((4 << 20).to_bytes(4, "big") + b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
