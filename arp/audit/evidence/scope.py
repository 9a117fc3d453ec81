"""Which facts an export is about: neighbours, from the first to the last of what is meant.

A chain has no holes, so what lies between the facts of a turn is in its pack too; the sections tell
of the turn alone.

What a task did is known from the turns of its attempts: a tool call has the id of its turn and no
id of a task. So a turn that was submitted for a task, or in which an attempt of it began, belongs
to the task with all of its facts but those that name another task.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import msgspec
from msgspec import Struct

from arp.audit.evidence.manifest import Scope
from arp.audit.evidence.sections import NOT_KNOWN
from arp.ledger.fact import Fact, decode

_JOINING = frozenset(("turn.submitted", "task.attempt.started"))
"""Types that join their turn to the task that they name."""

_NO_TURNS: frozenset[str] = frozenset()


class _Ids(Struct, rename="camel", gc=False):
    """What of a fact says to which scope it belongs."""

    type: str
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None


_decoder = msgspec.json.Decoder(_Ids)


def is_of(fact: Fact | _Ids, scope: Scope, turns: AbstractSet[str] = _NO_TURNS) -> bool:
    """Return whether a fact belongs to what the scope names.

    Args:
        fact: Of the session.
        scope: What is exported.
        turns: The turns of the task that the scope names, as `Range` finds them.
    """
    return (
        scope.thread_id in (None, fact.thread_id)
        and scope.turn_id in (None, fact.turn_id)
        and (
            scope.task_id in (None, fact.task_id)
            or (fact.task_id is None and fact.turn_id in turns)
        )
    )


class FactRange(Struct, frozen=True):
    """Which facts go into a pack, and which turns belong to the task that its scope names."""

    first: int = 1
    through: int | None = None
    """`None`: all that come."""
    turns: frozenset[str] = frozenset()


ALL = FactRange()


class Range:
    """Finds the first and the last fact of a scope, and the turns of its task."""

    def __init__(self, scope: Scope) -> None:
        self.turns: set[str] = set()
        """Turns that belong to the task of the scope."""
        self._first = self._last = 0
        self._scope = scope
        self._spans: dict[str, tuple[int, int]] = {}
        """First and last fact of each turn, without those that name a task; a turn is found to be
        one of the task when some of its facts have passed."""
        named = (scope.thread_id, scope.turn_id)
        self._marks = [one.encode() for one in named if one is not None and one.isalnum()]

    @property
    def first(self) -> int:
        """Return the first sequence; 0: no fact of the scope was found yet."""
        found = [self._first, *(first for first, _ in self._joined())]
        return min(filter(None, found), default=0)

    @property
    def last(self) -> int:
        """Return the last sequence; 0: no fact of the scope was found yet."""
        return max([self._last, *(last for _, last in self._joined())])

    @property
    def bounds(self) -> FactRange:
        """Return what was found."""
        return FactRange(self.first, self.last, frozenset(self.turns))

    def _joined(self) -> list[tuple[int, int]]:
        return [self._spans[turn] for turn in self.turns if turn in self._spans]

    def take(self, page: Iterable[tuple[int, bytes]]) -> None:
        """Take facts with their sequences, in order."""
        if self._scope.task_id is not None:
            for sequence, body in page:
                self._take_of_task(sequence, _decoder.decode(body))
            return
        for sequence, body in page:
            # A search in the bytes is a tenth of the cost of reading the fact.
            if all(mark in body for mark in self._marks) and is_of(decode(body), self._scope):
                self._add(sequence)

    def _take_of_task(self, sequence: int, fact: _Ids) -> None:
        turn_id = fact.turn_id if fact.turn_id not in NOT_KNOWN else None
        if is_of(fact, self._scope):
            self._add(sequence)
            if turn_id is not None and fact.type in _JOINING:
                self.turns.add(turn_id)
        elif turn_id is not None and is_of(fact, self._scope, {turn_id}):
            first, _ = self._spans.get(turn_id, (sequence, 0))
            self._spans[turn_id] = (first, sequence)

    def _add(self, sequence: int) -> None:
        self._first = self._first or sequence
        self._last = sequence
