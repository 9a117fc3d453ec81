"""Memory that is free goes back to the system, where the system's allocator can do that."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from arp.live.cache import trimmer

MIB = 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what is freed")
def test_trimming_gives_back_what_lies_between_blocks_in_use() -> None:
    trim = trimmer()
    assert trim is not None
    blocks = [bytearray(4096) for _ in range(16_000)]  # 64 MiB, each below the size that is mapped
    kept = blocks[::8]
    del blocks
    before = resident_bytes()
    trim()
    assert before - resident_bytes() > 20 * MIB
    assert len(kept) == 2_000


def test_an_allocator_without_a_trim_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    assert trimmer() is None
