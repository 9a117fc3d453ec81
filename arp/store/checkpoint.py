"""Moves the write-ahead log into the ledger's file, beside the writer and not in its way.

SQLite would do it inside the commit that makes the log too long, and let that commit wait for it.
"""

from __future__ import annotations

import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from arp.store.errors import sqlite_reason
from arp.store.schema import open_checkpointer

log = logging.getLogger(__name__)

_MAX_CHASES: Final = 8
"""The writer adds pages meanwhile; each pass is shorter than the one before, few are enough."""


class Checkpointer:
    """One thread that does one checkpoint at a time, when told."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="arp-ledger-checkpoint")
        self._connection: sqlite3.Connection | None = None
        self._is_busy = False

    def wake(self) -> None:
        """Start a checkpoint, unless one is under way. Never waits."""
        if not self._is_busy:
            self._is_busy = True
            self._pool.submit(self._checkpoint)

    def close(self) -> None:
        """Wait for the checkpoint under way and close the connection."""
        self._pool.shutdown(wait=True)
        if self._connection is not None:
            self._connection.close()

    def _checkpoint(self) -> None:
        try:
            if self._connection is None:
                self._connection = open_checkpointer(self._path)
            for _ in range(_MAX_CHASES):
                _, pages, moved = self._connection.execute("PRAGMA wal_checkpoint").fetchone()
                if moved >= pages:
                    break
        except sqlite3.Error as error:
            log.warning("ledger %s: checkpoint failed: %s", self._path, sqlite_reason(error))
        finally:
            self._is_busy = False
