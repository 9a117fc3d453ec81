"""The stores of this project under test; the factories are `memory` and `sqlite`.

arp conformance store arp.conformance.store.own_stores:sqlite
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from arp.conformance.store.store_under_test import StoreUnderTest
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import Store


class MemoryUnderTest(StoreUnderTest):
    """`MemoryStore`; each object has its own storage."""

    name = "memory"
    is_durable = False

    def make(self) -> Store:
        """Return a new store object."""
        return MemoryStore()


class SqliteUnderTest(StoreUnderTest):
    """`SqliteStore`, with its file in a directory."""

    name = "sqlite"

    def __init__(self, directory: Path) -> None:
        self.path = directory / "ledger.db"

    def make(self) -> Store:
        """Return a new store object for the file."""
        return SqliteStore(self.path)

    def damage(self, session_id: str, sequence: int) -> None:
        """Overwrite the segment or the journal row that has the fact."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "UPDATE segment SET facts = zeroblob(length(facts))"
                " WHERE session = ? AND ? BETWEEN first AND last",
                (session_id, sequence),
            )
            for row, heads in db.execute("SELECT id, heads FROM journal").fetchall():
                runs = msgspec.json.decode(heads, type=list[tuple[str, int, int]])
                if any(
                    name == session_id and first <= sequence < first + count
                    for name, first, count in runs
                ):
                    db.execute(
                        "UPDATE journal SET facts = zeroblob(length(facts)) WHERE id = ?", (row,)
                    )

    def damage_model(self, session_id: str, name: str) -> None:
        """Overwrite the data of the model."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "UPDATE model SET data = zeroblob(length(data)) WHERE session = ? AND name = ?",
                (session_id, name),
            )


def memory(_: Path, /) -> StoreUnderTest:
    """Return the store in memory under test."""
    return MemoryUnderTest()


def sqlite(directory: Path, /) -> StoreUnderTest:
    """Return the store in a SQLite file under test."""
    return SqliteUnderTest(directory)
