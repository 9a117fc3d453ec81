"""Find the range of facts that an export covers.

A chain has no holes. So the pack of a turn contains every fact from the first to the last fact of
the turn, including facts of other turns between them. The sections describe only the turn.

A tool call has the id of its turn but no task id, so the facts of a task are found through its
turns. A turn belongs to a task if it was submitted for the task, or if an attempt of the task began
in it. All facts of such a turn belong to the task, except those that name another task.
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
"""Types of the facts that assign their turn to the task that they name."""

_NO_TURNS: frozenset[str] = frozenset()


class _Ids(Struct, rename="camel", gc=False):
    """The fields of a fact that decide whether it belongs to a scope."""

    type: str
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None


_decoder = msgspec.json.Decoder(_Ids)


def is_of(fact: Fact | _Ids, scope: Scope, turns: AbstractSet[str] = _NO_TURNS) -> bool:
    """Return whether a fact belongs to a scope.

    Args:
        fact: A fact of the session.
        scope: Exported part of the session.
        turns: Turns of the scope's task, found by `Range`.
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
    """Range of the facts in a pack, with the turns of its scope's task."""

    first: int = 1
    through: int | None = None
    """Sequence number of the last fact; `None` means no limit."""
    turns: frozenset[str] = frozenset()


ALL = FactRange()


class Range:
    """Finds the first and last fact of a scope, and the turns of its task."""

    def __init__(self, scope: Scope) -> None:
        self.turns: set[str] = set()
        """Turns that belong to the task of the scope."""
        self._first = self._last = 0
        self._scope = scope
        self._spans: dict[str, tuple[int, int]] = {}
        """First and last fact of each turn, not counting facts that name a task. They are kept for
        all turns, because a turn may be assigned to the task after some of its facts."""
        # JSON may escape other characters, so the bytes are searched only for alphanumeric ids.
        named = (scope.thread_id, scope.turn_id)
        self._marks = [one.encode() for one in named if one is not None and one.isalnum()]

    @property
    def first(self) -> int:
        """Sequence number of the first fact of the scope; 0 if none was found yet."""
        found = [self._first, *(first for first, _ in self._task_spans())]
        return min(filter(None, found), default=0)

    @property
    def last(self) -> int:
        """Sequence number of the last fact of the scope; 0 if none was found yet."""
        return max([self._last, *(last for _, last in self._task_spans())])

    @property
    def bounds(self) -> FactRange:
        """The range that was found."""
        return FactRange(self.first, self.last, frozenset(self.turns))

    def _task_spans(self) -> list[tuple[int, int]]:
        return [self._spans[turn] for turn in self.turns if turn in self._spans]

    def add_page(self, page: Iterable[tuple[int, bytes]]) -> None:
        """Process facts with their sequence numbers, in order."""
        if self._scope.task_id is not None:
            for sequence, body in page:
                self._add_of_task(sequence, _decoder.decode(body))
            return
        for sequence, body in page:
            # Searching the bytes for the ids costs a tenth of decoding the fact.
            if all(mark in body for mark in self._marks) and is_of(decode(body), self._scope):
                self._add(sequence)

    def _add_of_task(self, sequence: int, fact: _Ids) -> None:
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
