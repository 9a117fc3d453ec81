"""Tasks: pieces of work with attempts and edges, written as facts.

Theory of operation. A change is made under the session's lock: what is recorded is written, the
task is read from the facts, the call is judged by that, and what it records is written before the
lock is given back. So of two calls with one id the second finds what the first did.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, to_builtins

from arp.control.desk import Desk
from arp.control.task_graph import Known, check_edges, find
from arp.control.task_requests import (
    CancelTask,
    CompleteTask,
    CreateTask,
    LinkTask,
    ListTasks,
    OfTask,
    RetryTask,
    TaskPage,
    TaskState,
    UpdateTask,
)
from arp.control.task_steps import Steps
from arp.control.turns import DONE, StartTurn, Turns
from arp.hub.live import LiveSession
from arp.ledger.models.read_model import ReadModel
from arp.ledger.models.tasks import ENDED
from arp.protocol.errors import InvalidMessage, UnknownObject
from arp.session.effects import Effect

RETRIED = ENDED - DONE
"""How a task ended that may be tried again."""


class Here(Struct, frozen=True):
    """A session whose tasks nobody else changes now."""

    live: LiveSession
    model: ReadModel
    known: Known | None

    def task(self, task_id: str) -> Known:
        """Gives the task that was asked for.

        Raises:
            UnknownObject: There is none.
        """
        if self.known is None:
            raise UnknownObject(f"no task {task_id!r:.80} in this session", detail=task_id)
        return self.known


class TaskDesk:
    """Tasks of sessions that belong to one principal. Answers are given when facts are durable."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # -- reading ---------------------------------------------------------------------------------

    async def get(self, asked: OfTask) -> TaskState:
        """Gives a task with all that is known of it, however long ago it ended.

        Raises:
            SessionNotFound, UnknownObject: There is no such session, no such task.
        """
        model = await self._desk.model(asked.session_id)
        known = await find(self._desk.hub.store, model, asked.task_id)
        if known is None:
            raise UnknownObject(f"no task {asked.task_id!r:.80} in this session", detail="taskId")
        return TaskState(asked.session_id, known.sequence, to_builtins(known.task))

    async def page(self, asked: ListTasks) -> TaskPage:
        """Gives the tasks of a session: all that are open, and the last that ended."""
        model = await self._desk.model(asked.session_id)
        tasks = model.state.tasks
        entries = [
            to_builtins(task)
            for task in tasks.tasks.entries()
            if asked.status in (None, task.status)
        ]
        counts, older = dict(tasks.counts), tasks.tasks.older
        shown = entries[-asked.limit :]
        return TaskPage(asked.session_id, model.sequence, shown, counts, tasks.total, older)

    # -- writing ---------------------------------------------------------------------------------

    async def create(self, asked: CreateTask) -> TaskState:
        """Makes a task; one with that id is left as it is.

        Raises:
            UnknownObject: It is to come after a task that there is not.
            InvalidMessage: It would come before itself.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            if here.known is not None:
                return await self._state(here, here.known.task.task_id, repeated=True)
            parent = [asked.parent_task_id] if asked.parent_task_id else []
            check_edges(here.model, asked.task_id or "", [*asked.depends_on, *parent])
            ids = {
                "parent_task_id": asked.parent_task_id,
                "root_task_id": _root(here.model, asked.parent_task_id),
                "job_id": asked.job_id,
                "job_item_id": asked.job_item_id,
            }
            recorder = self._desk.hub.recorder(here.live)
            made = recorder.within(**{name: one for name, one in ids.items() if one}).task(
                asked.objective,
                task_id=asked.task_id,
                depends_on=asked.depends_on,
                detail=asked.detail,
            )
            made.record("task.accepted")
            return await self._state(here, made.id)

    async def update(self, asked: UpdateTask) -> TaskState:
        """Record what is new of a task.

        Raises:
            InvalidMessage: It has ended, or a reason is missing; nothing has changed.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            if known.task.status in ENDED and asked.status != "archived":
                if asked.status == known.task.status:
                    return await self._state(here, asked.task_id, repeated=True)
                raise InvalidMessage(
                    f"task {asked.task_id} is {known.task.status}; task/retry begins it again",
                    detail="taskId",
                )
            self._steps(here, known).update(asked)
            return await self._state(here, asked.task_id)

    async def retry(self, asked: RetryTask) -> TaskState:
        """Begins another attempt of the same task; the attempts before it stay as they are.

        Raises:
            SessionBusy: An attempt runs, or the turn for this one is refused as in `Turns.start`.
            InvalidMessage: It did not fail. Nothing has changed in each case.

        Source: ledger.md 5: a retry is a new run, history stays.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            if known.has_run(asked.run_id):
                return await self._state(here, asked.task_id, repeated=True)
            _check_retry(known)
            run_id = asked.run_id or f"{asked.task_id}.{known.attempts + 1}"
            effects: list[Effect] = []
            turn_id: str | None = None
            if asked.input is not None:
                turn = StartTurn(
                    session_id=asked.session_id,
                    input=asked.input,
                    turn_id=asked.turn_id,
                    task_id=asked.task_id,
                    run_id=run_id,
                )
                turn_id, _, effects = Turns(self._desk).submit(here.live, turn)
            self._steps(here, known, turn_id).retry(run_id, asked.reason)
            self._desk.carry_out(here.live, effects)
            return await self._state(here, asked.task_id, turn_id=turn_id)

    async def complete(self, asked: CompleteTask) -> TaskState:
        """Record that a task is done.

        Raises:
            InvalidMessage: It has ended otherwise; nothing has changed.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            if known.task.status == "completed":
                return await self._state(here, asked.task_id, repeated=True)
            _check_open(known)
            self._steps(here, known).complete(asked)
            return await self._state(here, asked.task_id)

    async def cancel(self, asked: CancelTask) -> TaskState:
        """Record the request that a task stop, stop the turn of its attempt, then end it.

        Raises:
            InvalidMessage: It has ended otherwise; nothing has changed.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            if known.task.status == "cancelled":
                return await self._state(here, asked.task_id, repeated=True)
            _check_open(known)
            self._steps(here, known).cancel(asked.reason)
            attempt = known.running
            turn_id = attempt.turn_id if attempt is not None else None
            self._desk.carry_out(here.live, Turns.stop(here.live, turn_id))
        await Turns.over(self._desk, here.live, turn_id)
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            if known.task.status not in ENDED:
                self._steps(here, known).cancelled(asked.reason)
            return await self._state(here, asked.task_id)

    async def link(self, asked: LinkTask) -> TaskState:
        """Sets what a task comes after, and what it is a part of.

        Raises:
            UnknownObject: One of the other tasks is not known.
            InvalidMessage: It would come before itself. Nothing has changed in each case.
        """
        async with self._here(asked.session_id, asked.task_id) as here:
            known = here.task(asked.task_id)
            parent = [asked.parent_task_id] if asked.parent_task_id else []
            check_edges(here.model, asked.task_id, [*(asked.depends_on or ()), *parent])
            steps = self._steps(here, known)
            if asked.depends_on is not None:
                payload = {"dependsOn": list(asked.depends_on)}
                steps.task.record("task.dependency.updated", payload)
            if asked.parent_task_id is not None:
                steps.part_of(asked.parent_task_id, _root(here.model, asked.parent_task_id))
            return await self._state(here, asked.task_id)

    # -- inside ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _here(self, session_id: str, task_id: str | None) -> AsyncIterator[Here]:
        live = await self._desk.to_change(session_id)
        async with self._desk.plane.lock(session_id):
            await live.written()
            model = await self._desk.model(session_id)
            store = self._desk.hub.store
            known = await find(store, model, task_id) if task_id is not None else None
            yield Here(live, model, known)

    def _steps(self, here: Here, known: Known, turn_id: str | None = None) -> Steps:
        thread_id = here.live.session.threads.of(turn_id)
        return Steps(self._desk.hub.recorder(here.live), known, turn_id, thread_id)

    async def _state(
        self, here: Here, task_id: str, *, repeated: bool = False, turn_id: str | None = None
    ) -> TaskState:
        await here.live.written()
        model = await self._desk.model(here.live.id)
        known = await find(self._desk.hub.store, model, task_id)
        assert known is not None
        task = to_builtins(known.task)
        return TaskState(here.live.id, known.sequence, task, repeated, turn_id)


def _root(model: ReadModel, parent_id: str | None) -> str | None:
    """Gives the topmost task above, as far as it is known."""
    parent = model.state.tasks.tasks.get(parent_id)
    return (parent.edges.root_task_id or parent_id) if parent is not None else None


def _check_open(known: Known) -> None:
    task = known.task
    if task.status in ENDED:
        raise InvalidMessage(f"task {task.task_id} is {task.status} already", detail="taskId")


def _check_retry(known: Known) -> None:
    known.check_idle()
    task = known.task
    is_open = task.status not in ENDED
    if task.status not in RETRIED and not (is_open and known.has_failed):
        raise InvalidMessage(
            f"task {task.task_id} is {task.status}; only what failed is tried again",
            detail="taskId",
        )
