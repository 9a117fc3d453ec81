"""Which facts an export is about: neighbours, from the first to the last of what is meant.

A chain has no holes, so what lies between the facts of a turn is in its pack too; the sections tell
of the turn alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from arp.ledger.exports.manifest import Scope
from arp.ledger.fact import Fact, decode


def is_of(fact: Fact, scope: Scope) -> bool:
    """Tells whether a fact carries every id that the scope names."""
    return (
        scope.thread_id in (None, fact.thread_id)
        and scope.turn_id in (None, fact.turn_id)
        and scope.task_id in (None, fact.task_id)
    )


class Range:
    """Finds the first and the last fact of a scope."""

    def __init__(self, scope: Scope) -> None:
        self.first = 0
        """0: no fact of the scope was found yet."""
        self.last = 0
        self._scope = scope
        named = (scope.thread_id, scope.turn_id, scope.task_id)
        self._marks = [one.encode() for one in named if one is not None and one.isalnum()]

    def take(self, page: Iterable[tuple[int, bytes]]) -> None:
        """Takes facts with their sequences, in order."""
        for sequence, body in page:
            # A search in the bytes is a tenth of the cost of reading the fact.
            if all(mark in body for mark in self._marks) and is_of(decode(body), self._scope):
                self.first = self.first or sequence
                self.last = sequence
