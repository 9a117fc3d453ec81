"""A ledger file read from beside, while its writer has it and after it is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from arp.ledger.chain import genesis, links
from arp.store import schema
from arp.store.errors import FactUnreadable, StoreClosed, StoreDamaged, StoreUnavailable
from arp.store.schema import open_ledger, open_read_only
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store import tampering
from tests.store.samples import MALFORMED, copy_of_a_crash, facts, meta, numbered, put, slip_in


@asynccontextmanager
async def read_only(path: Path) -> AsyncIterator[SqliteStore]:
    """A ledger file, opened for reading alone."""
    store = SqliteStore(path, read_only=True)
    await store.open()
    yield store
    await store.aclose()


async def test_file_is_read_while_its_writer_has_it(sqlite: SqliteStore) -> None:
    await sqlite.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    async with read_only(sqlite.path) as file:
        assert await file.read("s1") == numbered(1, 3)
        assert not await file.refresh()
        await put(sqlite, 4, 5)
        assert await file.read("s1") == numbered(1, 3)
        assert await file.refresh()
        assert not await file.refresh()
        assert await file.read("s1", 2) == numbered(3, 5)
        assert await file.read("s1", 1, 2) == numbered(2, 3)
        assert await file.read("s1", 5) == []
        assert await file.read("none") == []


async def test_sorted_and_unsorted_facts_are_one_log(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path)
    await store.open()
    await store.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    await store.aclose()
    await store.open()
    await put(store, 1, 2, "s2")
    await put(store, 4, 6)
    await put(store, 7, 7)
    async with read_only(path) as file:
        assert await file.read("s1") == numbered(1, 7)
        assert await file.read("s1", 4) == numbered(5, 7)
        assert await file.read("s1", 0, 4) == numbered(1, 4)
        assert await file.read("s2") == numbered(1, 2, "s2")
    await store.aclose()


@pytest.mark.parametrize("is_sorted", [True, False])
async def test_a_fact_that_is_not_json_is_reported_with_its_position(
    tmp_path: Path, is_sorted: bool
) -> None:
    store = SqliteStore(tmp_path / "l.db")
    await store.open()
    await store.append([SessionWrite("s1", 0, facts(1, 2), meta())])
    await slip_in(store, "s1", 2, MALFORMED)
    if is_sorted:
        await store.aclose()
    async with read_only(store.path) as file:
        assert await file.read("s1") == numbered(1, 2)
        with pytest.raises(FactUnreadable, match="session s1: fact 3 cannot be read"):
            await file.read("s1", 2)
    await store.aclose()


async def test_a_file_left_by_a_killed_process_is_read_completely(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await sqlite.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    async with read_only(copy_of_a_crash(sqlite.path, tmp_path / "copy")) as file:
        assert await file.read("s1") == numbered(1, 3)


async def test_sessions_are_listed_with_their_newest_sequence(sqlite: SqliteStore) -> None:
    await sqlite.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    later = meta("s2", "2026-11-21T09:00:00Z")
    await sqlite.append([SessionWrite("s2", 0, facts(1, 1, "s2"), later)])
    async with read_only(sqlite.path) as file:
        assert [(one.id, one.last_sequence) for one in await file.sessions()] == [
            ("s2", 1),
            ("s1", 3),
        ]
        assert [one.id for one in await file.sessions(limit=1)] == ["s2"]
        assert [one.id for one in await file.sessions(before=later.cursor)] == ["s1"]
        assert await file.sessions(workflow="other") == []
        found = await file.session("s1")
        assert found is not None
        assert (found.title, found.last_sequence) == ("Sales", 3)
        assert await file.session("none") is None


async def test_nothing_is_written_to_it(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    with (
        closing(open_read_only(sqlite.path)) as db,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        db.execute("DELETE FROM segment")
    async with read_only(sqlite.path) as file:
        for writing in (put(file, 4, 4), file.delete("s1"), file.save_model("s1", "m", 1, b"")):
            with pytest.raises(StoreClosed):
                await writing
    log = sqlite.path.with_name(sqlite.path.name + "-wal").stat().st_size
    assert log > 0, "closing it moves nothing into the file"
    await put(sqlite, 4, 4)


async def test_facts_that_are_sorted_meanwhile_are_still_read_once(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    async with read_only(sqlite.path) as file:
        await put(sqlite, 1, 1, "s2")
        await sqlite.delete("s2")  # sorts what is in the journal
        await put(sqlite, 4, 5)
        assert await file.read("s1") == numbered(1, 3)
        assert await file.read("s1", 0, 2) == numbered(1, 2)
        assert await file.refresh()
        assert await file.read("s1") == numbered(1, 5)


async def test_a_damaged_file_is_read_up_to_the_damage(sqlite: SqliteStore) -> None:
    for first in (1, 3, 5):
        await put(sqlite, first, first + 1)
    await put(sqlite, 1, 2, "s2")
    tampering.run(sqlite.path, "UPDATE journal SET crc = crc + 1 WHERE id = 2")
    async with read_only(sqlite.path) as file:
        assert await file.read("s1") == numbered(1, 2)
        with pytest.raises(StoreDamaged) as refused:
            await file.read("s1", 2)
        assert refused.value.after == 2
        assert await file.read("s2") == numbered(1, 2, "s2")


async def test_damaged_row_of_the_journal_is_not_given_out(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    with closing(sqlite3.connect(sqlite.path)) as db:
        db.execute("UPDATE journal SET crc = crc + 1")
        db.commit()
    async with read_only(sqlite.path) as file:
        with pytest.raises(StoreDamaged):
            await file.read("s1")


async def test_row_that_makes_no_sense_says_so(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    with closing(sqlite3.connect(sqlite.path)) as db:
        db.execute("UPDATE journal SET heads = '['")
        db.commit()
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await SqliteStore(sqlite.path, read_only=True).open()


async def test_what_is_no_ledger_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUnavailable, match="there is no ledger"):
        await SqliteStore(tmp_path / "none.db", read_only=True).open()
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreUnavailable, match="is empty"):
        await SqliteStore(empty, read_only=True).open()
    text = tmp_path / "text.db"
    text.write_text("no database at all " * 100)
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        await SqliteStore(text, read_only=True).open()
    newer = tmp_path / "newer.db"
    open_ledger(newer).close()
    monkeypatch.setattr(schema, "VERSION", 0)
    with pytest.raises(StoreUnavailable, match="newer version"):
        await SqliteStore(newer, read_only=True).open()


async def test_the_hash_of_each_sorted_run_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path)
    for first, last in ((1, 3), (4, 5)):
        await store.open()
        row = meta() if first == 1 else None
        await store.append([SessionWrite("s1", first - 1, facts(first, last), row)])
        await store.aclose()
    hashes = list(links(genesis("s1", "e1"), facts(1, 5)))
    await store.open()
    assert await store.heads("s1") == [(3, hashes[2]), (5, hashes[4])]
    await store.aclose()
    tampering.run(path, "UPDATE segment SET head = 'no hash' WHERE first = 1")
    tampering.run(path, "UPDATE segment SET head = NULL WHERE first = 4")
    async with read_only(path) as file:
        assert await file.heads("s1") == [(3, b""), (5, None)]
    tampering.run(path, "PRAGMA user_version = 1")
    async with read_only(path) as file:
        assert await file.heads("s1") == [], "an older version has no such column"
