"""Exports that are one document: a replay case, a review."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from arp.evidence.export import NotExportable, NothingToExport, Order, begun
from arp.evidence.pack_writer import UNFINISHED, PackUnwritable
from arp.ledger.exports.correlation import CorrelationIds
from arp.ledger.exports.derived import readable
from arp.ledger.exports.manifest import Scope
from arp.ledger.exports.replay_case import CaseMaker, obstacle
from arp.ledger.exports.review import Words, review
from arp.ledger.exports.scope import Range, is_of
from arp.ledger.fact import decode
from arp.store.directory import sync_directory


class CaseExport:
    """A replay case, from pages of facts in order, from the first on.

    Args:
        scope: Which turns are in it.
        found: Its facts, as `range_of` found them.
    """

    def __init__(self, scope: Scope, found: Range | None = None) -> None:
        self.spine = CorrelationIds()
        self.gaps: list[str] = []
        """Known gaps that apply."""
        self._scope = scope
        self._turns = found.turns if found is not None else frozenset[str]()
        self._maker = CaseMaker()

    def take(self, page: Sequence[tuple[int, bytes]]) -> None:
        """Take the next facts."""
        for _, body in page:
            fact = decode(body)
            is_told = is_of(fact, self._scope, self._turns)
            if is_told:
                self.spine.take(fact)
            if is_told or fact.type == "session.created":
                self._maker.take(fact)

    def finish(self) -> bytes:
        """Return the case as JSON.

        Raises:
            NothingToExport: There is no turn.
            NotExportable: A turn cannot be run again from its facts alone.
        """
        case = self._maker.case()
        if not case.turns:
            raise NothingToExport(f"session {case.session_id} has no turn to be run again")
        reason = obstacle(case)
        if reason is not None:
            raise NotExportable(reason)
        return readable(case)


class ReviewExport:
    """A review, from pages of facts in order, from the first on.

    Args:
        order: What is wanted.
        found: First and last fact; `None` means all.
    """

    def __init__(self, order: Order, found: Range | None = None) -> None:
        self._order = order
        self._words = Words()
        self._evidence = begun(order, found, [self._words])

    @property
    def spine(self) -> CorrelationIds:
        """The ids of what is reviewed."""
        return self._evidence.spine

    @property
    def gaps(self) -> list[str]:
        """The known gaps that apply."""
        return [gap.sentence for gap in self._evidence.gaps()]

    def take(self, page: Sequence[tuple[int, bytes]]) -> None:
        """Take the next facts."""
        self._evidence.take([body for _, body in page])

    def finish(self) -> bytes:
        """Return the review as Markdown.

        Raises:
            NothingToExport: There is no fact.
        """
        self._evidence.finish()
        chain, order = self._evidence.chain, self._order
        if chain.through < chain.first:
            raise NothingToExport(f"session {order.session_id} has no facts of this")
        words = self._words
        return review(self._evidence, order.evidence_id, order.created_at, words).encode()


def write_new(target: Path, data: bytes) -> None:
    """Write a new file: under its name it is whole and durable, or it is not there.

    Raises:
        PackUnwritable: Something is there, or the disk refuses.
    """
    if target.exists() or target.is_symlink():
        raise PackUnwritable(f"{target} is there already; name another, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=target.parent)
        aside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
            sync_directory(target.parent)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise PackUnwritable(f"{target} cannot be written: {error.strerror or error}") from error
