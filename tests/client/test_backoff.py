from __future__ import annotations

from arp.client.backoff import Backoff


def test_ceiling_doubles_from_1_to_16_seconds() -> None:
    backoff = Backoff(draw=lambda: 1.0)
    assert [backoff.delay_s(n) for n in range(7)] == [1, 2, 4, 8, 16, 16, 16]
    assert backoff.delay_s(10**9) == 16


def test_jitter_is_full() -> None:
    assert Backoff(draw=lambda: 0.0).delay_s(3) == 0
    assert Backoff(draw=lambda: 0.25).delay_s(3) == 2


def test_bounds_can_be_set() -> None:
    backoff = Backoff(first_s=0.5, most_s=3, draw=lambda: 1.0)
    assert [backoff.delay_s(n) for n in range(4)] == [0.5, 1, 2, 3]
