"""`ProjectTable`: the projects that we made, and those that are being made, in `projects.json`.

Theory of operation. A project gets its line before anything of it is on the disk. As long as it is
made the line has a mark: the name of a file that its maker holds locked. The system releases that
lock when the process ends, however it ends; so a line whose mark nobody holds is of a project that
was never finished and that nobody knows. Marks are random and used once, so one that is not held is
never held again.
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
from arp.tools.registry.json_file import JsonFile

PROJECTS: Final = "projects"
"""The directory of the projects, in the data directory."""
PROJECTS_FILE: Final = "projects.json"


class Project(msgspec.Struct, frozen=True):
    """A line of `projects.json`."""

    name: str
    uid: int | None = None
    """The user that it belongs to, where we are root."""
    python: str = ""
    """The interpreter of its `.venv`."""
    prefix: str = ""
    """The installation of that interpreter, which its sandbox shows."""
    mark: str = ""
    """Of whoever makes it; empty: it is finished."""


class ProjectsDocument(msgspec.Struct, frozen=True):
    """`projects.json`."""

    projects: list[Project] = field(default_factory=list)


class ProjectTable:
    """The projects of one data directory; every change is on disk when the method returns.

    Args:
        data_dir: Where `projects.json` is.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = Path(os.path.abspath(data_dir))
        self._file = JsonFile(data_dir / PROJECTS_FILE, ProjectsDocument)

    def projects(self) -> list[Project]:
        """Return all projects, in the order in which they were begun.

        Raises:
            DataFileDamaged: The file cannot be read; it stays as it is.
        """
        return self._file.read().projects

    def find(self, name: str) -> Project | None:
        """Return a project by its name."""
        return next((one for one in self.projects() if one.name == name), None)

    def claim(self, name: str, python: tuple[str, str], mark: str = "") -> Project:
        """Take a name and a user for a new project.

        Args:
            name: Of the project.
            python: The interpreter, and where it is installed.
            mark: Of `making`.

        Raises:
            ToolConflict: There is such a project, or a directory of this name.
            CapacityExceeded: No user is free.
        """

        def make(document: ProjectsDocument) -> tuple[ProjectsDocument, Project]:
            if any(one.name == name for one in document.projects):
                raise ToolConflict(f"there is a project {name!r} already; choose another name")
            directory = self._data_dir / PROJECTS / name
            if os.path.lexists(directory):
                raise ToolConflict(f"{directory} is there, and no project of ours")
            taken = {one.uid for one in document.projects if one.uid is not None}
            uid = free_uid(taken)
            if uid is None and os.geteuid() == 0:
                raise CapacityExceeded("no user id is free for a project; remove some projects")
            project = Project(name, uid, *python, mark)
            return ProjectsDocument([*document.projects, project]), project

        return self._file.change(make)

    def finish(self, name: str) -> None:
        """Note that a project is finished."""

        def make(document: ProjectsDocument) -> tuple[ProjectsDocument, None]:
            return ProjectsDocument(
                [
                    msgspec.structs.replace(one, mark="") if one.name == name else one
                    for one in document.projects
                ]
            ), None

        self._file.change(make)

    def forget(self, name: str) -> None:
        """Note that a project is gone. May be repeated."""

        def make(document: ProjectsDocument) -> tuple[ProjectsDocument, None]:
            return ProjectsDocument([one for one in document.projects if one.name != name]), None

        self._file.change(make)

    # -- being made ------------------------------------------------------------------------------

    @contextmanager
    def making(self) -> Iterator[str]:
        """Hold a mark, for the line of a project that is made inside."""
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
        """Return the projects whose maker has ended without finishing them."""
        left = [one for one in self.projects() if one.mark and not self._is_held(one.mark)]
        # Its maker may have finished one between our two looks; the mark goes after that.
        return [one for one in left if self.find(one.name) == one]

    def _is_held(self, mark: str) -> bool:
        """Return whether somebody holds a mark; remove one that nobody holds."""
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
