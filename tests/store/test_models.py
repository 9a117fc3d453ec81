"""What is made of facts, and the heads of their chain: kept beside the facts in a file."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from arp.ledger.chain import genesis, head, links
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store.processes import child
from tests.store.samples import facts, meta, put


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
