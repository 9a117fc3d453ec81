"""`Approvals`: questions before generated code runs, which runs only as it was shown.

Theory of operation. A question shows everything that is in the project (`project_look`). A yes
counts only if another look finds the same. From that look until the code has run, the task writes
no file there, and while a question is open no other command of the task runs there: a command that
was allowed before could exchange a file in the moment between the look and the start.

A container has no look of its own, but the projects that are mounted into it have.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from arp.protocol.json_value import JsonObject
from arp.tools.build.workplace import ApprovalRequest, WorkCall
from arp.tools.errors import ToolRefused
from arp.tools.projects.project_look import ProjectLook
from arp.tools.projects.projects import LocalProjects

EXECUTES: Final = "generated-code"
"""The rule by which a person is asked, in facts."""
CHANGED: Final = "the files changed after they were shown"


class RunRequest(NamedTuple):
    """What is to run, and where."""

    title: str
    """The question, in one line."""
    input: JsonObject
    place: str
    """The project directory, or the id of the container."""
    projects: Sequence[Path]
    """Directories of the projects whose files can change what runs."""


class Approvals:
    """The questions of one task about what runs.

    Args:
        projects: Where the files are.
        asks: Whether a person approves what runs generated code.
    """

    def __init__(self, projects: LocalProjects, *, asks: bool) -> None:
        self._projects = projects
        self._asks = asks
        self._allowed: set[str] = set()
        """Projects and containers in which the task may run what it likes."""
        self._known: dict[Path, ProjectLook] = {}
        """The newest look at each project, so that a question can say what is new."""
        self._runs: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held in each place from a question to the end of what runs."""
        self._files: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held for each project while a file is written, and from a yes to the end of what runs."""

    def asks_in(self, place: str) -> bool:
        """Return whether a person is asked before something runs in a place."""
        return self._asks and place not in self._allowed

    def moved(self, old: str, new: str) -> None:
        """Note that a place has another name now."""
        if old in self._allowed:
            self._allowed.add(new)

    async def learn(self, project: Path) -> None:
        """Note what a new project contains, so that the first question can say what is new."""
        if self.asks_in(str(project)):
            self._known[project] = await self._look(project)

    def writing(self, project: Path) -> asyncio.Lock:
        """Return the lock to hold while a file of a project is written."""
        return self._files[project]

    @asynccontextmanager
    async def approved(self, request: RunRequest, shown: WorkCall) -> AsyncIterator[None]:
        """Ask a person, unless they have allowed all that runs in the place; then run the block.

        Raises:
            ToolRefused: They did not allow it, or the files changed while they thought.
        """
        if not self.asks_in(request.place):
            yield
            return
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._runs[request.place])
            if self.asks_in(request.place):  # it may have been allowed while this one waited
                await self._ask(request, shown, held)
            yield

    async def _ask(self, request: RunRequest, shown: WorkCall, held: AsyncExitStack) -> None:
        looks = {project: await self._look(project) for project in sorted(set(request.projects))}
        locked = False

        async def recheck() -> str:
            nonlocal locked
            if not locked:
                for project in looks:
                    await held.enter_async_context(self._files[project])
                locked = True
            for project, look in looks.items():
                try:
                    if await self._look(project) != look:
                        return CHANGED
                except ToolRefused as refused:
                    return f"{CHANGED}: {refused.message}"
            return ""

        files, changed = self._rows(looks)
        question = ApprovalRequest(
            request.title,
            request.input,
            EXECUTES,
            message="This runs code that an agent has written, or that others have published.",
            task_rule=f"Everything that this task runs in {Path(request.place).name}",
            files=files,
            changed=changed,
        )
        answer = await shown.ask(question, recheck)
        if not answer.allowed:
            raise ToolRefused(f"not allowed: {answer.reason or 'a person said no'}")
        if answer.for_task:
            self._allowed.add(request.place)

    def _rows(self, looks: dict[Path, ProjectLook]) -> tuple[list[JsonObject], int]:
        """Return the rows of all projects, what has changed first, and how many those are."""
        first: list[JsonObject] = []
        rest: list[JsonObject] = []
        for project, look in looks.items():
            rows, changed = look.rows(self._known.get(project))
            self._known[project] = look
            if len(looks) > 1:
                rows = [{**row, "path": f"{project.name}/{row['path']}"} for row in rows]
            first += rows[:changed]
            rest += rows[changed:]
        return [*first, *rest], len(first)

    async def _look(self, project: Path) -> ProjectLook:
        return await asyncio.to_thread(self._projects.look, self._projects.project_of(project))
