"""What is made of facts, and the heads of their chain: kept beside the facts, in both stores."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from arp.ledger.chain import genesis, head, links
from arp.store.errors import SequenceConflict, StoreClosed
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, Store
from tests.store.processes import child
from tests.store.samples import copy_of_a_crash, facts, meta, put


async def test_a_model_comes_back_with_the_sequence_that_it_covers(store: Store) -> None:
    await put(store, 1, 5)
    assert await store.load_model("s1", "thread") is None
    await store.save_model("s1", "thread", 3, b'{"n":3}')
    await store.save_model("s1", "tasks", 5, b"\x00\xff")
    assert await store.load_model("s1", "thread") == (3, b'{"n":3}')
    assert await store.load_model("s1", "tasks") == (5, b"\x00\xff")
    assert await store.load_model("s2", "thread") is None


async def test_the_newer_model_stays_whatever_the_order(store: Store) -> None:
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 4, b"four")
    await store.save_model("s1", "thread", 2, b"two")
    assert await store.load_model("s1", "thread") == (4, b"four")
    await store.save_model("s1", "thread", 4, b"made again")
    await store.save_model("s1", "thread", 5, b"five")
    assert await store.load_model("s1", "thread") == (5, b"five")


@pytest.mark.parametrize("sequence", [-1, 0, 6])
async def test_a_model_of_facts_that_there_are_not_is_refused(store: Store, sequence: int) -> None:
    await put(store, 1, 5)
    with pytest.raises(SequenceConflict):
        await store.save_model("s1", "thread", sequence, b"x")
    with pytest.raises(SequenceConflict):
        await store.save_model("unknown", "thread", 1, b"x")
    assert await store.load_model("s1", "thread") is None


async def test_models_go_with_their_session(store: Store) -> None:
    await put(store, 1, 2)
    await put(store, 1, 2, "s2")
    await store.save_model("s1", "thread", 2, b"one")
    await store.save_model("s2", "thread", 2, b"two")
    assert await store.delete("s1")
    assert await store.load_model("s1", "thread") is None
    assert await store.load_model("s2", "thread") == (2, b"two")
    await put(store, 1, 9)
    assert await store.load_model("s1", "thread") is None


@pytest.mark.parametrize("kind", [MemoryStore, SqliteStore])
async def test_a_closed_store_keeps_and_gives_nothing(
    kind: type[MemoryStore] | type[SqliteStore], tmp_path: Path
) -> None:
    store = MemoryStore() if kind is MemoryStore else SqliteStore(tmp_path / "l.db")
    with pytest.raises(StoreClosed):
        await store.save_model("s1", "thread", 1, b"x")
    with pytest.raises(StoreClosed):
        await store.load_model("s1", "thread")
    with pytest.raises(StoreClosed):
        await store.heads("s1")


async def test_a_saved_model_outlives_a_crash(sqlite: SqliteStore, tmp_path: Path) -> None:
    """Saved means synced: a copy of the files at this moment has it."""
    await put(sqlite, 1, 5)
    await sqlite.save_model("s1", "thread", 5, b"all five")
    after = SqliteStore(copy_of_a_crash(sqlite.path, tmp_path / "crash"))
    await after.open()
    assert await after.load_model("s1", "thread") == (5, b"all five")
    await after.aclose()


async def test_a_damaged_model_is_not_given_out(
    sqlite: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    await put(sqlite, 1, 5)
    await sqlite.save_model("s1", "thread", 5, b"all five")
    with closing(sqlite3.connect(sqlite.path)) as db, db:
        db.execute("UPDATE model SET data = X'61'")
    with caplog.at_level(logging.WARNING):
        assert await sqlite.load_model("s1", "thread") == (5, b"")
    assert "session s1: model thread is damaged" in caplog.text
    await sqlite.save_model("s1", "thread", 5, b"made again")
    assert await sqlite.load_model("s1", "thread") == (5, b"made again")


@pytest.mark.kill
@pytest.mark.timeout(900)
def test_a_kill_leaves_each_model_consistent(tmp_path: Path, kill_rounds: int) -> None:
    """`kill -9` while models are saved: what is read says what its sequence says."""
    path = tmp_path / "ledger.db"
    newest = 0
    for round_number in range(kill_rounds):
        with child("save", path) as (_, told):
            for _ in range(20 + round_number):
                newest = max(newest, int(told.readline()))
        with closing(sqlite3.connect(path)) as db:
            sequence, data = db.execute("SELECT sequence, data FROM model").fetchone()
        assert sequence >= newest, "a model that was acknowledged is gone"
        assert data == b"%d;" % sequence * 5_000


# -- the chain ---------------------------------------------------------------------------------


async def test_a_head_is_kept_for_each_segment(tmp_path: Path) -> None:
    """Facts that are sorted get the hash of the last; it goes on over restarts and segments."""
    path = tmp_path / "l.db"
    start = genesis("s1", "e1")
    hashes = list(links(start, facts(1, 9)))
    for first, last in ((1, 4), (5, 9)):
        store = SqliteStore(path)
        await store.open()
        batch = [SessionWrite("s1", first - 1, facts(first, last), meta("s1"))]
        await store.append(batch)
        await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        kept = db.execute("SELECT first, last, head FROM segment ORDER BY first").fetchall()
    assert kept == [(1, 4, hashes[3].hex()), (5, 9, hashes[8].hex())]
    store = SqliteStore(path)
    await store.open()
    assert await store.heads("s1") == [(4, hashes[3]), (9, hashes[8])]
    assert await store.heads("s2") == []
    await store.aclose()


async def test_a_session_that_begins_again_has_a_chain_of_its_own(sqlite: SqliteStore) -> None:
    await sqlite.append([SessionWrite("s1", 0, facts(1, 3), meta("s1", epoch="old"))])
    await sqlite.delete("s1")
    await sqlite.append([SessionWrite("s1", 0, facts(1, 3), meta("s1", epoch="new"))])
    await put(sqlite, 1, 1, "s2")
    await sqlite.delete("s2")  # sorts what is in the journal
    assert await sqlite.heads("s1") == [(3, head(genesis("s1", "new"), facts(1, 3)))]


async def test_a_changed_fact_does_not_fit_the_head_even_where_its_checksum_does(
    tmp_path: Path,
) -> None:
    """CRC-32 finds a bad disk; the chain finds a hand."""
    path = tmp_path / "l.db"
    store = SqliteStore(path)
    await store.open()
    await store.append([SessionWrite("s1", 0, facts(1, 5), meta("s1"))])
    await store.aclose()
    with closing(sqlite3.connect(path)) as db, db:
        body = db.execute("SELECT facts FROM segment").fetchone()[0].replace(b":3}", b":4}")
        db.execute("UPDATE segment SET facts = ?, crc = ?", (body, crc32(body)))
    store = SqliteStore(path)
    await store.open()
    read = [fact for _, fact in await store.read("s1")]
    assert read[2] == b'{"sessionId":"s1","sequence":4}'
    assert await store.heads("s1") != [(5, head(genesis("s1", "e1"), read))]
    await store.aclose()


async def test_a_file_of_version_1_is_read_and_goes_on(tmp_path: Path) -> None:
    """Its sessions keep no heads; new ones do."""
    path = tmp_path / "l.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(Path(__file__).with_name("version_1.sql").read_text())
    store = SqliteStore(path)
    await store.open()
    assert [fact for _, fact in await store.read("s1")] == facts(1, 4)
    named = await store.runtime_id()
    await put(store, 5, 6)
    await store.append([SessionWrite("s2", 0, facts(1, 2, "s2"), meta("s2"))])
    await store.save_model("s1", "thread", 6, b"six")
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
    store = SqliteStore(path)
    await store.open()
    assert await store.runtime_id() == named
    assert [fact for _, fact in await store.read("s1")] == facts(1, 6)
    assert await store.heads("s1") == [(4, None), (6, None)]
    assert await store.heads("s2") == [(2, head(genesis("s2", "e1"), facts(1, 2, "s2")))]
    assert await store.load_model("s1", "thread") == (6, b"six")
    await store.aclose()
