"""The write-ahead log is moved into the file beside the writer."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arp.store import writer
from arp.store.checkpoint import Checkpointer
from arp.store.schema import open_ledger
from arp.store.sqlite import SqliteStore
from arp.store.store import Append


def test_a_checkpoint_moves_everything(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with closing(open_ledger(path)):
        size = path.stat().st_size
        checkpointer = Checkpointer(path)
        checkpointer.wake()
        checkpointer.wake()
        checkpointer.close()
        assert path.stat().st_size > size


def test_a_checkpoint_that_fails_is_only_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next commit finds out by itself."""
    (tmp_path / "directory").mkdir()
    checkpointer = Checkpointer(tmp_path / "directory")
    with caplog.at_level(logging.WARNING):
        checkpointer.wake()
        checkpointer.close()
    assert "checkpoint failed: the file cannot be opened" in caplog.text


async def test_the_log_does_not_grow_for_ever(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 100_000)
    log = sqlite.path.with_name(sqlite.path.name + "-wal")
    assert sqlite._checkpointer is not None
    large = [b'{"x":"%s"}' % (b"x" * 1000)] * 20
    for count in range(200):
        await sqlite.append([Append("s1", count * 20, large)])
        await asyncio.to_thread(sqlite._checkpointer._pool.submit(int).result)
    assert log.stat().st_size < 4_000_000, "8 MB were written"
    assert len(await sqlite.read("s1", limit=5000)) == 4000
    with closing(sqlite3.connect(sqlite.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
