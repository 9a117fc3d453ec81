"""What is deleted from a ledger is not in its files any more."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite

WAIT_S = 30.0

SECRET = b"canary-5d0e"
FACT = b'{"text":"' + SECRET * 500 + b'"}'


def files_with_it(path: Path) -> list[str]:
    return [one.name for one in path.parent.glob(f"{path.name}*") if SECRET in one.read_bytes()]


async def filled(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    await store.append([SessionWrite("gone", 0, [FACT] * 50)])
    await store.append([SessionWrite("stays", 0, [b'{"text":"other"}'])])
    await store.save_model("gone", "model", 50, FACT)
    return store


async def test_deleted_bytes_are_in_no_file_of_an_open_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = await filled(path)
    assert files_with_it(path)
    assert await store.delete("gone")
    assert files_with_it(path) == []
    await store.aclose()
    assert files_with_it(path) == []


async def test_free_pages_of_an_earlier_version_are_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = await filled(path)
    await store.aclose()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = FAST")
        db.execute("DELETE FROM segment WHERE session = 'gone'")
        db.execute("DELETE FROM model WHERE session = 'gone'")
    assert files_with_it(path) == [path.name]
    store = SqliteStore(path)
    await store.open()
    assert await store.delete("stays")
    assert files_with_it(path) == []
    await store.aclose()


async def test_a_log_that_somebody_reads_is_emptied_after_that(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = await filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM segment").fetchone()
        assert await store.delete("gone")
        assert files_with_it(path), "the reader still needs it"
    count = 1
    async with asyncio.timeout(WAIT_S):
        while files_with_it(path):
            await store.append([SessionWrite("stays", count, [b"{}"])])
            count += 1
    await store.aclose()
