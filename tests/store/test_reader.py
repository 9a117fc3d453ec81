"""Questions to the file run on threads of their own."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from arp.store import writer
from arp.store.errors import StoreUnavailable
from arp.store.reader import Reader, SessionQuery, find_session, list_sessions
from arp.store.schema import open_ledger
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store.samples import meta


async def test_two_questions_run_side_by_side_and_off_the_loop(sqlite: SqliteStore) -> None:
    both = threading.Barrier(2)

    def question(_: sqlite3.Connection) -> int:
        both.wait(timeout=10)
        return threading.get_ident()

    reader = Reader(sqlite.path)
    threads = await asyncio.gather(*(reader.run(question) for _ in range(2)))
    assert len({*threads, threading.get_ident()}) == 3
    reader.close()


async def test_a_file_that_cannot_be_read_says_so_without_its_path(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "missing" / "ledger.db")
    with pytest.raises(StoreUnavailable) as refused:
        await reader.run(lambda db: list_sessions(db, SessionQuery(), 1))
    assert str(refused.value) == (
        "the ledger cannot be read: the file cannot be opened; check the directory and its "
        "permissions (unable to open database file)"
    )
    reader.close()


async def test_a_row_that_is_damaged_says_so(sqlite: SqliteStore) -> None:
    await sqlite.append([SessionWrite("s1", 0, [], meta("s1"))])
    with closing(open_ledger(sqlite.path)) as db:
        db.execute("UPDATE session SET meta = '{\"id\":'")
    with pytest.raises(StoreUnavailable, match="a row is damaged"):
        await sqlite.sessions()


def test_questions_can_be_asked_of_any_connection(tmp_path: Path) -> None:
    with closing(open_ledger(tmp_path / "l.db")) as db:
        assert list_sessions(db, SessionQuery("ann", "chat", None, "2026~x"), 5) == []
        assert find_session(db, "s1") is None


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_IOERR_READ, True),
        (sqlite3.SQLITE_CORRUPT, False),
        (sqlite3.SQLITE_NOTADB, False),
    ],
)
async def test_the_answer_says_whether_to_ask_again(
    tmp_path: Path, code: int, retryable: bool
) -> None:
    """A renderer that comes back just then must not take a lock of a moment for the end."""
    path = tmp_path / "l.db"
    open_ledger(path).close()

    def refuse(_: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("no")
        error.sqlite_errorcode = code
        raise error

    reader = Reader(path)
    with pytest.raises(StoreUnavailable, match="the ledger cannot be read") as refused:
        await reader.run(refuse)
    reader.close()
    assert refused.value.retryable is retryable


# -- checkpoints ---------------------------------------------------------------------------------


def test_a_checkpoint_moves_everything(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with closing(open_ledger(path)):
        size = path.stat().st_size
        reader = Reader(path)
        reader.checkpoint()
        reader.checkpoint()
        reader.close()
        assert path.stat().st_size > size


def test_a_checkpoint_that_fails_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next commit finds out by itself."""
    (tmp_path / "directory").mkdir()
    reader = Reader(tmp_path / "directory")
    with caplog.at_level(logging.WARNING):
        reader.checkpoint()
        reader.close()
    assert "checkpoint failed: the file cannot be opened" in caplog.text


async def test_the_log_does_not_grow_for_ever(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 100_000)
    log = sqlite.path.with_name(sqlite.path.name + "-wal")
    assert sqlite._reader is not None
    large = [b'{"x":"%s"}' % (b"x" * 1000)] * 20
    for count in range(200):
        await sqlite.append([SessionWrite("s1", count * 20, large)])
        await asyncio.to_thread(sqlite._reader._pool.submit(int).result)
    assert log.stat().st_size < 4_000_000, "8 MB were written"
    assert len(await sqlite.read("s1", limit=5000)) == 4000
    with closing(sqlite3.connect(sqlite.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
