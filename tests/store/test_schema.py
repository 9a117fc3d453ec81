"""Whose file it is, and of which version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from arp.store.errors import StoreUnavailable
from arp.store.schema import open_ledger, open_reader


def test_a_new_file_gets_the_tables_and_says_what_it_is(tmp_path: Path) -> None:
    with closing(open_ledger(tmp_path / "new.db")) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (0x41525031,)
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        names = [name for (name,) in tables]
        assert names == ["journal", "model", "said", "segment", "session"]
    with closing(open_ledger(tmp_path / "new.db")) as db:
        assert db.execute("SELECT count(*) FROM journal").fetchone() == (0,)


def test_a_change_of_version_that_fails_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(Path(__file__).with_name("version_1.sql").read_text())
        db.execute("CREATE TABLE model (stands TEXT)")
    with pytest.raises(StoreUnavailable, match="model"):
        open_ledger(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        columns = [row[1] for row in db.execute("PRAGMA table_info(segment)")]
    assert columns == ["session", "first", "last", "crc", "facts"]


def test_a_ledger_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    """threats.md F23."""
    path = tmp_path / "newer.db"
    open_ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 4")
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable) as refused:
        open_ledger(path)
    assert str(refused.value) == (
        f"ledger {path} was written by a newer version (tables 4, this one knows 3); "
        "upgrade, or name another file: --ledger sqlite:other.db"
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("statement", ["CREATE TABLE sales (total)", "PRAGMA application_id = 77"])
def test_a_database_of_something_else_is_refused_and_not_touched(
    tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "sales.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable) as refused:
        open_ledger(path)
    assert str(refused.value) == (
        f"{path} is a database of another program; name another file: --ledger sqlite:other.db"
    )
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["sales.db"]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    open_ledger(tmp_path / "l.db").close()
    with (
        closing(open_reader(tmp_path / "l.db")) as db,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        db.execute("DELETE FROM session")


def test_pages_of_sessions_are_found_by_index(tmp_path: Path) -> None:
    """One owner's page does not read everybody's rows."""
    with closing(open_ledger(tmp_path / "l.db")) as db:
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT meta FROM session WHERE owner = 'ann' "
            "AND (updated_at, id) < ('2026', 'x') ORDER BY updated_at DESC, id DESC LIMIT 9"
        ).fetchall()
    assert [row[3] for row in plan] == [
        "SEARCH session USING INDEX session_by_owner (owner=? AND (updated_at,id)<(?,?))"
    ]
