"""Tasks: pieces of work with attempts and edges, recorded as facts.

Theory of operation. A call that changes a task holds the lock of its session. It waits until all
recorded facts are durable, reads the task from them, checks the request, records facts, and waits
until those are durable before it releases the lock. So the second of two calls with the same id
sees the result of the first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, to_builtins

from arp.audit.models.tasks import ENDED, Task
from arp.control.context import ControlContext
from arp.control.method import Id, Reason, SessionParams, TurnId, method
from arp.control.task_facts import StoredTask, TaskRecorder, check_edges, check_idle, find_task
from arp.control.turns import DONE, StartTurn, TurnInput, Turns
from arp.ledger.payload_fields import Count, Delivery, Share
from arp.live.live_session import LiveSession
from arp.protocol.errors import InvalidMessage, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.session.effects import Effect

RETRIED = ENDED - DONE
"""Statuses of ended tasks that can be retried."""


# -- requests and answers --------------------------------------------------------------------------

TaskStatus: TypeAlias = Literal[
    "accepted",
    "queued",
    "running",
    "waiting_input",
    "waiting_permission",
    "waiting_resource",
    "blocked",
    "paused",
    "failed",
    "timed_out",
    "lost",
    "archived",
]
"""Statuses that `task/update` can set; `completed`, `cancelled` and `retrying` have their own
methods."""

Ids: TypeAlias = Annotated[tuple[Id, ...], Meta(max_length=50, description="at most 50 ids")]


class CreateTask(SessionParams, frozen=True, kw_only=True):
    """Parameters of `task/create`."""

    objective: Reason
    task_id: Id | None = None
    """Id of the task. A call with an existing id changes nothing. `None` makes an id."""
    parent_task_id: Id | None = None
    depends_on: Ids = ()
    """Tasks that must be completed before this one."""
    detail: Json = None
    job_id: Id | None = None
    job_item_id: Id | None = None
    """Item of a job that the task carries out; facts are then recorded about the item as well."""


class TaskParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of a method about one task."""

    task_id: Id


class TaskProgress(Struct, frozen=True, forbid_unknown_fields=True):
    """Progress of a task: a fraction, or a number of steps and their total."""

    fraction: Share | None = None
    done: Count | None = None
    total: Count | None = None
    message: str | None = None


class UpdateTask(TaskParams, frozen=True, kw_only=True):
    """Parameters of `task/update`."""

    status: TaskStatus | None = None
    """New status. `running` begins an attempt if none runs; `failed`, `timed_out` and `lost` end
    the running attempt."""
    reason: Reason | None = None
    """Reason of the change; required with `failed`, `lost` and `blocked`."""
    run_id: Id | None = None
    """Id of the attempt that `running` begins."""
    objective: Reason | None = None
    detail: Json = None
    progress: TaskProgress | None = None


class RetryTask(TaskParams, frozen=True, kw_only=True):
    """Parameters of `task/retry`."""

    run_id: Id | None = None
    """Id of the attempt. A call with an existing id changes nothing. `None` makes an id."""
    reason: Reason | None = None
    input: TurnInput | None = None
    """Input of a turn that begins for the attempt; `None` begins no turn."""
    turn_id: TurnId | None = None
    """Id of that turn."""


class CompleteTask(TaskParams, frozen=True, kw_only=True):
    """Parameters of `task/complete`."""

    outputs: tuple[Json, ...] = ()
    artifacts: Ids = ()
    evidence_refs: Ids = ()
    delivery: Delivery | None = None


class CancelTask(TaskParams, frozen=True, kw_only=True):
    """Parameters of `task/cancel`."""

    reason: Reason | None = None


class LinkTask(TaskParams, frozen=True, kw_only=True):
    """Parameters of `task/link`."""

    depends_on: Ids | None = None
    """All tasks that must be completed before this one; an empty list removes all dependencies."""
    parent_task_id: Id | None = None


class ListTasks(SessionParams, frozen=True, kw_only=True):
    """Parameters of `task/list`."""

    status: str | None = None
    limit: Annotated[int, Meta(ge=1, le=300, description="1 to 300")] = 100


class TaskState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a task."""

    session_id: str
    sequence: int
    """Sequence number of the newest fact that the state includes."""
    task: JsonObject
    """`TaskSnapshot` of the task (ledger.md 6)."""
    repeated: bool = False
    """Whether the call changed nothing, because it was made before."""
    turn_id: str | None = None
    """Id of the turn that a retry began."""


class TaskPage(Struct, frozen=True, rename="camel"):
    """The tasks of a session that the read model keeps."""

    session_id: str
    sequence: int
    tasks: list[JsonObject]
    counts: dict[str, int]
    """Number of tasks by status, including those that are not kept."""
    total: int
    older: int
    """Number of tasks that are no longer kept; only `task/get` returns them."""


# -- methods ---------------------------------------------------------------------------------------


class TaskMethods:
    """Tasks of the sessions of one principal. When a method returns, its facts are durable."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("task/create")
    async def create(self, request: CreateTask) -> TaskState:
        """Create a task; an existing task with the same id stays as it is.

        Raises:
            UnknownObject: It depends on an unknown task, or its parent is unknown.
            InvalidMessage: It would depend on itself.
        """
        async with self._locked(request.session_id, request.task_id) as (live, stored):
            if stored is not None:
                return await self._state(live, stored.task.task_id, repeated=True)
            model = await self._context.model(live.id)
            parent_id = request.parent_task_id
            root_id = check_edges(model, request.task_id or "", request.depends_on, parent_id)
            ids = {
                "parent_task_id": parent_id,
                "root_task_id": root_id,
                "job_id": request.job_id,
                "job_item_id": request.job_item_id,
            }
            recorder = self._context.hub.recorder(live)
            task = recorder.within(**{name: one for name, one in ids.items() if one}).task(
                request.objective,
                task_id=request.task_id,
                depends_on=request.depends_on,
                detail=request.detail,
            )
            task.record("task.accepted")
            return await self._state(live, task.id)

    @method("task/update")
    async def update(self, request: UpdateTask) -> TaskState:
        """Record changes of a task; the status is recorded last.

        Raises:
            InvalidMessage: The task has ended, or a reason is missing; nothing has changed.
        """
        async with self._task(request) as (live, stored):
            if stored.task.status in ENDED and request.status != "archived":
                if request.status == stored.task.status:
                    return await self._state(live, request.task_id, repeated=True)
                raise InvalidMessage(
                    f"task {request.task_id} is {stored.task.status}; "
                    "task/retry starts another attempt",
                    detail="taskId",
                )
            self._update(TaskRecorder(self._context, live, stored), request)
            return await self._state(live, request.task_id)

    @staticmethod
    def _update(record: TaskRecorder, request: UpdateTask) -> None:
        status, reason = request.status, request.reason
        if status in ("failed", "lost", "blocked") and reason is None:
            raise InvalidMessage(f"reason: say why the task is {status}", detail="reason")
        if request.objective is not None or request.detail is not None:
            payload = {"objective": request.objective, "detail": request.detail}
            record.task.record("task.updated", payload)
        if request.progress is not None:
            record.task.record("task.progress", msgspec.structs.asdict(request.progress))
        if status is not None:
            record.status(status, reason, request.run_id)

    @method("task/retry")
    async def retry(self, request: RetryTask) -> TaskState:
        """Begin another attempt at the same task; its earlier attempts stay as they are.

        If an error is raised, nothing has changed.

        Raises:
            SessionBusy: An attempt runs, or its turn is refused, as in `Turns.start`.
            InvalidMessage: The task did not fail.

        Source: control-plane.md 5: a retry is a new run, history stays.
        """
        async with self._task(request) as (live, stored):
            if stored.task.has_run(request.run_id):
                return await self._state(live, request.task_id, repeated=True)
            _check_retry(stored.task)
            run_id = request.run_id or f"{request.task_id}.{stored.task.attempt_count + 1}"
            effects: list[Effect] = []
            turn_id: str | None = None
            if request.input is not None:
                turn = StartTurn(
                    session_id=request.session_id,
                    input=request.input,
                    turn_id=request.turn_id,
                    task_id=request.task_id,
                    run_id=run_id,
                )
                # The turn comes first: if it is refused, no attempt must be recorded.
                turn_id, _, effects = Turns(self._context).submit(live, turn)
            TaskRecorder(self._context, live, stored, turn_id).retry(run_id, request.reason)
            self._context.carry_out(live, effects)
            return await self._state(live, request.task_id, turn_id=turn_id)

    @method("task/complete")
    async def complete(self, request: CompleteTask) -> TaskState:
        """Record that a task is completed.

        Raises:
            InvalidMessage: It has ended with another status; nothing has changed.
        """
        async with self._task(request) as (live, stored):
            if stored.task.status == "completed":
                return await self._state(live, request.task_id, repeated=True)
            _check_open(stored.task)
            TaskRecorder(self._context, live, stored).complete(
                request.outputs, request.artifacts, request.evidence_refs, request.delivery
            )
            return await self._state(live, request.task_id)

    @method("task/cancel")
    async def cancel(self, request: CancelTask) -> TaskState:
        """Record the request to cancel a task, stop the turn of its attempt, then end the task.

        Raises:
            InvalidMessage: It has ended with another status; nothing has changed.
        """
        async with self._task(request) as (live, stored):
            if stored.task.status == "cancelled":
                return await self._state(live, request.task_id, repeated=True)
            _check_open(stored.task)
            payload = {"reason": request.reason}
            TaskRecorder(self._context, live, stored).task.record("task.cancel_requested", payload)
            attempt = stored.task.running_attempt
            turn_id = attempt.turn_id if attempt is not None else None
            self._context.carry_out(live, Turns.stop(live, turn_id))
        # Without the lock, so that other calls about tasks do not wait until the turn has stopped.
        await Turns.wait_until_over(self._context, live, turn_id)
        async with self._task(request) as (live, stored):
            # The task may have ended in the meantime, for example completed by its turn.
            if stored.task.status not in ENDED:
                TaskRecorder(self._context, live, stored).cancelled(request.reason)
            return await self._state(live, request.task_id)

    @method("task/get")
    async def get(self, request: TaskParams) -> TaskState:
        """Return everything that the ledger has about a task, however long ago it ended.

        Raises:
            UnknownObject: There is no such task.
        """
        stored = await find_task(self._context, request.session_id, request.task_id)
        if stored is None:
            raise UnknownObject(f"no task {request.task_id!r:.80} in this session", detail="taskId")
        return TaskState(request.session_id, stored.sequence, to_builtins(stored.task))

    @method("task/list")
    async def page(self, request: ListTasks) -> TaskPage:
        """Return the open tasks of a session, and the tasks that ended last."""
        model = await self._context.model(request.session_id)
        tasks = model.state.tasks
        entries = [
            to_builtins(task)
            for task in tasks.tasks.entries()
            if request.status in (None, task.status)
        ]
        counts, older = dict(tasks.counts), tasks.tasks.older
        shown = entries[-request.limit :]
        return TaskPage(request.session_id, model.sequence, shown, counts, tasks.total, older)

    @method("task/link")
    async def link(self, request: LinkTask) -> TaskState:
        """Set the dependencies and the parent of a task.

        If an error is raised, nothing has changed.

        Raises:
            UnknownObject: One of the other tasks does not exist.
            InvalidMessage: The task would depend on itself.
        """
        async with self._task(request) as (live, stored):
            model, parent_id = await self._context.model(live.id), request.parent_task_id
            root_id = check_edges(model, request.task_id, request.depends_on or (), parent_id)
            record = TaskRecorder(self._context, live, stored)
            if request.depends_on is not None:
                payload = {"dependsOn": list(request.depends_on)}
                record.task.record("task.dependency.updated", payload)
            if parent_id is not None:
                record.part_of(parent_id, root_id)
            return await self._state(live, request.task_id)

    # -- internals -------------------------------------------------------------------------------

    @asynccontextmanager
    async def _locked(
        self, session_id: str, task_id: str | None
    ) -> AsyncIterator[tuple[LiveSession, StoredTask | None]]:
        """Hold the lock of a session, and yield the session and the task.

        The task is `None` if it does not exist. One call at a time changes the tasks of a session.
        """
        live = await self._context.to_change(session_id)
        async with self._context.plane.lock(session_id):
            await live.written()
            yield live, await find_task(self._context, session_id, task_id)

    @asynccontextmanager
    async def _task(self, request: TaskParams) -> AsyncIterator[tuple[LiveSession, StoredTask]]:
        """Hold the lock of a session, as `_locked` does; the task must exist."""
        async with self._locked(request.session_id, request.task_id) as (live, stored):
            if stored is None:
                raise UnknownObject(
                    f"no task {request.task_id!r:.80} in this session", detail=request.task_id
                )
            yield live, stored

    async def _state(
        self,
        live: LiveSession,
        task_id: str,
        *,
        repeated: bool = False,
        turn_id: str | None = None,
    ) -> TaskState:
        await live.written()
        stored = await find_task(self._context, live.id, task_id)
        assert stored is not None
        return TaskState(live.id, stored.sequence, to_builtins(stored.task), repeated, turn_id)


def _check_open(task: Task) -> None:
    if task.status in ENDED:
        raise InvalidMessage(f"task {task.task_id} is {task.status} already", detail="taskId")


def _check_retry(task: Task) -> None:
    check_idle(task)
    is_open = task.status not in ENDED
    if task.status not in RETRIED and not (is_open and task.has_failed_attempt):
        raise InvalidMessage(
            f"task {task.task_id} is {task.status}; only a task that failed can be retried",
            detail="taskId",
        )
