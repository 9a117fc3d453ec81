"""What people read when the store refuses."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from arp.protocol.errors import ArpError, error_payload
from arp.store.errors import (
    FactUnreadable,
    SequenceConflict,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreUnwritable,
    opening_reason,
    os_reason,
    sqlite_reason,
)


def test_a_peer_never_sees_where_the_ledger_lies() -> None:
    error = StoreUnwritable("/home/ann/.arp/ledger.db", "the disk is full")
    assert str(error) == "ledger /home/ann/.arp/ledger.db cannot be written: the disk is full"
    payload = error_payload(error)
    assert payload.error == (
        "the ledger cannot be written now, so nothing new is accepted; "
        "reading still works, try again later"
    )
    assert payload.detail is None
    assert payload.retryable is True


def test_conflict_names_the_way_out() -> None:
    assert str(SequenceConflict("s1", 1, 2)) == (
        "session s1 is at sequence 2, not at 1; read the newer facts and append after them"
    )


def test_closed_store_says_what_to_do() -> None:
    assert str(StoreClosed()) == (
        "the store is not open; await open() first, and do not use it after aclose()"
    )


def test_damage_names_the_session_and_the_last_good_sequence() -> None:
    error = StoreDamaged("s1", 41)
    assert (error.after, error.detail) == (41, "s1")


def test_unreadable_fact_is_damage_that_names_the_fact() -> None:
    error = FactUnreadable("s1", 42, "it is no JSON")
    assert isinstance(error, StoreDamaged)
    assert (error.after, error.sequence, error.detail) == (41, 42, "s1")
    assert "fact 42 cannot be read (it is no JSON)" in error.message


def test_all_errors_of_a_store_are_of_one_tree() -> None:
    assert issubclass(StoreError, ArpError)
    assert {each.__name__ for each in StoreError.__subclasses__()} == {
        "SequenceConflict",
        "SessionMoved",
        "InvalidWrite",
        "StoreUnwritable",
        "StoreDamaged",
        "StoreLocked",
        "StoreUnavailable",
        "StoreClosed",
        "BlobNotFound",
    }


@pytest.mark.parametrize(
    ("code", "begin"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full;"),
        (sqlite3.SQLITE_IOERR_FSYNC, "the disk refuses to write;"),
        (sqlite3.SQLITE_BUSY, "another program holds a lock on it;"),
        (sqlite3.SQLITE_MISUSE, "SQLite refuses (words)"),
    ],
)
def test_each_error_of_sqlite_is_reported_with_a_hint(code: int, begin: str) -> None:
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode = code
    assert sqlite_reason(error).startswith(begin)
    assert sqlite_reason(error).endswith("(words)")


@pytest.mark.parametrize(
    ("code", "free", "said"),
    [
        (sqlite3.SQLITE_FULL, 1 << 30, "the disk is full; free some space and start again (words)"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, 0, "the disk is full; free some space and start again"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, 1 << 30, "the disk refuses to write;"),
        (sqlite3.SQLITE_NOTADB, 0, "the file is no SQLite database;"),
    ],
)
def test_full_disk_at_the_start_says_to_start_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, free: int, said: str
) -> None:
    """SQLite says `disk I/O error` where there is no room for its shared memory."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode = code
    assert opening_reason(error, tmp_path / "ledger.db").startswith(said)


def test_full_disk_is_no_matter_of_rights() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os_reason(full) == "(No space left on device); free some space and start again"
    denied = OSError(errno.EACCES, os.strerror(errno.EACCES))
    assert os_reason(denied).startswith("(Permission denied); let this user write there, or")
