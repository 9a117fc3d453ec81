"""One writer per ledger: locks that the system releases when their process dies.

Theory of operation. Two locks are taken, one after the other.

1. `<file>.lock`, in the directory of the file that the path leads to (links are followed). It
   contains the process id of its owner, for the error message of a process that is refused. It is
   not enough: it can be removed, and another hard link of the same file has another lock file.
2. One byte of the database itself, far beyond everything that SQLite locks or writes. It is a lock
   of the open file, not of the process (`F_OFD_SETLK`), because a process loses its ordinary locks
   on a file as soon as it closes any descriptor of it, and SQLite opens and closes several. `flock`
   will not do: over NFS and on macOS it collides with SQLite's own locks.

For the same reason the descriptor of the second lock is opened before SQLite opens the file and
closed after SQLite has closed it: closing it would release SQLite's locks. A second store in the
same process is refused by a table of open ledgers, before it opens anything.

If the system has no locks of open files (macOS, Windows), a file with several names is refused.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from arp.store.errors import StoreLocked, StoreUnavailable, os_reason

_FAR_AWAY: Final = 2**30
"""Windows locks bytes, which then cannot be read: so not the bytes with the process id."""

_BEYOND_FILE: Final = 2**62
"""No database is that long, and SQLite locks bytes at 2^30 alone."""

_TAKEN: Final = (errno.EAGAIN, errno.EACCES)
"""Error numbers for a lock that another process has."""

_held: set[tuple[int, int]] = set()
"""The ledgers that this process has open: device and inode."""
_held_guard: Final = threading.Lock()


class FileLock:
    """Locks a ledger for this process. `release` keeps `<file>.lock`: removing it would race.

    Args:
        path: The ledger file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._named_fd: int | None = None
        self._database_fd: int | None = None
        self._key: tuple[int, int] | None = None

    def acquire(self) -> None:
        """Take the lock without waiting. A missing ledger is created as an empty file.

        Raises:
            StoreLocked: A process has it, maybe this one; the message says which and what to do.
            StoreUnavailable: The ledger or its lock file cannot be opened or locked.
        """
        try:
            self._lock_name()
            self._claim()
            self._lock_database()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock; SQLite must have closed the file before. May be repeated."""
        database, self._database_fd = self._database_fd, None
        if database is not None:
            os.close(database)
        named, self._named_fd = self._named_fd, None
        if named is not None:
            with suppress(OSError):
                os.ftruncate(named, 0)
            os.close(named)
        key, self._key = self._key, None
        if key is not None:
            with _held_guard:
                _held.discard(key)

    def _claim(self) -> None:
        """Refuse other stores of this process, without opening a file that one may have open."""
        try:
            with suppress(FileExistsError):
                os.close(os.open(self._path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            stat = os.stat(self._path)
        except OSError as error:
            raise self._unavailable("write", self._path, error) from error
        key = (stat.st_dev, stat.st_ino)
        with _held_guard:
            if key in _held:
                raise self._locked(str(os.getpid()))
            _held.add(key)
        self._key = key

    def _lock_name(self) -> None:
        file = self._path.resolve()
        lock_path = file.with_name(file.name + ".lock")
        try:
            fd = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unavailable("write", lock_path, error) from error
        try:
            _lock(fd)
        except OSError as error:
            holder = os.read(fd, 20).decode("ascii", "replace").strip()
            os.close(fd)
            if error.errno not in _TAKEN:
                raise self._unavailable("lock", lock_path, error) from error
            raise self._locked(holder) from error
        self._named_fd = fd
        with suppress(OSError):  # on a full disk the lock works, and only the id is missing
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())

    def _lock_database(self) -> None:
        try:
            fd = self._database_fd = os.open(self._path, os.O_RDWR)
        except OSError as error:
            raise self._unavailable("write", self._path, error) from error
        try:
            is_safe = _lock_beyond_file(fd)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise self._unavailable("lock", self._path, error) from error
            raise self._locked(_holder_of(self._path)) from error
        names = os.fstat(fd).st_nlink
        if not is_safe and names > 1:
            raise StoreUnavailable(
                f"ledger {self._path} has {names} names (hard links), and this system cannot tell "
                "whether another process writes it under one of them; remove the others"
            )

    def _locked(self, holder: str) -> StoreLocked:
        return StoreLocked(
            f"ledger {self._path} is in use by process {holder or '(unknown)'}; "
            "stop it, or give this one its own: --ledger sqlite:other.db"
        )

    def _unavailable(self, what: str, place: Path, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"ledger {self._path}: cannot {what} {place} {os_reason(error)}")


def _holder_of(path: Path) -> str:
    """Return the id of the process that has locked a database, found in /proc, or `""`."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process belongs to another user, or has just ended
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    is_ours = os.path.samestat(os.stat(link), os.stat(path))
                    if is_ours and "OFDLCK" in (process / "fdinfo" / link.name).read_text():
                        return process.name
    return ""


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, _FAR_AWAY, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(fd, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


if sys.platform == "linux":
    import struct

    def _lock_beyond_file(fd: int) -> bool:
        """Lock one byte of an open file; return whether the system has such locks.

        Raises:
            OSError: Another process has it.
        """
        # struct flock with 64-bit offsets: type, whence, start, length, and a pid that must be 0.
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _BEYOND_FILE, 1, 0)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno == errno.EINVAL:  # a kernel without them
                return False
            raise
        return True

else:

    def _lock_beyond_file(fd: int) -> bool:
        return False
