"""How long things took, by the times that facts carry."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from arp.ledger.models.reading import added


class Spans(Struct, rename="camel", omit_defaults=True):
    """Times of one kind that were measured."""

    count: int = 0
    total_ms: int = 0
    max_ms: int = 0

    def add(self, began: str | None, ended: str) -> None:
        """Take one more, if both ends are known."""
        took = milliseconds(began, ended)
        if took is not None:
            self.count += 1
            self.total_ms = added(self.total_ms, took)
            self.max_ms = max(self.max_ms, took)


def milliseconds(began: str | None, ended: str | None) -> int | None:
    """Return the time between two moments; `None` if one is missing or no RFC 3339.

    A clock that was set back gives 0: order comes from the sequence, and nothing takes less.
    """
    if began is None or ended is None:
        return None
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (TypeError, ValueError):  # no time; or one with a zone and one without
        return None
    return max(0, round(took.total_seconds() * 1000))
