"""`ProjectLook`: a snapshot of all files of a project, which a person approves before code runs.

Theory of operation. Every file below the directory can influence what runs: a `.pth` file in
`.venv`, a compiled file in `__pycache__`, a hook in `.git`, a program in `node_modules/.bin`, a
setting in `.home`. Therefore the snapshot covers all of them, with contents, kinds and permissions.
Two snapshots are equal only if nothing has changed between them.

The programs of a project own its directory and may replace anything while the snapshot is taken.
Each directory is opened relative to its parent, without following links. A file is opened without
blocking, and is read only if it is a regular file. Digests are not reused for the next snapshot: a
program that has mapped a file for writing can change it without changing its times.

Links may lead out of the project. The snapshot includes the content of a target file that belongs
to the project's user, who could change it. A target that could be filled with other code, such as a
directory outside of the system's, is refused.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from arp.process.sandbox import SYSTEM_DIRECTORIES
from arp.protocol.json_value import JsonObject
from arp.tools.errors import ToolRefused

MAX_DEPTH: Final = 100
"""Maximum depth of directories; each one uses a descriptor while its content is read."""
LOOK_S: Final = 120.0
"""Time limit of one snapshot, in seconds."""
MAX_SHOWN: Final = 60
"""Maximum number of files that a question lists; the digest of the project covers all files."""
READ_BYTES: Final = 1 << 20
MADE_BY_PROGRAMS: Final = frozenset((".git", ".home", ".venv", "__pycache__", "node_modules"))
"""Directories with many generated files; a question shows one digest for each."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class FoundEntry(NamedTuple):
    """Entry below a directory."""

    path: str
    """Path relative to the directory, with `/` between the parts."""
    name: str
    parent: int
    """Descriptor of the containing directory; valid until the next entry is requested."""
    status: os.stat_result


class SeenFile(NamedTuple):
    """File, link or directory of a project in a snapshot."""

    mode: int
    bytes: int
    sha256: str
    """Digest of the content; for a link, of its text and target; empty for a directory."""


def entries_below(root: Path) -> Iterator[FoundEntry]:
    """Yield everything below a directory in order of names, a directory before its content.

    Raises:
        ToolRefused: Directories are nested deeper than `MAX_DEPTH`, or one cannot be read.
    """
    handle = os.open(root, _DIRECTORY)
    try:
        yield from _below(handle, "", 0)
    finally:
        os.close(handle)


def _below(handle: int, prefix: str, depth: int) -> Iterator[FoundEntry]:
    if depth >= MAX_DEPTH:
        raise ToolRefused(f"{prefix[:200]!r} is nested deeper than {MAX_DEPTH} directories")
    with os.scandir(handle) as scanned:
        entries = sorted(scanned, key=lambda one: one.name)
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # it was removed meanwhile
        path = prefix + entry.name
        yield FoundEntry(path, entry.name, handle, status)
        if not stat.S_ISDIR(status.st_mode):
            continue
        try:
            below = os.open(entry.name, _DIRECTORY, dir_fd=handle)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ToolRefused(f"{path!r:.200} cannot be read: {error.strerror}") from error
        try:
            yield from _below(below, f"{path}/", depth + 1)
        finally:
            os.close(below)


class ProjectLook(Struct, frozen=True):
    """Snapshot of the directory of a project."""

    entries: dict[str, SeenFile]
    """Entries by path."""

    def digest(self) -> str:
        """Return the digest of the whole snapshot."""
        return _digest_of(self.entries)

    def rows(self, before: ProjectLook | None) -> tuple[list[JsonObject], int]:
        """Return the rows of a question (`path`, `bytes`, `sha256`), and the number of changes.

        Changes since `before` come first, in any directory. Then come the other files outside of
        generated directories, one digest for each generated directory, and one for the whole
        project.
        """
        files = {path: one for path, one in self.entries.items() if not stat.S_ISDIR(one.mode)}
        written = [path for path in files if not _filled_directory(path)]
        if before is None:
            changed = written
        else:
            known = before.entries
            changed = [path for path, one in files.items() if known.get(path) != one]
        first = dict.fromkeys(changed[:MAX_SHOWN])
        rest = [path for path in written if path not in first][: MAX_SHOWN - len(first)]
        rows = [_row(path, [files[path]], files[path].sha256) for path in (*first, *rest)]
        groups: dict[str, dict[str, SeenFile]] = {}
        for path, one in self.entries.items():
            if folder := _filled_directory(path):
                groups.setdefault(folder, {})[path] = one
        rows += [
            _row(f"{folder}/", groups[folder].values(), _digest_of(groups[folder]))
            for folder in sorted(groups)[:MAX_SHOWN]
        ]
        rows.append(_row("./", self.entries.values(), self.digest()))
        return rows, len(first)


def look_at(
    root: Path, *, uid: int | None, readable: Sequence[Path], most_bytes: int
) -> ProjectLook:
    """Return a snapshot of a project; blocks the thread while it reads the files.

    Args:
        root: Directory of the project.
        uid: Id of the user that owns it; `None` means our own.
        readable: Directories besides the system's that its programs can only read.
        most_bytes: Limit of the bytes of all files together.

    Raises:
        ToolRefused: An entry cannot be approved; the message names it and says why.
    """
    reader = _SnapshotReader(root, uid, readable, most_bytes)
    return ProjectLook({found.path: reader.read_entry(found) for found in entries_below(root)})


class _SnapshotReader:
    """One snapshot in progress; reads each file once, even if it has several names."""

    def __init__(
        self, root: Path, uid: int | None, readable: Sequence[Path], most_bytes: int
    ) -> None:
        self._root = os.path.realpath(root)
        self._owner = os.geteuid() if uid is None else uid
        places = (*SYSTEM_DIRECTORIES, "/etc", *map(str, readable))
        self._fixed = tuple(dict.fromkeys((*places, *map(os.path.realpath, places))))
        self._most_bytes = self._left = most_bytes
        self._until = time.monotonic() + LOOK_S
        self._read: dict[tuple[int, int], str] = {}

    def read_entry(self, found: FoundEntry) -> SeenFile:
        """Return the current state of an entry."""
        mode = found.status.st_mode
        if stat.S_ISDIR(mode):
            return SeenFile(mode, 0, "")
        if stat.S_ISLNK(mode):
            return self._link(found)
        if stat.S_ISSOCK(mode):  # a socket has no readable content
            return SeenFile(mode, 0, sha256(b"socket").hexdigest())
        return self._file(found.path, found.name, found.parent)

    def _link(self, found: FoundEntry) -> SeenFile:
        try:
            target = os.readlink(found.name, dir_fd=found.parent)
        except OSError as error:
            raise _changing(found.path) from error
        said = os.fsencode(target)
        content = said + b"\0" + self._target_state(found.path).encode()
        return SeenFile(found.status.st_mode, len(said), sha256(content).hexdigest())

    def _target_state(self, path: str) -> str:
        """Return the state of a link's target; empty if the target is in the project or read-only.

        Raises:
            ToolRefused: The target could be filled with code that the snapshot does not show.
        """
        real = os.path.realpath(os.path.join(self._root, path))
        if _is_in(real, (self._root, *self._fixed)):
            return ""
        try:
            status = os.stat(real)
        except OSError:
            return "nothing"
        if stat.S_ISREG(status.st_mode):
            if status.st_uid == self._owner:
                return self._file(f"{path} → {real}", real, None).sha256
            # The project cannot change the file, and its content may be secret, so its content is
            # not read.
            return f"{status.st_dev} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"
        raise ToolRefused(
            f"{_text(path)!r:.200} leads to {real!r:.200}, and its content cannot be shown; copy "
            "what is needed into the project, and let the link lead there"
        )

    def _file(self, path: str, name: str, parent: int | None) -> SeenFile:
        try:
            handle = os.open(name, _FILE, dir_fd=parent)
        except FileNotFoundError as error:
            raise _changing(path) from error
        except OSError as error:
            raise ToolRefused(f"{_text(path)!r:.200} cannot be read: {error.strerror}") from error
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ToolRefused(
                    f"{_text(path)!r:.200} is a pipe or a device, so its content cannot be shown; "
                    "replace it by a file with write_file"
                )
            inode = (status.st_dev, status.st_ino)
            digest = self._read.get(inode)
            if digest is None:
                digest = self._read[inode] = self._digest(path, handle)
            return SeenFile(status.st_mode, status.st_size, digest)
        finally:
            os.close(handle)

    def _digest(self, path: str, handle: int) -> str:
        digest = sha256()
        while piece := os.read(handle, READ_BYTES):
            digest.update(piece)
            self._left -= len(piece)
            if self._left < 0:
                raise ToolRefused(
                    f"the files of the project have more than {self._most_bytes >> 20} MiB "
                    f"together (at {_text(path)!r:.200}), so they cannot be approved"
                )
            if time.monotonic() > self._until:
                raise ToolRefused(
                    f"the files of the project could not be read in {LOOK_S:g} s; make them fewer"
                )
        return digest.hexdigest()


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _filled_directory(path: str) -> str:
    """Return the generated directory that contains a path; empty if there is none."""
    parts = path.split("/")
    for number, part in enumerate(parts[:-1], 1):
        if part in MADE_BY_PROGRAMS:
            return "/".join(parts[:number])
    return ""


def _digest_of(entries: dict[str, SeenFile]) -> str:
    digest = sha256()
    for path in sorted(entries):
        one = entries[path]
        digest.update(os.fsencode(path))
        digest.update(f"\0{one.mode:o} {one.bytes} {one.sha256}\0".encode())
    return digest.hexdigest()


def _row(path: str, files: Iterable[SeenFile], digest: str) -> JsonObject:
    total = sum(one.bytes for one in files)
    return {"path": _text(path), "bytes": total, "sha256": digest}


def _text(path: str) -> str:
    r"""Return a path as text; bytes that are not UTF-8 are written as `\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _changing(path: str) -> ToolRefused:
    return ToolRefused(f"{_text(path)!r:.200} changed while it was read; ask again")
