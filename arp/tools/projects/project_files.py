"""`ProjectFiles`: access to files below one directory that is safe against links.

Theory of operation. The programs of a project own its directory and may replace any part of a path
by a link at any moment. Therefore no path is opened as a whole. Each part is opened relative to the
directory above it, without following links; an open directory can no longer be exchanged. A file is
written under a temporary name and renamed, which replaces a link instead of following it. Files
that do not belong to the project's user are not read: they may be hard links to our own files.
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
"""Maximum size in bytes of a file that is written."""
MAX_READ: Final = 2**20
"""Maximum size in bytes of a file that is read; a larger file is refused, not truncated."""
MAX_PARTS: Final = 32

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ProjectFiles:
    """Reads and writes files below a directory without following links.

    Args:
        root: The directory. It is opened by its path, so no program of the project may be able to
            rename or replace it or a directory above it.
        uid: Id of the user that owns the files; `None` means our own, and the owner is not checked.
    """

    def __init__(self, root: Path, uid: int | None = None) -> None:
        self.root = root
        self._uid = uid

    def write(self, name: str, content: str | bytes) -> int:
        """Write a whole file and create the directories above it; return its size in bytes.

        Args:
            name: Name below the root, with `/` between the parts.
            content: Content; a string is written as UTF-8.

        Raises:
            ToolRefused: The name leads out of the root, or through a link.
            InvalidToolMeta: The content is too long, or the name belongs to something other than a
                file.
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
        """Return the content of a file.

        Raises:
            ToolRefused: The name leads out of the root or through a link, or the file is not a
                regular file of the project's user.
            UnknownTool: There is no such file.
            InvalidToolMeta: It has more than `MAX_READ` bytes.
        """
        *directories, last = _parts(name)
        # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
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
        """Return the disk space in bytes that replacing a file frees; `None` if it does not exist.

        Raises:
            ToolRefused: The name leads out of the root, or through a link.
        """
        *directories, last = _parts(name)
        try:
            with self._directory(directories, make=False) as directory:
                found = os.stat(last, dir_fd=directory, follow_symlinks=False)
        except (UnknownTool, OSError):
            return None
        # If the file has another name, replacing this one frees no blocks.
        return found.st_blocks * 512 if found.st_nlink == 1 else 0

    def make_directory(self, name: str) -> None:
        """Create a directory and those above it, if they do not exist.

        Raises:
            ToolRefused: The name leads out of the root, or through a link.
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
            # A pipe or a device is replaced. Otherwise the project could not be used any more:
            # `project_look` refuses it while it contains one.
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
