"""`TaskBook`: the tasks with their status and outcome, in `tasks.json`.

Theory of operation. A task goes through the table `NEXT`; nothing else assigns its status. Every
change is on disk before the method returns, so that a restart finds what was asked for: `reopen`
makes tasks that were cut off pending again. Each attempt is counted (`attempts`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from arp.protocol.json_value import JsonObject
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import ToolConflict, UnknownTool
from arp.tools.registry.json_file import JsonFile

TASKS_FILE: Final = "tasks.json"
MAX_FINISHED: Final = 1_000
"""Finished tasks that are kept; the oldest go first."""
MAX_OPEN: Final = 1_000
"""Tasks that may wait or run at once."""

MAX_ATTEMPTS: Final = 3
"""How often a task is begun that the end of the service cuts off."""
CUT_OFF: Final = (
    f"the service was stopped {MAX_ATTEMPTS} times while the task ran; ask for it again"
)
"""Why a task failed that was cut off so often."""


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"
    """Nobody has begun it, or it waits to be begun again after a restart."""
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    """A person has to answer first; `waiting_for` says what, `session_id` where."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_OPEN: Final = (TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.WAITING_APPROVAL)
_ENDS: Final = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED})

NEXT: Final[dict[TaskStatus, frozenset[TaskStatus]]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.RUNNING}) | _ENDS,
    # Pending again: the service stops, or has stopped.
    TaskStatus.RUNNING: frozenset({TaskStatus.WAITING_APPROVAL, TaskStatus.PENDING}) | _ENDS,
    TaskStatus.WAITING_APPROVAL: frozenset({TaskStatus.RUNNING, TaskStatus.PENDING}) | _ENDS,
    TaskStatus.COMPLETED: frozenset(),
    TaskStatus.FAILED: frozenset(),
    TaskStatus.CANCELLED: frozenset(),
}
"""What a status may become."""


class TaskRecord(Struct, frozen=True):
    """A task, as `tasks.json` has it."""

    task_id: str
    description: str = ""
    """What somebody asked for, in their words."""
    status: TaskStatus = TaskStatus.PENDING
    task_spec: str = ""
    """JSON text; empty until the router has written it."""
    tool_id: str = ""
    """Of the tool that came of it, or that it is about."""
    url: str = ""
    """Where that tool answers."""
    result: str = ""
    """One sentence for people."""
    error: str = ""
    waiting_for: str = ""
    """What a person has to answer."""
    session_id: str = ""
    """In which session it runs, and asks."""
    turn_id: str = ""
    """In which turn of that session."""
    callback_url: str = ""
    callback: str = ""
    """What became of the callback: `delivered`, or why it was not."""
    owner: str = ""
    """Who asked; empty where users are not told apart."""
    attempts: int = 0
    """How often it was begun."""
    projects: list[str] = field(default_factory=list)
    """Directories of the projects that it has made."""
    containers: list[str] = field(default_factory=list)
    """Ids of its containers, likewise."""
    registered: str = ""
    """The id of the tool that it has registered, though it is not over yet."""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether its status is final."""
        return self.status in _ENDS

    def report(self) -> JsonObject:
        """Return what `GET /tasks/{task_id}/status` answers; what does not apply is left out."""
        report: JsonObject = {"task_id": self.task_id, "status": str(self.status)}
        if self.status is TaskStatus.COMPLETED:
            report["result"] = {"tool_id": self.tool_id, "url": self.url}
        elif self.is_over:
            report["error"] = self.error or str(self.status)
        elif self.status is TaskStatus.WAITING_APPROVAL:
            report |= {"waiting_for": self.waiting_for, "session_id": self.session_id}
        return report


class _TaskDocument(Struct, frozen=True):
    """`tasks.json`."""

    tasks: list[TaskRecord] = field(default_factory=list)
    version: str = "1.0"


class TaskBook:
    """The tasks of one data directory.

    Args:
        data_dir: Where `tasks.json` is.
        clock: What time it is.
    """

    def __init__(self, data_dir: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = JsonFile(data_dir / TASKS_FILE, _TaskDocument)
        self._clock = clock
        self._tasks = {task.task_id: task for task in self._file.read().tasks}
        self._changed: dict[str, asyncio.Event] = {}
        """Set when a task changes, by its id; only for tasks that somebody waits for."""

    def tasks(self) -> list[TaskRecord]:
        """Return all tasks, oldest first."""
        return list(self._tasks.values())

    def get(self, task_id: str) -> TaskRecord:
        """Return a task.

        Raises:
            UnknownTool: There is none of this id.
        """
        found = self._tasks.get(task_id)
        if found is None:
            raise UnknownTool(f"there is no task {task_id!r:.80}")
        return found

    def add(self, description: str, *, callback_url: str = "", owner: str = "") -> TaskRecord:
        """Add a task that nobody has begun; return it.

        Raises:
            ToolConflict: Too many are open.
        """
        if sum(not task.is_over for task in self._tasks.values()) >= MAX_OPEN:
            raise ToolConflict(f"{MAX_OPEN} tasks are open already; wait until some are done")
        now = self._clock.now()
        task = TaskRecord(
            str(uuid.uuid4()),
            description,
            callback_url=callback_url,
            owner=owner,
            created_at=now,
            updated_at=now,
        )
        return self._store(task)

    def set(self, task_id: str, status: TaskStatus | None = None, **fields: Any) -> TaskRecord:
        """Change a task; return it.

        Args:
            task_id: Of the task.
            status: Its new status; `None`: as it is.
            fields: Other fields of `TaskRecord`.

        Raises:
            UnknownTool: There is none of this id.
            ToolConflict: It cannot become that: it is over, for example.
        """
        task = self.get(task_id)
        if status is not None and status is not task.status:
            if status not in NEXT[task.status]:
                raise ToolConflict(f"task {task_id} is {task.status}; it cannot become {status}")
            fields["status"] = status
        return self._store(msgspec.structs.replace(task, updated_at=self._clock.now(), **fields))

    def reopen(self) -> list[TaskRecord]:
        """Make tasks pending again that ran when the service ended; return all pending tasks.

        What was begun `MAX_ATTEMPTS` times is among it: the caller says that it failed.
        """
        for task in self.tasks():
            if task.status in (TaskStatus.RUNNING, TaskStatus.WAITING_APPROVAL):
                self.set(task.task_id, TaskStatus.PENDING, waiting_for="")
        return [task for task in self.tasks() if task.status is TaskStatus.PENDING]

    async def over(self, task_id: str) -> TaskRecord:
        """Wait until a task is over; return it.

        Raises:
            UnknownTool: There is none of this id.

        Cancel: Safe; the task goes on.
        """
        return await self.until(task_id, lambda task: task.is_over)

    async def until(self, task_id: str, holds: Callable[[TaskRecord], bool]) -> TaskRecord:
        """Wait until a condition holds for a task; return the task.

        Raises:
            UnknownTool: There is none of this id.

        Cancel: Safe.
        """
        while not holds(task := self.get(task_id)):
            await self._changed.setdefault(task_id, asyncio.Event()).wait()
        return task

    def forget_waiting(self) -> None:
        """Forget who waited for tasks: the event loop in which they did may be gone."""
        self._changed.clear()

    def _store(self, task: TaskRecord) -> TaskRecord:
        self._tasks[task.task_id] = task
        finished = [one.task_id for one in self._tasks.values() if one.is_over]
        for task_id in finished[:-MAX_FINISHED]:
            del self._tasks[task_id]
        kept = list(self._tasks.values())
        self._file.change(lambda before: (msgspec.structs.replace(before, tasks=kept), None))
        if (event := self._changed.pop(task.task_id, None)) is not None:
            event.set()
        return task
