"""A ledger file read from beside, while its writer has it and after it is gone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arp.ledger.chain import genesis, links
from arp.store import schema
from arp.store.errors import FactUnreadable, StoreDamaged, StoreUnavailable
from arp.store.ledger_file import LedgerFile
from arp.store.schema import open_ledger
from arp.store.sqlite import SqliteStore
from arp.store.store import Append
from tests.store import tampering
from tests.store.samples import MALFORMED, copy_of_a_crash, facts, meta, numbered, put, slip_in


async def test_file_is_read_while_its_writer_has_it(sqlite: SqliteStore) -> None:
    await sqlite.append([Append("s1", 0, facts(1, 3), meta())])
    with LedgerFile(sqlite.path) as file:
        assert file.read("s1") == numbered(1, 3)
        before = file.version()
        await put(sqlite, 4, 5)
        assert file.version() != before
        assert file.read("s1", 2) == numbered(3, 5)
        assert file.read("s1", 1, 2) == numbered(2, 3)
        assert file.read("s1", 5) == []
        assert file.read("none") == []


async def test_sorted_and_unsorted_facts_are_one_log(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path)
    await store.open()
    await store.append([Append("s1", 0, facts(1, 3), meta())])
    await store.aclose()
    await store.open()
    await put(store, 1, 2, "s2")
    await put(store, 4, 6)
    await put(store, 7, 7)
    with LedgerFile(path) as file:
        assert file.read("s1") == numbered(1, 7)
        assert file.read("s1", 4) == numbered(5, 7)
        assert file.read("s1", 0, 4) == numbered(1, 4)
        assert file.read("s2") == numbered(1, 2, "s2")
    await store.aclose()


@pytest.mark.parametrize("is_sorted", [True, False])
async def test_fact_that_is_no_json_is_named_where_it_stands(
    tmp_path: Path, is_sorted: bool
) -> None:
    store = SqliteStore(tmp_path / "l.db")
    await store.open()
    await store.append([Append("s1", 0, facts(1, 2), meta())])
    await slip_in(store, "s1", 2, MALFORMED)
    if is_sorted:
        await store.aclose()
    with LedgerFile(store.path) as file:
        assert file.read("s1") == numbered(1, 2)
        with pytest.raises(FactUnreadable, match="session s1: fact 3 cannot be read"):
            file.read("s1", 2)
    await store.aclose()


async def test_file_that_a_killed_process_left_is_read_whole(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await sqlite.append([Append("s1", 0, facts(1, 3), meta())])
    with LedgerFile(copy_of_a_crash(sqlite.path, tmp_path / "copy")) as file:
        assert file.read("s1") == numbered(1, 3)


async def test_sessions_are_listed_with_their_newest_sequence(sqlite: SqliteStore) -> None:
    await sqlite.append([Append("s1", 0, facts(1, 3), meta())])
    later = meta("s2", "2026-11-21T09:00:00Z")
    await sqlite.append([Append("s2", 0, facts(1, 1, "s2"), later)])
    with LedgerFile(sqlite.path) as file:
        assert [(one.id, one.last_sequence) for one in file.sessions()] == [("s2", 1), ("s1", 3)]
        assert [one.id for one in file.sessions(limit=1)] == ["s2"]
        assert [one.id for one in file.sessions(before=later.cursor)] == ["s1"]
        assert file.sessions(workflow="other") == []
        found = file.session("s1")
        assert found is not None
        assert (found.title, found.last_sequence) == ("Sales", 3)
        assert file.session("none") is None


async def test_nothing_is_written_to_it(sqlite: SqliteStore) -> None:
    with (
        LedgerFile(sqlite.path) as file,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        file._db.execute("DELETE FROM segment")


async def test_damaged_row_of_the_journal_is_not_given_out(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    with closing(sqlite3.connect(sqlite.path)) as db:
        db.execute("UPDATE journal SET crc = crc + 1")
        db.commit()
    with LedgerFile(sqlite.path) as file, pytest.raises(StoreDamaged):
        file.read("s1")


async def test_row_that_makes_no_sense_says_so(sqlite: SqliteStore) -> None:
    await put(sqlite, 1, 3)
    with closing(sqlite3.connect(sqlite.path)) as db:
        db.execute("UPDATE journal SET heads = '['")
        db.commit()
    with LedgerFile(sqlite.path) as file, pytest.raises(StoreUnavailable, match="is damaged"):
        file.read("s1")


def test_what_is_no_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreUnavailable, match="there is no ledger"):
        LedgerFile(tmp_path / "none.db")
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreUnavailable, match="is empty"):
        LedgerFile(empty)
    text = tmp_path / "text.db"
    text.write_text("no database at all " * 100)
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        LedgerFile(text)
    newer = tmp_path / "newer.db"
    open_ledger(newer).close()
    monkeypatch.setattr(schema, "VERSION", 0)
    with pytest.raises(StoreUnavailable, match="newer version"):
        LedgerFile(newer)


async def test_the_hash_of_each_sorted_run_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path)
    for first, last in ((1, 3), (4, 5)):
        await store.open()
        row = meta() if first == 1 else None
        await store.append([Append("s1", first - 1, facts(first, last), row)])
        await store.aclose()
    hashes = list(links(genesis("s1", "e1"), facts(1, 5)))
    await store.open()
    assert await store.heads("s1") == [(3, hashes[2]), (5, hashes[4])]
    await store.aclose()
    tampering.run(path, "UPDATE segment SET head = 'no hash' WHERE first = 1")
    tampering.run(path, "UPDATE segment SET head = NULL WHERE first = 4")
    with LedgerFile(path) as file:
        assert file.heads("s1") == [(3, b""), (5, None)]
    tampering.run(path, "PRAGMA user_version = 1")
    with LedgerFile(path) as file:
        assert file.heads("s1") == [], "an older version has no such column"
