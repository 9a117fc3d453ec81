"""`TaskBook`: the tasks with their status and outcome, in `tasks.json`.

Theory of operation. The table `NEXT` defines the legal transitions of a task's status; all changes
follow it. Every change is on disk before the method returns, so that requests survive a restart:
`reopen` makes interrupted tasks pending again. Each attempt is counted (`attempts`). There is no
copy in memory: if a write fails, the task is unchanged.
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
from arp.tools.registry.json_table import JsonTable, TableDocument

TASKS_FILE: Final = "tasks.json"
MAX_FINISHED: Final = 1_000
"""Maximum number of finished tasks; the oldest are dropped first."""
MAX_OPEN: Final = 1_000
"""Maximum number of open tasks."""

MAX_ATTEMPTS: Final = 3
"""Number of attempts after which a task fails if the service stopped during each of them."""
CUT_OFF: Final = (
    f"the service was stopped {MAX_ATTEMPTS} times while the task ran; ask for it again"
)
"""Error of a task that was interrupted too often."""


class TaskStatus(StrEnum):
    """Status of a task."""

    PENDING = "pending"
    """The task has not begun, or will begin again after a restart."""
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    """A person must answer first; `waiting_for` has the question, `session_id` its session."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_OPEN: Final = (TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.WAITING_APPROVAL)
_ENDS: Final = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED})

NEXT: Final[dict[TaskStatus, frozenset[TaskStatus]]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.RUNNING}) | _ENDS,
    # PENDING again: the service stopped while the task ran, and the next start continues it.
    TaskStatus.RUNNING: frozenset({TaskStatus.WAITING_APPROVAL, TaskStatus.PENDING}) | _ENDS,
    TaskStatus.WAITING_APPROVAL: frozenset({TaskStatus.RUNNING, TaskStatus.PENDING}) | _ENDS,
    TaskStatus.COMPLETED: frozenset(),
    TaskStatus.FAILED: frozenset(),
    TaskStatus.CANCELLED: frozenset(),
}
"""Legal next statuses of each status."""


class TaskRecord(Struct, frozen=True):
    """Task in the format of `tasks.json`."""

    task_id: str
    description: str = ""
    """Request in the words of the user."""
    status: TaskStatus = TaskStatus.PENDING
    task_spec: str = ""
    """Spec as JSON text; empty until the router has written it."""
    tool_id: str = ""
    """Id of the tool that the task builds or repairs."""
    url: str = ""
    """URL of that tool."""
    result: str = ""
    """Result in one sentence for people."""
    error: str = ""
    waiting_for: str = ""
    """Question that a person must answer."""
    session_id: str = ""
    """Id of the session that shows the task and its questions."""
    turn_id: str = ""
    """Id of the turn in that session."""
    callback_url: str = ""
    callback: str = ""
    """Result of the callback: `delivered`, or the reason why not."""
    owner: str = ""
    """User that made the request; empty where users are not distinguished."""
    attempts: int = 0
    """Number of attempts."""
    projects: list[str] = field(default_factory=list)
    """Directories of the projects that the task has created."""
    containers: list[str] = field(default_factory=list)
    """Ids of the containers that the task has created."""
    registered: str = ""
    """Id of the tool that the task has registered, possibly before its end."""
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether its status is final."""
        return self.status in _ENDS

    def report(self) -> JsonObject:
        """Return the answer of `GET /tasks/{task_id}/status`, without fields that do not apply."""
        report: JsonObject = {"task_id": self.task_id, "status": str(self.status)}
        if self.status is TaskStatus.COMPLETED:
            report["result"] = {"tool_id": self.tool_id, "url": self.url}
        elif self.is_over:
            report["error"] = self.error or str(self.status)
        elif self.status is TaskStatus.WAITING_APPROVAL:
            report |= {"waiting_for": self.waiting_for, "session_id": self.session_id}
        return report


class TasksDocument(TableDocument[TaskRecord], frozen=True):
    """Content of `tasks.json`."""

    rows: list[TaskRecord] = field(default_factory=list, name="tasks")
    version: str = "1.0"


class TaskBook:
    """Tasks of one data directory.

    Args:
        data_dir: Directory of `tasks.json`.
        clock: Source of the time.
    """

    def __init__(self, data_dir: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._table = JsonTable(
            data_dir / TASKS_FILE,
            TasksDocument,
            key=lambda task: task.task_id,
            keep=_without_old,
        )
        self._table.rows()  # raises for a damaged file, so that a service does not start with it
        self._clock = clock
        self._changed: dict[str, asyncio.Event] = {}
        """Events that are set when a task changes, by task id; only for tasks with a waiting
        caller."""

    def tasks(self) -> list[TaskRecord]:
        """Return all tasks, oldest first."""
        return self._table.rows()

    def get(self, task_id: str) -> TaskRecord:
        """Return a task.

        Raises:
            UnknownTool: No task has this id.
        """
        return _known(task_id, self._table.find(task_id))

    def add(self, description: str, *, callback_url: str = "", owner: str = "") -> TaskRecord:
        """Add a pending task and return it.

        Raises:
            ToolConflict: Too many tasks are open.
        """
        now = self._clock.now()
        task = TaskRecord(
            str(uuid.uuid4()),
            description,
            callback_url=callback_url,
            owner=owner,
            created_at=now,
            updated_at=now,
        )

        def make(rows: list[TaskRecord]) -> tuple[list[TaskRecord], TaskRecord]:
            if sum(not one.is_over for one in rows) >= MAX_OPEN:
                raise ToolConflict(f"{MAX_OPEN} tasks are open already; wait until some are done")
            return [*rows, task], task

        return self._table.change(make)

    def set(self, task_id: str, status: TaskStatus | None = None, **fields: Any) -> TaskRecord:
        """Change a task and return it.

        Args:
            task_id: Id of the task.
            status: New status; `None` means no change.
            fields: Other fields of `TaskRecord`.

        Raises:
            UnknownTool: No task has this id.
            ToolConflict: The transition is illegal, for example because the task is over.
        """
        fields["updated_at"] = self._clock.now()
        if status is not None:
            fields["status"] = status

        def change(task: TaskRecord) -> TaskRecord:
            if status not in (None, task.status) and status not in NEXT[task.status]:
                raise ToolConflict(f"task {task_id} is {task.status}; it cannot become {status}")
            return msgspec.structs.replace(task, **fields)

        task = _known(task_id, self._table.update(task_id, change))
        if (event := self._changed.pop(task_id, None)) is not None:
            event.set()
        return task

    def reopen(self) -> list[TaskRecord]:
        """Make interrupted tasks pending again; return all pending tasks.

        The result includes tasks with `MAX_ATTEMPTS` attempts, which the caller marks as failed.
        """
        for task in self.tasks():
            if task.status in (TaskStatus.RUNNING, TaskStatus.WAITING_APPROVAL):
                self.set(task.task_id, TaskStatus.PENDING, waiting_for="")
        return [task for task in self.tasks() if task.status is TaskStatus.PENDING]

    async def wait_for_end(self, task_id: str) -> TaskRecord:
        """Wait until a task is over and return it.

        Raises:
            UnknownTool: No task has this id.

        Cancel: Safe; the task continues.
        """
        return await self.until(task_id, lambda task: task.is_over)

    async def until(self, task_id: str, holds: Callable[[TaskRecord], bool]) -> TaskRecord:
        """Wait until a condition holds for a task and return the task.

        Raises:
            UnknownTool: No task has this id.

        Cancel: Safe.
        """
        while not holds(task := self.get(task_id)):
            await self._changed.setdefault(task_id, asyncio.Event()).wait()
        return task

    def forget_waiting(self) -> None:
        """Drop the events of waiting callers, because their event loops may have ended."""
        self._changed.clear()


def _known(task_id: str, found: TaskRecord | None) -> TaskRecord:
    """Return the task that was found.

    Raises:
        UnknownTool: None was found.
    """
    if found is None:
        raise UnknownTool(f"there is no task {task_id!r:.80}")
    return found


def _without_old(tasks: list[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks without the oldest finished ones, so that `MAX_FINISHED` remain."""
    finished = [task.task_id for task in tasks if task.is_over]
    dropped = set(finished[:-MAX_FINISHED])
    return [task for task in tasks if task.task_id not in dropped]
