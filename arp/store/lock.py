"""One writer per ledger: locks that the system releases when the process of the owner ends.

Theory of operation. A store acquires two locks, one after the other.

1. A lock on the file `<file>.lock`, in the directory of the ledger (symbolic links are followed).
   The file contains the process id of the owner, for the error message of other processes. This
   lock is not sufficient: the file can be deleted, and if the ledger has several names (hard
   links), each name has its own lock file.
2. A lock on one byte of the database, far beyond everything that SQLite locks or writes. The lock
   belongs to the open file, not to the process (`F_OFD_SETLK`): a process loses its ordinary locks
   on a file as soon as it closes any descriptor of that file, and SQLite opens and closes several.
   `flock` cannot be used, because over NFS and on macOS it conflicts with SQLite's own locks.

Closing the descriptor of the second lock would release SQLite's locks in the same way. So this
descriptor is opened before SQLite opens the file, and closed after SQLite has closed the file. A
second store in the same process is refused before it opens the file, by a table of open ledgers.

macOS and Windows have no locks that belong to open files. There, a ledger with several names is
refused.
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

_LOCK_FILE_OFFSET: Final = 2**30
"""Position of the byte to lock in `<file>.lock` on Windows.

Locked bytes cannot be read there, so it is not one of the bytes with the process id.
"""

_DATABASE_OFFSET: Final = 2**62
"""Position of the byte to lock in the database.

No database is that long, and SQLite locks only bytes near 2^30.
"""

_LOCKED_ERRNOS: Final = (errno.EAGAIN, errno.EACCES)
"""Error numbers for a lock that another process has."""

_open_ledgers: set[tuple[int, int]] = set()
"""Device and inode of each ledger that this process has open."""
_open_ledgers_guard: Final = threading.Lock()


class FileLock:
    """A lock on a ledger for this process.

    `release` does not delete `<file>.lock`: another process may have opened the file already, and
    would then lock a deleted file while a third process creates and locks a new one.

    Args:
        path: The ledger file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_file_fd: int | None = None
        self._database_fd: int | None = None
        self._key: tuple[int, int] | None = None

    def acquire(self) -> None:
        """Acquire the lock without waiting. A missing ledger is created as an empty file.

        Raises:
            StoreLocked: A process has the lock, perhaps this one. The message names the process
                and says what to do.
            StoreUnavailable: The ledger or its lock file cannot be opened or locked.
        """
        try:
            self._lock_lock_file()
            self._register()
            self._lock_database()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock. SQLite must have closed the file before. May be called again."""
        database_fd, self._database_fd = self._database_fd, None
        if database_fd is not None:
            os.close(database_fd)
        lock_file_fd, self._lock_file_fd = self._lock_file_fd, None
        if lock_file_fd is not None:
            with suppress(OSError):
                os.ftruncate(lock_file_fd, 0)
            os.close(lock_file_fd)
        key, self._key = self._key, None
        if key is not None:
            with _open_ledgers_guard:
                _open_ledgers.discard(key)

    def _register(self) -> None:
        """Add the ledger to the open ledgers of this process; raise if it is among them already."""
        try:
            # `O_EXCL` creates a missing file and never opens an existing one: closing that would
            # release the locks of another store of this process.
            with suppress(FileExistsError):
                os.close(os.open(self._path.resolve(), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            stat = os.stat(self._path)
        except OSError as error:
            raise self._unavailable_error("write", self._path, error) from error
        key = (stat.st_dev, stat.st_ino)
        with _open_ledgers_guard:
            if key in _open_ledgers:
                raise self._locked_error(str(os.getpid()))
            _open_ledgers.add(key)
        self._key = key

    def _lock_lock_file(self) -> None:
        file = self._path.resolve()
        lock_path = file.with_name(file.name + ".lock")
        try:
            fd = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unavailable_error("write", lock_path, error) from error
        try:
            _lock(fd)
        except OSError as error:
            holder = os.read(fd, 20).decode("ascii", "replace").strip()
            os.close(fd)
            if error.errno not in _LOCKED_ERRNOS:
                raise self._unavailable_error("lock", lock_path, error) from error
            raise self._locked_error(holder) from error
        self._lock_file_fd = fd
        with suppress(OSError):  # on a full disk the lock still works; only the id is missing
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())

    def _lock_database(self) -> None:
        try:
            fd = self._database_fd = os.open(self._path, os.O_RDWR)
        except OSError as error:
            raise self._unavailable_error("write", self._path, error) from error
        try:
            is_locked = _lock_beyond_file(fd)
        except OSError as error:
            if error.errno not in _LOCKED_ERRNOS:
                raise self._unavailable_error("lock", self._path, error) from error
            raise self._locked_error(_holder_of(self._path)) from error
        names = os.fstat(fd).st_nlink
        # Another name of the file has another lock file, so that lock does not protect it.
        if not is_locked and names > 1:
            raise StoreUnavailable(
                f"ledger {self._path} has {names} names (hard links), and this system cannot tell "
                "whether another process writes it under one of them; remove the others"
            )

    def _locked_error(self, holder: str) -> StoreLocked:
        return StoreLocked(
            f"ledger {self._path} is in use by process {holder or '(unknown)'}; "
            "stop it, or give this one its own: --ledger sqlite:other.db"
        )

    def _unavailable_error(self, verb: str, path: Path, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"ledger {self._path}: cannot {verb} {path} {os_reason(error)}")


def _holder_of(path: Path) -> str:
    """Return the id of the process that has locked a database, or `""`; found in `/proc`."""
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
        os.lseek(fd, _LOCK_FILE_OFFSET, os.SEEK_SET)
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
        """Lock one byte of an open file.

        Returns:
            `False` if the system has no locks that belong to open files.

        Raises:
            OSError: Another process has locked the byte, or the file cannot be locked.
        """
        # struct flock with 64-bit offsets: type, whence, start, length, and a pid that must be 0.
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _DATABASE_OFFSET, 1, 0)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno == errno.EINVAL:  # a kernel without such locks
                return False
            raise
        return True

else:

    def _lock_beyond_file(fd: int) -> bool:
        return False
