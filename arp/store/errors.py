"""The errors of a store.

StoreError(ArpError)
├── SequenceConflict    another writer was first; nothing of the session was stored
├── SessionMoved        another process owns the session now; nothing of it was stored
├── InvalidWrite        no store could store this write
├── StoreUnwritable     the disk or the database refuses writes; writing is tried again
├── StoreDamaged        facts of one session fail their checksum; other sessions are not affected
│   └── FactUnreadable      one fact passes its checksum, but is not a valid fact
├── StoreLocked         another process has the file
├── StoreUnavailable    an unknown kind of store, or a file that this version must not write
│   └── StoreUnreadable     a query failed; the next one may succeed
├── StoreClosed         used before `open` or after `aclose`
└── BlobNotFound        no blob with that id
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from arp.protocol.errors import ArpError


class StoreError(ArpError):
    """An error of a store."""


class SequenceConflict(StoreError):
    """The session is not at the expected sequence; nothing of it was stored."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"session {session_id} is at sequence {actual}, not at {expected}; "
            "read the newer facts and append after them",
            detail=session_id,
        )
        self.expected = expected
        self.actual = actual


class SessionMoved(StoreError):
    """Another process has become the owner of the session; nothing of it was stored."""

    retryable = True

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id} is served by another process now; connect to it again",
            detail=session_id,
        )


class InvalidWrite(StoreError):
    """A write that no store could store and return again; nothing of its session was stored."""


class StoreUnwritable(StoreError):
    """The ledger cannot be written. The facts of the failed call may or may not be stored."""

    retryable = True

    def __init__(self, path: str, reason: str, *, is_readable: bool = True) -> None:
        super().__init__(
            "the ledger cannot be written now, so nothing new is accepted; "
            f"{'reading still works, ' if is_readable else ''}try again later"
        )
        self.path = path
        self.reason = reason
        """Reason, for the operator. It may name files, so it is not part of `message`."""

    def __str__(self) -> str:
        return f"ledger {self.path} cannot be written: {self.reason}"


class StoreDamaged(StoreError):
    """Facts of one session fail their checksum. Other sessions are not affected."""

    def __init__(self, session_id: str, after: int) -> None:
        super().__init__(
            f"session {session_id}: the facts after sequence {after} are damaged on the disk; "
            "restore the ledger from a backup, or delete the session",
            detail=session_id,
        )
        self.after = after
        """Sequence of the last fact that is known to be good."""


class FactUnreadable(StoreDamaged):
    """A fact is not valid: not JSON, not a fact, or not possible after the previous facts."""

    def __init__(self, session_id: str, sequence: int, reason: str) -> None:
        problem = f"session {session_id}: fact {sequence} cannot be read ({reason})"
        # Not `super()`: the checksum is right, so the message of `StoreDamaged` would be wrong.
        ArpError.__init__(self, f"{problem}; the facts before it can", detail=session_id)
        self.after = sequence - 1
        self.sequence = sequence


class StoreLocked(StoreError):
    """Another process writes this ledger."""


class StoreUnavailable(StoreError):
    """A store that cannot be opened: unknown scheme, foreign file, newer version."""


class StoreUnreadable(StoreUnavailable):
    """An open ledger cannot be read now, because of its disk, its database or a foreign lock."""

    retryable = True


class StoreClosed(StoreError):
    """The store is not open. Nothing was stored."""

    def __init__(self) -> None:
        super().__init__(
            "the store is not open; await open() first, and do not use it after aclose()"
        )


class BlobNotFound(StoreError):
    """There is no blob with this id, or the id is not valid; both have the same message."""

    def __init__(self) -> None:
        super().__init__("no such blob")


_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, and writing continues by itself",
    sqlite3.SQLITE_READONLY: "the file or its directory is read-only; let this user write there",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check the directory and its permissions",
    sqlite3.SQLITE_BUSY: "another program holds a lock on it; close that program",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a backup",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database; name another one",
    sqlite3.SQLITE_IOERR: "the disk refuses to write; check it, and writing continues by itself",
}


def sqlite_reason(error: sqlite3.Error) -> str:
    """Return what an error of SQLite means for the operator, followed by SQLite's message."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return f"{_REASONS.get(code, 'SQLite refuses')} ({error})"


_OPENING_BYTES = 1 << 20
"""Free bytes that are enough for SQLite to open a file.

If SQLite runs out of space while it maps memory, it reports a full disk as `SQLITE_IOERR`.
"""


def opening_reason(error: sqlite3.Error, path: Path) -> str:
    """Return the meaning of an error that prevented the opening of a ledger; it is not retried."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (
        code == sqlite3.SQLITE_IOERR and shutil.disk_usage(path.parent).free < _OPENING_BYTES
    ):
        return f"the disk is full; free some space and start again ({error})"
    return sqlite_reason(error)


def os_reason(error: OSError) -> str:
    """Return the reason of an error, in parentheses, and advice for the operator."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"({error.strerror}); free some space and start again"
    return (
        f"({error.strerror}); let this user write there, "
        "or name another place: --ledger sqlite:other.db"
    )
