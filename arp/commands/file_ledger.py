"""Sessions and facts out of a ledger file, also while a server writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from arp.commands.source import SessionRow, SourceError
from arp.control.facts import FactFilter
from arp.ledger.chain import Break, ChainBroken, Checked, KeptCheck
from arp.store.errors import StoreDamaged, StoreError
from arp.store.ledger_file import LedgerFile
from arp.store.location import path_of

LOOK_S = 0.2
"""How often a file is looked at for something new."""


class FileLedger:
    """A `Source` out of a file; everybody's sessions, for whoever may read the file.

    Args:
        location: `sqlite:PATH` or a path.

    Raises:
        SourceError: It is no ledger file.
    """

    def __init__(self, location: str) -> None:
        try:
            path = path_of(location)
            if path is None:
                raise SourceError("memory: is gone with its process; name a file or a server")
            self._file = LedgerFile(path)
        except StoreError as error:
            raise SourceError(str(error)) from error

    def sessions(self, limit: int) -> list[SessionRow]:
        """As `Source.sessions`."""
        try:
            metas = self._file.sessions(limit=limit)
        except StoreError as error:
            raise SourceError(str(error)) from error
        return [
            SessionRow(
                meta.id,
                meta.workflow,
                meta.title,
                meta.updated_at,
                meta.turn_count,
                meta.last_sequence,
                meta.active,
            )
            for meta in metas
        ]

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """As `Source.events`."""
        choice = FactFilter.of(types)
        try:
            if self._file.session(session_id) is None:
                raise SourceError(f"no session {session_id!r} in {self._file.path}")
            while chunk := self._file.read(session_id, after):
                yield from (fact for _, fact in chunk if choice.matches(fact))
                after = chunk[-1][0]
        except StoreError as error:
            raise SourceError(str(error)) from error

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """As `Source.follow`."""
        choice, seen = FactFilter.of(types), -1
        try:
            if self._file.session(session_id) is None:
                raise SourceError(f"no session {session_id!r} in {self._file.path}")
            while True:
                seen, before = self._file.version(), seen
                if seen == before:
                    time.sleep(LOOK_S)
                    continue
                while chunk := self._file.read(session_id, after):
                    yield from (fact for _, fact in chunk if choice.matches(fact))
                    after = chunk[-1][0]
        except StoreError as error:
            raise SourceError(str(error)) from error

    def kept(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Give the hashes of a session's chain that the file keeps.

        Raises:
            SourceError: The file cannot be read.
        """
        try:
            return self._file.heads(session_id)
        except StoreError as error:
            raise SourceError(str(error)) from error

    def kept_check(self, session_id: str) -> KeptCheck:
        """Give what compares the facts of a session with the hashes that the file keeps of them.

        Raises:
            SourceError: As `Source.events`.
        """
        try:
            meta = self._file.session(session_id)
        except StoreError as error:
            raise SourceError(str(error)) from error
        if meta is None:
            raise SourceError(f"no session {session_id!r} in {self._file.path}")
        return KeptCheck(session_id, meta.epoch, self.kept(session_id))

    def verify(self, session_id: str) -> Checked:
        """As `Source.verify`."""
        check, broken = self.kept_check(session_id), None
        try:
            while page := self._file.read(session_id, check.sequence):
                check.take(fact for _, fact in page)
            check.finish()
        except ChainBroken as error:
            broken = error.broken
        except StoreDamaged as error:
            broken = Break(error.after + 1, error.after + 1, error.message)
        except StoreError as error:
            raise SourceError(str(error)) from error
        return check.checked(session_id, broken)

    def close(self) -> None:
        """As `Source.close`."""
        self._file.close()
