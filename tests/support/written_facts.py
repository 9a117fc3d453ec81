"""Check every fact that a hub in the test process writes, in all tests.

The checks accept the same facts as the strict schema (`tests/ledger/test_schemas.py` compares
them), but are fast enough for every fact of every test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from arp.ledger.fact import decode
from arp.ledger.fact_types import ProfileViolation, check
from arp.ledger.payloads import check_payload
from arp.live.live_session import LiveSession, SessionWriteBatch
from arp.live.writer import Writer
from arp.store.store import SessionWrite

_unfit: list[str] = []
"""Error messages about wrong facts that `taken` has not returned yet."""


@contextmanager
def looked_at() -> Iterator[None]:
    """Check all facts that are written until the block ends."""
    gather = Writer._gather

    def gathered(
        self: Writer, dirty: Sequence[LiveSession], at: str
    ) -> tuple[list[SessionWriteBatch], list[SessionWrite]]:
        batches, writes = gather(self, dirty, at)
        for write in writes:
            for body in write.facts:
                look_at(body)
        return batches, writes

    Writer._gather = gathered  # type: ignore[method-assign]  # for the time of the tests
    try:
        yield
    finally:
        Writer._gather = gather  # type: ignore[method-assign]


def look_at(body: bytes) -> None:
    """Check a fact, and store the error message if it does not fit the profile."""
    fact = decode(body)
    try:
        check(fact)
        check_payload(fact.type, fact.payload, msgspec.structs.asdict(fact))
    except ProfileViolation as error:
        _unfit.append(str(error))


def taken() -> list[str]:
    """Return and remove the error messages that were stored since the last call."""
    unfit = list(_unfit)
    _unfit.clear()
    return unfit
