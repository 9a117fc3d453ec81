"""What a pack of evidence holds, made of a session's facts in one pass.

Theory of operation. Facts come in order, from the first of the session: the chain needs all of
them. Those of the range go into the pack, whole, and all else in it is made of them (`derived`).
What grows with the session (facts, timeline) leaves as lines at once; the rest is documents at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from arp.ledger import chain
from arp.ledger.exports.derived import Also, Derived
from arp.ledger.exports.fact_line import fact_line
from arp.ledger.exports.manifest import Chain, Scope
from arp.ledger.exports.scope import ALL, Bounds
from arp.ledger.fact import Fact, decode


class Lines(Struct, frozen=True):
    """What a page of facts adds to the two parts that grow."""

    facts: bytes
    timeline: bytes


class _Links:
    """The chain over a session's facts, and which of them go into the pack."""

    def __init__(self, session_id: str, epoch: str, first: int, through: int | None) -> None:
        self._session_id = session_id
        self._epoch = epoch
        self._first = first
        self._through = through
        self._previous = self._head = chain.genesis(session_id, epoch)
        self._last = first - 1

    def is_over(self, fact: Fact) -> bool:
        """Return whether a fact lies behind the last one that is wanted."""
        return self._through is not None and fact.sequence > self._through

    def line(self, fact: Fact, body: bytes) -> bytes | None:
        """Return the line of the next fact; `None` if it lies before what is wanted."""
        self._head = chain.link(self._head, body)
        if fact.sequence < self._first:
            self._previous = self._head
            return None
        self._last = fact.sequence
        return fact_line(self._head, body)

    def told(self) -> Chain:
        previous, head = self._previous.hex(), self._head.hex()
        return Chain(self._session_id, self._epoch, self._first, self._last, previous, head)


class Evidence(Derived):
    """A pack of evidence, from pages of facts.

    Args:
        session_id: Whose facts they are.
        epoch: Of its log.
        scope: What the sections tell of.
        bounds: Which facts go into the pack, as `scope.Range` finds them.
        also: Who makes further parts.
    """

    def __init__(
        self,
        session_id: str,
        epoch: str,
        scope: Scope | None = None,
        bounds: Bounds = ALL,
        also: Sequence[Also] = (),
    ) -> None:
        super().__init__(session_id, scope or Scope(), bounds, also)
        self._links = _Links(session_id, epoch, bounds.first, bounds.through)

    def take(self, page: list[bytes]) -> Lines:
        """Take the next facts, as the store holds them; return the lines that they add.

        Raises:
            FactOutOfOrder: They are not the next facts of the session.
            msgspec.DecodeError: One is no fact.
        """
        lines: list[bytes] = []
        told: list[bytes] = []
        for body in page:
            fact = decode(body)
            if self._links.is_over(fact):
                break
            line = self._links.line(fact, body)
            if line is None:
                continue
            lines.append(line)
            told.append(self.fold(fact))
        return Lines(b"".join(lines), b"".join(told))

    def finish(self) -> Lines:
        """Return the lines that were held back."""
        return Lines(b"", self.rest())

    @property
    def chain(self) -> Chain:
        """Which facts went into the pack, and the hashes at both ends."""
        return self._links.told()
