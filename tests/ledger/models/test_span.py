"""How long things took."""

from __future__ import annotations

import pytest

from arp.ledger.models.span import Spans, milliseconds


@pytest.mark.parametrize(
    ("began", "ended", "took"),
    [
        ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:06.500000Z", 1500),
        ("2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", 0),
        ("2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z", 0),
        (None, "2026-01-02T03:04:05Z", None),
        ("2026-01-02T03:04:05Z", None, None),
        ("yesterday", "2026-01-02T03:04:05Z", None),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", None),
    ],
)
def test_the_time_between_two_moments_is_known_or_not(
    began: str | None, ended: str | None, took: int | None
) -> None:
    assert milliseconds(began, ended) == took


def test_spans_add_up_and_leave_out_what_is_not_known() -> None:
    spans = Spans()
    for ended in ("2026-01-02T03:04:07Z", "never", "2026-01-02T03:04:06Z"):
        spans.add("2026-01-02T03:04:05Z", ended)
    assert spans == Spans(count=2, total_ms=3000, max_ms=2000)
