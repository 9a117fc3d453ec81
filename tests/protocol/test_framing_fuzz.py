"""Random and mutated bytes into the framings: frames or a typed refusal, without growth."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from random import Random

from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.envelope import DIALECTS, seal, unseal
from arp.protocol.framing.length_prefix import FrameSplitter, farewell, prefixed

MOST = 4096
GROWTH = 200_000


def mutated(data: bytes, fuzz: Random) -> bytes:
    """Change, cut, repeat or insert some of the bytes."""
    out = bytearray(data)
    for _ in range(fuzz.randint(0, 3)):
        at = fuzz.randint(0, len(out))
        match fuzz.randrange(4):
            case 0:
                out[at : at + 1] = bytes([fuzz.randrange(256)])
            case 1:
                del out[at : at + fuzz.randint(0, 8)]
            case 2:
                out[at:at] = out[at : at + fuzz.randint(0, 8)]
            case _:
                out[at:at] = fuzz.randbytes(fuzz.randint(0, 8))
    return bytes(out)


def growth_of(work: tuple[Callable[[], None], Callable[[], None]]) -> int:
    """Return how much memory is held after the second half of the work, beyond after the first."""
    half, rest = work
    tracemalloc.start()
    try:
        half()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        rest()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return int(peak - before)


def test_envelopes_are_read_or_refused(fuzz: Random, fuzz_count: int) -> None:
    """No number, no length and no tag leads to anything else, or to memory."""
    good = [seal(fuzz.randbytes(fuzz.choice((0, 1, 127, 128, 300))), one) for one in DIALECTS] * 3
    read = refused = 0

    def feed(count: int) -> None:
        nonlocal read, refused
        for _ in range(count):
            made = fuzz.random() < 0.5
            data = mutated(fuzz.choice(good), fuzz) if made else fuzz.randbytes(fuzz.randint(0, 40))
            try:
                found = unseal(data)
            except InvalidMessage:
                refused += 1
            else:
                read += 1
                assert found.dialect in DIALECTS
                assert len(found.frame) < len(data)

    half = fuzz_count // 2
    assert growth_of((lambda: feed(half), lambda: feed(half))) < GROWTH
    assert read > fuzz_count // 20
    assert refused > fuzz_count // 20


def test_streams_are_split_or_refused(fuzz: Random, fuzz_count: int) -> None:
    """Whatever comes, in pieces of any size, the splitter holds no more than one frame."""
    ends = {"refused": 0, "closed": 0, "between": 0, "within": 0}

    def feed(count: int) -> None:
        for _ in range(count):
            frames = [fuzz.randbytes(fuzz.randint(1, 60)) for _ in range(fuzz.randint(0, 4))]
            data = prefixed(frames) if frames else b""
            data += farewell(fuzz.randrange(65_536), "why") if fuzz.random() < 0.2 else b""
            data = mutated(data, fuzz) if fuzz.random() < 0.8 else fuzz.randbytes(30)
            splitter, cut = FrameSplitter(MOST), fuzz.randint(0, len(data))
            out = splitter.feed(data[:cut]) + splitter.feed(data[cut:])
            assert sum(map(len, out)) <= len(data)
            assert len(splitter._held) <= max(len(data), MOST)
            if splitter.refused is not None:
                assert splitter.refused > MOST
                assert splitter.feed(b"x" * 100) == []
                ends["refused"] += 1
            elif splitter.farewell is not None:
                ends["closed"] += 1
            else:
                ends["between" if splitter.is_between_frames else "within"] += 1

    half = fuzz_count // 2
    assert growth_of((lambda: feed(half), lambda: feed(half))) < GROWTH
    assert all(count > fuzz_count // 200 for count in ends.values()), ends


def test_refused_streams_hold_nothing(fuzz: Random, fuzz_count: int) -> None:
    """A thousand connections that announce what they do not send, and go on sending."""
    splitters = [FrameSplitter(MOST) for _ in range(1000)]
    junk = fuzz.randbytes(4096)

    def feed(count: int) -> None:
        for number in range(count):
            size = fuzz.randint(MOST + 1, 2**32 - 1)
            splitter = splitters[number % len(splitters)]
            assert splitter.feed(size.to_bytes(4, "big") + junk) == []
            assert splitter.refused is not None

    half = fuzz_count // 20
    assert growth_of((lambda: feed(half), lambda: feed(half))) < GROWTH
