"""The store in a file: durable, alone on its file, and readable while it is written."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from arp.store.errors import StoreDamaged, StoreError, StoreLocked, StoreUnavailable
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store.processes import child
from tests.store.samples import copy_of_a_crash, facts, meta, numbered, put


@pytest.mark.kill
@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(
    tmp_path: Path, kill_rounds: int
) -> None:
    """threats.md F02, G1, G2: what was acknowledged is there, in order, without holes."""
    path = tmp_path / "ledger.db"
    promised: dict[str, int] = {}
    moment = random.Random(1)
    for _ in range(kill_rounds):
        with child("append", path) as (process, output):
            for _ in range(moment.randint(1, 60)):
                words = output.readline().split()
                promised.update((name, int(last)) for name, last in (w.split("=") for w in words))
            process.kill()
            process.wait(timeout=10)
            for line in output.read().split("\n")[:-1]:
                words = line.split()
                promised.update((name, int(last)) for name, last in (w.split("=") for w in words))
        store = SqliteStore(path)
        await store.open()
        for name, last in promised.items():
            found = await store.read(name, limit=10**9)
            assert found == numbered(1, len(found), name)
            assert len(found) >= last
        await store.aclose()
    assert len(promised) == 10


async def test_a_second_process_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """threats.md F17; ledger.md 5: a second process on the same file is refused."""
    path = tmp_path / "ledger.db"
    with child("hold", path) as (process, output):
        assert output.readline() == "open\n"
        store = SqliteStore(path)
        with pytest.raises(StoreLocked) as refused:
            await store.open()
        assert str(refused.value) == (
            f"ledger {path} is in use by process {process.pid}; "
            "stop it, or give this one its own: --ledger sqlite:other.db"
        )
        process.kill()
        process.wait(timeout=10)
        await store.open()
        await put(store, 1, 1)
        await store.aclose()


def test_a_disk_that_takes_no_more_stops_writing_and_not_reading(tmp_path: Path) -> None:
    """threats.md F04, G8: fails closed, reads go on, recovers without a restart."""
    path = tmp_path / "ledger.db"
    with child("small_disk", path) as (process, output):
        refused, still_refused, stored = output.read().splitlines()
        assert process.wait(timeout=10) == 0
    assert refused.startswith(f"ledger {path} cannot be written: the disk")
    assert still_refused == "still refused"
    assert stored.startswith("stored ")


async def test_every_commit_is_synced(sqlite: SqliteStore) -> None:
    """ledger.md 5: WAL with `synchronous=FULL`."""
    db = sqlite._journal._db
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_appends_that_wait_share_a_transaction(sqlite: SqliteStore) -> None:
    names = [f"s{number}" for number in range(200)]
    await asyncio.gather(*(put(sqlite, 1, 1, name) for name in names))
    with closing(sqlite3.connect(sqlite.path)) as db:
        (transactions,) = db.execute("SELECT count(*) FROM journal").fetchone()
    assert transactions < 100
    for name in names:
        assert await sqlite.read(name) == numbered(1, 1, name)


async def test_the_file_and_its_directory_are_for_this_user_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / ".arp" / "ledger.db")
    await store.open()
    await put(store, 1, 1)
    for name, mode in ((".", 0o700), ("ledger.db", 0o600), ("ledger.db-wal", 0o600)):
        assert stat.S_IMODE((store.path.parent / name).stat().st_mode) == mode
    await store.aclose()


async def test_a_closed_ledger_is_one_file_and_its_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "here" / "ledger.db")
    await store.open()
    await put(store, 1, 1)
    await store.aclose()
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "ledger.db",
        "ledger.db.lock",
    ]


async def test_reading_spans_what_is_sorted_and_what_is_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db")
    await store.open()
    await put(store, 1, 50)
    await store.aclose()
    await store.open()
    await put(store, 51, 60)
    assert await store.read("s1") == numbered(1, 60)
    assert await store.read("s1", after=45, limit=10) == numbered(46, 55)
    assert await store.read("s1", after=45, limit=5) == numbered(46, 50)
    assert await store.read("s1", after=50, limit=5) == numbered(51, 55)
    await store.aclose()


async def closed_ledger(path: Path) -> None:
    """A ledger at rest with two sessions of three segments each."""
    store = SqliteStore(path)
    for first in (1, 11, 21):
        await store.open()
        await put(store, first, first + 9, "a")
        await store.append(
            [SessionWrite("b", first - 1, facts(first, first + 9, "b"), meta("b", title="B"))]
        )
        await store.aclose()


async def test_a_damaged_segment_is_noticed_and_the_rest_is_read(tmp_path: Path) -> None:
    """threats.md F06: found by checksum; the session is quarantined, others run."""
    path = tmp_path / "ledger.db"
    await closed_ledger(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE segment SET crc = crc + 1 WHERE session = 'a' AND first = 11")
        db.commit()
    store = SqliteStore(path)
    await store.open()
    assert await store.read("a") == numbered(1, 10, "a")
    with pytest.raises(StoreDamaged, match="session a: the facts after sequence 10 are damaged"):
        await store.read("a", after=10)
    assert await store.read("a", after=20) == numbered(21, 30, "a")
    assert await store.read("b") == numbered(1, 30, "b")
    await store.aclose()


async def test_a_missing_segment_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await closed_ledger(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM segment WHERE first = 11 OR session = 'b'")
        db.commit()
    store = SqliteStore(path)
    await store.open()
    assert await store.read("a") == numbered(1, 10, "a")
    with pytest.raises(StoreDamaged):
        await store.read("a", after=10)
    await store.aclose()


async def test_a_damaged_journal_is_noticed_where_it_begins(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await put(sqlite, 1, 2)
    await put(sqlite, 3, 4)
    copy = copy_of_a_crash(sqlite.path, tmp_path / "crash")
    with closing(sqlite3.connect(copy)) as db:
        db.execute("UPDATE journal SET crc = crc + 1 WHERE id = 2")
        db.commit()
    crashed = SqliteStore(copy)
    await crashed.open()
    assert await crashed.read("s1") == numbered(1, 2)
    with pytest.raises(StoreDamaged):
        await crashed.read("s1", after=2)
    with pytest.raises(StoreDamaged):
        await put(crashed, 3, 3)
    await put(crashed, 1, 1, "other")
    await crashed.aclose()


async def test_a_flipped_byte_anywhere_never_gives_a_wrong_fact(tmp_path: Path) -> None:
    """threats.md F06: it is an error or it is harmless; a fact that is read is the fact written."""
    path = tmp_path / "ledger.db"
    await closed_ledger(path)
    whole = path.read_bytes()
    chance = random.Random(6)
    refused = 0
    for _ in range(150):
        broken = bytearray(whole)
        broken[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        store = SqliteStore(path)
        try:
            await store.open()
            for name in ("a", "b"):
                found = await store.read(name)
                assert found == numbered(1, len(found), name)
            await store.sessions()
        except StoreError:
            refused += 1
        finally:
            await store.aclose()
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert refused > 0


@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"\0" * 5000])
async def test_a_file_that_is_no_database_is_refused_and_not_touched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        await SqliteStore(path).open()
    assert path.read_bytes() == content


async def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match="let this user write there"):
        await SqliteStore(tmp_path / "file" / "ledger.db").open()
    (tmp_path / "directory").mkdir()
    with pytest.raises(StoreUnavailable):
        await SqliteStore(tmp_path / "directory").open()


async def test_a_ledger_without_its_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    await closed_ledger(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE journal")
    with pytest.raises(StoreUnavailable, match="no such table: journal"):
        await SqliteStore(path).open()


async def test_a_disk_that_refuses_at_the_end_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "ledger.db")
    await store.open()
    await put(store, 1, 2000)
    store._journal._db.execute("PRAGMA max_page_count = 1")
    await store.aclose()
    assert "not sorted on close: the disk is full" in caplog.text
    await store.open()
    assert await store.read("s1", limit=2000) == numbered(1, 2000)
    await store.aclose()


async def test_an_open_that_was_refused_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"not a database at all" * 50)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await SqliteStore(path).open()
    path.unlink()
    store = SqliteStore(path)
    await store.open()
    await store.aclose()
