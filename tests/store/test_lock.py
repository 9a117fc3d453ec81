"""One writer per file."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from arp.store.errors import StoreLocked, StoreUnavailable
from arp.store.lock import FileLock
from tests.store.processes import child

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open files")


def test_the_second_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first, second = FileLock(path), FileLock(path)
    first.acquire()
    with pytest.raises(StoreLocked) as refused:
        second.acquire()
    assert str(refused.value) == (
        f"ledger {path} is in use by process {os.getpid()}; "
        "stop it, or give this one its own: --ledger sqlite:other.db"
    )
    first.release()
    second.acquire()
    second.release()


def test_letting_go_twice_is_harmless(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "ledger.db")
    lock.release()
    lock.acquire()
    lock.release()
    lock.release()


def test_a_lock_file_that_a_dead_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "ledger.db.lock").write_text("999999\n")
    lock = FileLock(tmp_path / "ledger.db")
    lock.acquire()
    assert (tmp_path / "ledger.db.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_holder_that_did_not_say_who_it_is_is_refused_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = FileLock(path)
    first.acquire()
    (tmp_path / "ledger.db.lock").write_text("")
    with pytest.raises(StoreLocked, match=r"in use by process \(unknown\);"):
        FileLock(path).acquire()
    first.release()


def test_two_files_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    locks = [FileLock(tmp_path / name) for name in ("a.db", "b.db")]
    for lock in locks:
        lock.acquire()
    for lock in locks:
        lock.release()


def test_a_lock_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot write .*ledger\.db\.lock \(No such file"):
        FileLock(tmp_path / "missing" / "ledger.db").acquire()


def test_another_name_of_the_file_is_refused_in_the_same_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = FileLock(path)
    first.acquire()
    (tmp_path / "symbolic.db").symlink_to(path)
    (tmp_path / "hard.db").hardlink_to(path)
    for name in ("symbolic.db", "hard.db"):
        with pytest.raises(StoreLocked, match=rf"{name} is in use by process {os.getpid()};"):
            FileLock(tmp_path / name).acquire()
    first.release()
    second = FileLock(tmp_path / "hard.db")
    second.acquire()
    second.release()


@linux
@pytest.mark.parametrize("way", ["symlink", "hard link", "renamed", "lock file removed"])
def test_the_file_itself_is_locked_whatever_its_name(tmp_path: Path, way: str) -> None:
    """A second writer through another name lost 15 of 30 acknowledged turns."""
    path, other = tmp_path / "ledger.db", tmp_path / "elsewhere" / "other.db"
    other.parent.mkdir()
    with child("hold", path) as (process, output):
        assert output.readline() == "open\n"
        if way == "symlink":
            other.symlink_to(path)
        elif way == "hard link":
            other.hardlink_to(path)
        elif way == "renamed":
            path.rename(other)
        else:
            (tmp_path / "ledger.db.lock").unlink()
            other = path
        with pytest.raises(StoreLocked) as refused:
            FileLock(other).acquire()
    assert str(refused.value) == (
        f"ledger {other} is in use by process {process.pid}; "
        "stop it, or give this one its own: --ledger sqlite:other.db"
    )
    lock = FileLock(other)
    lock.acquire()
    lock.release()


@linux
def test_locks_of_sqlite_do_not_get_in_the_way_and_stay(tmp_path: Path) -> None:
    """Closing a descriptor of a file takes away what its process has locked there."""
    path = tmp_path / "ledger.db"
    lock = FileLock(path)
    lock.acquire()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLocked):
            FileLock(path).acquire()
        with child("try_sqlite", path) as (_, output):
            assert output.readline() == "database is locked\n"
        db.execute("COMMIT")
    lock.release()


def test_file_with_several_names_is_refused_where_only_names_are_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.store.lock._lock_beyond_file", lambda _: False)
    path = tmp_path / "ledger.db"
    path.touch()
    (tmp_path / "other.db").hardlink_to(path)
    with pytest.raises(StoreUnavailable, match=r"has 2 names \(hard links\).*remove the others$"):
        FileLock(path).acquire()
    (tmp_path / "other.db").unlink()
    lock = FileLock(path)
    lock.acquire()
    lock.release()


def test_the_file_behind_a_link_is_made_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "there.db")
    lock = FileLock(tmp_path / "link.db")
    lock.acquire()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "link.db",
        "there.db",
        "there.db.lock",
    ]
    lock.release()


def test_full_disk_leaves_out_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended in a traceback; SQLite says in a sentence that the disk is full."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    lock = FileLock(tmp_path / "ledger.db")
    lock.acquire()
    with pytest.raises(StoreLocked, match=r"process \(unknown\);"):
        FileLock(tmp_path / "ledger.db").acquire()
    lock.release()
