"""`ProjectTable`: the projects that we created or are creating, in `projects.json`.

Theory of operation. A project gets its row before any of its files exist. While it is being created
the row has a mark: the name of a file that the creating process holds locked. The system releases
the lock when the process ends, for whatever reason. A row with an unlocked mark therefore belongs
to a project that was never finished, and no other record refers to it. Marks are random and used
once, so an unlocked mark is never locked again.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import field

from arp.process.sandbox import free_uid
from arp.tools.errors import CapacityExceeded, ToolConflict
from arp.tools.registry.json_table import JsonTable, TableDocument

PROJECTS: Final = "projects"
"""Directory of the projects, within the data directory."""
PROJECTS_FILE: Final = "projects.json"


class Project(msgspec.Struct, frozen=True):
    """Row of `projects.json`."""

    name: str
    uid: int | None = None
    """Id of the user that owns it; set only if we run as root."""
    python: str = ""
    """Interpreter of its `.venv`."""
    prefix: str = ""
    """Installation directory of that interpreter, which its sandbox mounts."""
    mark: str = ""
    """Mark of the process that creates it; empty when it is finished."""


class ProjectsDocument(TableDocument[Project], frozen=True):
    """Content of `projects.json`."""

    rows: list[Project] = field(default_factory=list, name="projects")


class ProjectTable:
    """Table of the projects of one data directory; changes are on disk when a method returns.

    Args:
        data_dir: Directory of `projects.json`.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = Path(os.path.abspath(data_dir))
        self._table = JsonTable(
            data_dir / PROJECTS_FILE, ProjectsDocument, key=lambda project: project.name
        )

    def projects(self) -> list[Project]:
        """Return all projects, in order of creation.

        Raises:
            DataFileDamaged: The file cannot be read; it is not changed.
        """
        return self._table.rows()

    def find(self, name: str) -> Project | None:
        """Return a project by its name."""
        return self._table.find(name)

    def claim(self, name: str, python: tuple[str, str], mark: str = "") -> Project:
        """Reserve a name and a user for a new project.

        Args:
            name: Name of the project.
            python: Interpreter and its installation directory.
            mark: Mark from `making`.

        Raises:
            ToolConflict: A project or directory with this name exists.
            CapacityExceeded: No user is free.
        """

        def make(rows: list[Project]) -> tuple[list[Project], Project]:
            if any(one.name == name for one in rows):
                raise ToolConflict(f"there is a project {name!r} already; choose another name")
            directory = self._data_dir / PROJECTS / name
            if os.path.lexists(directory):
                raise ToolConflict(f"{directory} is there, and no project of ours")
            uid = free_uid({one.uid for one in rows if one.uid is not None})
            if uid is None and os.geteuid() == 0:
                raise CapacityExceeded("no user id is free for a project; remove some projects")
            project = Project(name, uid, *python, mark)
            return [*rows, project], project

        return self._table.change(make)

    def finish(self, name: str) -> None:
        """Record that a project is finished."""
        self._table.update(name, lambda project: msgspec.structs.replace(project, mark=""))

    def forget(self, name: str) -> None:
        """Remove the row of a project. May be repeated."""
        self._table.remove(name)

    # -- being made ------------------------------------------------------------------------------

    @contextmanager
    def making(self) -> Iterator[str]:
        """Yield a locked mark for the row of a project that is created within the block."""
        mark = secrets.token_hex(8)
        self._data_dir.mkdir(parents=True, exist_ok=True)
        path = self._path_of(mark)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield mark
        finally:
            path.unlink(missing_ok=True)
            os.close(handle)

    def unfinished(self) -> list[Project]:
        """Return the unfinished projects of processes that have ended."""
        left = [one for one in self.projects() if one.mark and not self._is_held(one.mark)]
        # A process may have finished its project and released the mark after `projects` was read.
        # The row of such a project has changed since, so it is not unfinished.
        return [one for one in left if self.find(one.name) == one]

    def _is_held(self, mark: str) -> bool:
        """Return whether a mark is locked; remove the mark if it is not."""
        path = self._path_of(mark)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            path.unlink(missing_ok=True)
            return False
        finally:
            os.close(handle)

    def _path_of(self, mark: str) -> Path:
        return self._data_dir / f".making-{mark}"
