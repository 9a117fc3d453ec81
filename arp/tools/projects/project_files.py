"""`ProjectFiles`: files below one directory, whatever links the programs in it have made.

Theory of operation. The programs of a project own its directory and may replace any part of a path
by a link while we look at it. So no path is opened as a whole: each part is opened from the one
above it, without following links, and what was opened cannot be exchanged any more. A file is
written beside its place and renamed, which replaces a link instead of following it. Files that do
not belong to the project's user are not read: they are links to something of ours (hard links).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from arp.tools.errors import InvalidToolMeta, ToolRefused, UnknownTool

MAX_WRITE: Final = 4 * 2**20
"""Bytes of a file that is written in one call."""
MAX_READ: Final = 2**20
"""Bytes of a file that is read; a longer one is refused, not cut."""
MAX_PARTS: Final = 32

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ProjectFiles:
    """The files below a directory.

    Args:
        root: The directory; nobody but us can exchange it or a directory above it.
        uid: The user that the files belong to; `None`: ours.
    """

    def __init__(self, root: Path, uid: int | None = None) -> None:
        self.root = root
        self._uid = uid

    def write(self, name: str, content: str | bytes) -> int:
        """Write a whole file, and make the directories above it; return its size in bytes.

        Args:
            name: Below the root, with `/` between the parts.
            content: A text is written as UTF-8.

        Raises:
            ToolRefused: The name leads out of the root, or over a link.
            InvalidToolMeta: It is too long, or something that is no file has the name.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        if len(data) > MAX_WRITE:
            raise InvalidToolMeta(
                f"{name:.200} has {len(data)} bytes; at most {MAX_WRITE} are written"
            )
        *directories, last = _parts(name)
        with self._directory(directories, make=True) as directory:
            self._replace(directory, last, data, name)
        return len(data)

    def read(self, name: str) -> bytes:
        """Return what is in a file.

        Raises:
            ToolRefused: The name leads out of the root or over a link, or it is no file of ours.
            UnknownTool: There is no such file.
            InvalidToolMeta: It has more than `MAX_READ` bytes.
        """
        *directories, last = _parts(name)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self._directory(directories, make=False) as directory:
            try:
                handle = os.open(last, flags, dir_fd=directory)
            except OSError as error:
                raise _refusal(name, error) from error
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ToolRefused(f"{name:.200} is no regular file")
            if self._uid is not None and found.st_uid != self._uid:
                raise ToolRefused(f"{name:.200} does not belong to the project")
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_READ + 1)
        finally:
            os.close(handle)
        if len(data) > MAX_READ:
            raise InvalidToolMeta(
                f"{name:.200} has more than {MAX_READ} bytes; read it by a command"
            )
        return data

    def size_of(self, name: str) -> int | None:
        """Return how many bytes a file holds on the disk; `None` if there is none that is ours.

        Raises:
            ToolRefused: The name leads out of the root, or over a link.
        """
        *directories, last = _parts(name)
        try:
            with self._directory(directories, make=False) as directory:
                found = os.stat(last, dir_fd=directory, follow_symlinks=False)
        except (UnknownTool, OSError):
            return None
        # Another name of the file keeps its blocks.
        return found.st_blocks * 512 if found.st_nlink == 1 else 0

    def make_directory(self, name: str) -> None:
        """Make a directory and those above it, if they are not there.

        Raises:
            ToolRefused: The name leads out of the root, or over a link.
        """
        with self._directory(_parts(name), make=True):
            pass

    @contextmanager
    def _directory(self, parts: list[str], make: bool) -> Iterator[int]:
        """Open a directory below the root, part by part."""
        try:
            handle = os.open(self.root, _DIRECTORY)
        except OSError as error:
            raise _refusal(str(self.root), error) from error
        try:
            for depth, part in enumerate(parts):
                where = "/".join(parts[: depth + 1])
                if make:
                    self._make(handle, part)
                try:
                    below = os.open(part, _DIRECTORY, dir_fd=handle)
                except OSError as error:
                    raise _refusal(where, error) from error
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)

    def _make(self, directory: int, name: str) -> None:
        try:
            os.mkdir(name, 0o700, dir_fd=directory)
            if self._uid is not None:
                os.chown(name, self._uid, self._uid, dir_fd=directory, follow_symlinks=False)
        except FileExistsError:
            return
        except OSError as error:  # the directory above was removed meanwhile
            raise _refusal(name, error) from error

    def _replace(self, directory: int, last: str, data: bytes, name: str) -> None:
        with suppress(FileNotFoundError):
            status = os.stat(last, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                raise ToolRefused(f"{name:.200} is a link; files are not written through links")
            if stat.S_ISDIR(status.st_mode):
                raise InvalidToolMeta(f"{name:.200} is there, and no file")
            # A pipe or a device is replaced: nothing may run while it is there.
        beside = f".{secrets.token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(beside, flags, 0o600, dir_fd=directory)
        except OSError as error:  # the directory was removed meanwhile
            raise _refusal(name, error) from error
        try:
            with os.fdopen(handle, "wb") as file:
                if self._uid is not None:
                    os.fchown(file.fileno(), self._uid, self._uid)
                file.write(data)
            os.replace(beside, last, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            with suppress(OSError):
                os.unlink(beside, dir_fd=directory)
            raise _refusal(name, error) from error


def _parts(name: str) -> list[str]:
    """Return the parts of a name below a root.

    Raises:
        ToolRefused: It leads out of the root.
    """
    parts = PurePosixPath(name).parts
    leads_out = name.startswith("/") or ".." in parts or "\0" in name
    if not parts or leads_out or len(parts) > MAX_PARTS:
        raise ToolRefused(
            f"path {name!r:.200} is refused: write it from the project's directory, without '..'"
        )
    if any(len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts):
        raise ToolRefused(f"path {name!r:.200} is refused: a part of it is longer than 255 bytes")
    return list(parts)


def _refusal(name: str, error: OSError) -> ToolRefused | UnknownTool:
    if error.errno == errno.ENOENT:
        return UnknownTool(f"there is no {name!r:.200}")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return ToolRefused(
            f"path {name!r:.200} leads over a link, or over something that is no directory"
        )
    return ToolRefused(f"path {name!r:.200} cannot be opened: {error.strerror}")
