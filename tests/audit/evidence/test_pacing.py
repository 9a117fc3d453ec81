"""A recording is played with its pauses, or as many times faster."""

from __future__ import annotations

import msgspec

from arp.audit.evidence.pacing import Pacing
from arp.ledger.fact import Fact
from tests.ledger.historian import Historian

FIRST = Historian().facts[0]


def at(timestamp: str) -> Fact:
    return msgspec.structs.replace(FIRST, timestamp=timestamp)


def pauses(speed: float, *timestamps: str) -> list[float]:
    pacing = Pacing(speed)
    return [pacing.pause(at(timestamp)) for timestamp in timestamps]


def test_pauses_are_those_of_the_recording_divided_by_the_speed() -> None:
    times = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06.5Z", "2026-01-02T03:04:07Z")
    assert pauses(1, *times) == [0, 1.5, 0.5]
    assert pauses(2, *times) == [0, 0.75, 0.25]
    assert pauses(0, *times) == [0, 0, 0]


def test_a_long_pause_counts_as_three_seconds_and_a_clock_that_went_back_as_none() -> None:
    times = ("2026-01-02T03:04:05Z", "2026-01-02T09:00:00Z", "2026-01-02T08:00:00Z")
    assert pauses(1, *times) == [0, 3, 0]


def test_a_time_that_cannot_be_compared_is_passed_over() -> None:
    times = ("2026-01-02T03:04:05Z", "noon", "2026-01-02T03:04:05", "2026-01-02T03:04:06Z")
    assert pauses(1, *times) == [0, 0, 0, 1]
