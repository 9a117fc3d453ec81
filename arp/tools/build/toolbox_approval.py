"""`Approvals`: asks a person before generated code runs, and ensures that it runs as shown.

Theory of operation. A question shows a snapshot of the project (`project_look`). A yes counts only
if another snapshot is equal. Between that second snapshot and the end of the run, the task writes
no file in the project. While a question is open, no other command of the task runs there: a command
that was allowed earlier could replace a file between the snapshot and the start.

A container has no snapshot of its own, but the projects that are mounted into it have one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from arp.protocol.json_value import JsonObject
from arp.tools.build.workplace import WorkCall
from arp.tools.errors import ToolRefused
from arp.tools.projects.project_look import ProjectLook
from arp.tools.projects.projects import LocalProjects
from arp.turn.approval.approval import Approval, RecheckResult

EXECUTES: Final = "generated-code"
"""Name of the approval rule in facts."""
CHANGED: Final = "the files changed after they were shown"


class RunRequest(NamedTuple):
    """Code that is about to run, and its place."""

    title: str
    """Question in one line."""
    input: JsonObject
    place: str
    """Project directory, or id of the container."""
    projects: Sequence[Path]
    """Directories of the projects with files that can change what runs."""


class Approvals:
    """Approval questions of one task.

    Args:
        projects: Projects with the files.
        asks: Whether a person must approve the execution of generated code.
    """

    def __init__(self, projects: LocalProjects, *, asks: bool) -> None:
        self._projects = projects
        self._asks = asks
        self._allowed: set[str] = set()
        """Projects and containers that need no further question: everything may run there."""
        self._latest_looks: dict[Path, ProjectLook] = {}
        """Latest snapshot of each project, so that a question can list the changes."""
        self._runs: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Lock of each place, held from a question to the end of the run."""
        self._files: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Lock of each project, held while a file is written, and from a yes to the end of the
        run."""

    def asks_in(self, place: str) -> bool:
        """Return whether a person is asked before something runs in a place."""
        return self._asks and place not in self._allowed

    def moved(self, old: str, new: str) -> None:
        """Record that a place has a new name, so that an earlier grant still counts."""
        if old in self._allowed:
            self._allowed.add(new)

    async def learn(self, project: Path) -> None:
        """Record the content of a new project, so that the first question can list the changes."""
        if self.asks_in(str(project)):
            self._latest_looks[project] = await self._look(project)

    def writing(self, project: Path) -> asyncio.Lock:
        """Return the lock to hold while a file of a project is written."""
        return self._files[project]

    @asynccontextmanager
    async def approved(self, request: RunRequest, shown: WorkCall) -> AsyncIterator[None]:
        """Ask a person, unless everything is allowed in the place; then run the block.

        Raises:
            ToolRefused: The person declined, or the files changed before the answer.
        """
        if not self.asks_in(request.place):
            yield
            return
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._runs[request.place])
            # While this call waited for the lock, the person may have allowed everything here.
            if self.asks_in(request.place):
                await self._ask(request, shown, held)
            yield

    async def _ask(self, request: RunRequest, shown: WorkCall, held: AsyncExitStack) -> None:
        looks = {project: await self._look(project) for project in sorted(set(request.projects))}
        locked = False

        async def recheck(_: Approval) -> RecheckResult:
            nonlocal locked
            if not locked:
                # Held to the end of the run: a file written after this look would run unseen.
                # `looks` is sorted, so that two calls cannot wait for each other.
                for project in looks:
                    await held.enter_async_context(self._files[project])
                locked = True
            for project, look in looks.items():
                try:
                    if await self._look(project) != look:
                        return RecheckResult(CHANGED)
                except ToolRefused as refused:
                    return RecheckResult(f"{CHANGED}: {refused.message}")
            return RecheckResult()

        files, changed = self._rows(looks)
        approval = await shown.ask_permission(
            request.title,
            rule=EXECUTES,
            input=_with_files(request.input, files, changed),
            message="This runs code that an agent has written, or that others have published.",
            session_rule=f"Everything that this task runs in {Path(request.place).name}",
            keeps_grant=False,
            files=files or None,
            recheck=recheck,
        )
        if not approval.allowed:
            raise ToolRefused(f"not allowed: {approval.reason or 'a person said no'}")
        if approval.scope == "session":
            self._allowed.add(request.place)

    def _rows(self, looks: dict[Path, ProjectLook]) -> tuple[list[JsonObject], int]:
        """Return the rows of all projects, changes first, and the number of changes.

        `ProjectLook.rows` describes the rows. Changes are those since the latest snapshots; then
        `looks` become the latest snapshots.
        """
        first: list[JsonObject] = []
        rest: list[JsonObject] = []
        for project, look in looks.items():
            rows, changed = look.rows(self._latest_looks.get(project))
            self._latest_looks[project] = look
            if len(looks) > 1:
                rows = [{**row, "path": f"{project.name}/{row['path']}"} for row in rows]
            first += rows[:changed]
            rest += rows[changed:]
        return [*first, *rest], len(first)

    async def _look(self, project: Path) -> ProjectLook:
        return await asyncio.to_thread(self._projects.look, self._projects.project_of(project))


def _with_files(input: JsonObject, files: Sequence[JsonObject], changed: int) -> JsonObject:
    """Return an input with the files that can change what runs, because screens show the input.

    Args:
        input: Input to be approved.
        files: Files with `path`, `bytes`, `sha256`; a path that ends with `/` means the whole
            content of a directory.
        changed: Number of files, from the first, that are new or have changed since the last
            question.
    """
    if not files:
        return input
    shown: JsonObject = {}
    for number, file in enumerate(files):
        state = "new or changed, " if number < changed else ""
        shown[str(file["path"])] = f"{state}{file['bytes']} bytes, sha256 {file['sha256']}"
    return {**input, "files": shown}
