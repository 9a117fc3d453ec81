"""One writer per file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arp.store.errors import StoreLocked, StoreUnavailable
from arp.store.lock import FileLock


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
