"""Reading sessions and facts from a ledger, even while a server writes it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from arp.commands.ledger.reader import ListedSession, ReaderError
from arp.control.facts import FactFilter
from arp.hub.readers.verification import Verifier
from arp.ledger.chain import ChainCheck, KeptCheck
from arp.store.blobs import BlobStore
from arp.store.errors import StoreError
from arp.store.location import open_postgres, path_of
from arp.store.postgres.location import is_postgres
from arp.store.session_list import SessionMeta
from arp.store.sqlite import SqliteStore
from arp.store.store import Page

if TYPE_CHECKING:
    from arp.store.postgres.store import PostgresStore

POLL_S = 0.2
"""Interval at which `follow` checks the ledger for new facts."""


class FileReader:
    """A `LedgerReader` of a file or a database. It reads the sessions of all users.

    Args:
        location: `sqlite:PATH`, a path, or `postgresql://…`.

    Raises:
        ReaderError: There is no ledger, or it cannot be read.
    """

    def __init__(self, location: str) -> None:
        with _store_errors(), ExitStack() as opened:
            path = path_of(location)
            if path is None:
                raise ReaderError("memory: ends with its process; name a file or a server")
            self._path = path
            self._run = opened.enter_context(asyncio.Runner()).run
            self._store: SqliteStore | PostgresStore
            if is_postgres(location):
                self._store = open_postgres(location, read_only=True)
                self._shown = self._store.shown
            else:
                self._store = SqliteStore(path, read_only=True)
                self._shown = str(path)
            self._run(self._store.open())
            self._opened = opened.pop_all()

    def close(self) -> None:
        """See `LedgerReader.close`."""
        with self._opened:
            self._run(self._store.aclose())

    def sessions(self, limit: int) -> list[ListedSession]:
        """See `LedgerReader.sessions`."""
        with _store_errors():
            metas = self._run(self._store.sessions(limit=limit))
        return [
            ListedSession(
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
        """See `LedgerReader.events`."""
        choice = FactFilter.of(types)
        with _store_errors():
            self._meta(session_id)
            for page in self._pages(session_id, after):
                yield from (fact for _, fact in page if choice.matches(fact))

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """See `LedgerReader.follow`."""
        choice = FactFilter.of(types)
        with _store_errors():
            self._meta(session_id)
            while True:
                for page in self._pages(session_id, after):
                    yield from (fact for _, fact in page if choice.matches(fact))
                    after = page[-1][0]
                time.sleep(POLL_S)
                while not self._run(self._store.refresh()):
                    time.sleep(POLL_S)

    def epoch(self, session_id: str) -> str:
        """Return the epoch of a session's log.

        Raises:
            ReaderError: There is no such session, or the ledger cannot be read.
        """
        with _store_errors():
            return self._meta(session_id).epoch

    def output_reader(self, session_id: str) -> Callable[[str], bytes]:
        """Return a function that reads the large outputs of a session from its blobs."""
        files = BlobStore(self._path.with_suffix(".blobs")).of(session_id)
        return lambda ref: asyncio.run(files.read(ref))

    # -- the hashes of the chain -----------------------------------------------------------------

    def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return the hashes of a session's chain that are stored in the ledger.

        Raises:
            ReaderError: The ledger cannot be read.
        """
        with _store_errors():
            return self._run(self._store.heads(session_id))

    def checked_pages(self, session_id: str) -> Iterator[Page]:
        """Yield the facts of a session in pages, after comparing each page with the stored hashes.

        Raises:
            ChainBroken: A fact has changed since its hash was stored.
            ReaderError: There is no such session, or the ledger cannot be read.
        """
        with _store_errors():
            check = KeptCheck(session_id, self._meta(session_id).epoch, self.heads(session_id))
            for page in self._pages(session_id, 0):
                check.compare(fact for _, fact in page)
                yield page
            check.finish()

    def verify(self, session_id: str) -> ChainCheck:
        """See `LedgerReader.verify`."""
        with _store_errors():
            epoch = self._meta(session_id).epoch
            return self._run(Verifier(self._store).check(session_id, epoch))

    def _meta(self, session_id: str) -> SessionMeta:
        meta = self._run(self._store.session(session_id))
        if meta is None:
            raise ReaderError(f"no session {session_id!r} in {self._shown}")
        return meta

    def _pages(self, session_id: str, after: int) -> Iterator[Page]:
        while page := self._run(self._store.read(session_id, after)):
            yield page
            after = page[-1][0]


@contextmanager
def _store_errors() -> Iterator[None]:
    """Raise errors of the store as `ReaderError`."""
    try:
        yield
    except StoreError as error:
        raise ReaderError(str(error)) from error
