"""One writer per ledger file: a lock that the system takes away from a dead process by itself."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from arp.store.errors import StoreLocked, StoreUnavailable

_FAR_AWAY: Final = 2**30
"""Windows locks bytes, and locked bytes cannot be read: so not those with the process id."""


class FileLock:
    """Holds `<file>.lock`. The file stays when the lock goes: removing it would race."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """Takes the lock, at once or not at all.

        Raises:
            StoreLocked: A process has it, maybe this one; the message says which and what to do.
            StoreUnavailable: The lock file cannot be written.
        """
        try:
            fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"ledger {self._path}: cannot write {self._lock_path} ({error.strerror}); "
                "let this user write there, or name another place: --ledger sqlite:other.db"
            ) from error
        try:
            _lock(fd)
        except OSError as error:
            holder = os.read(fd, 20).decode("ascii", "replace").strip()
            os.close(fd)
            raise StoreLocked(
                f"ledger {self._path} is in use by process {holder or '(unknown)'}; "
                "stop it, or give this one its own: --ledger sqlite:other.db"
            ) from error
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd

    def release(self) -> None:
        """Gives the lock back. Harmless when repeated."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)


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
