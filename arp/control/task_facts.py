"""Tasks in the facts of a session: how one is read from them, and what is recorded of it.

A task that the read model has evicted is read from the log again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct

from arp.audit.models.read_model import ReadModel
from arp.audit.models.tasks import ENDED, RULES, Attempt, Task, Tasks
from arp.control.context import ControlContext
from arp.ledger.fact import decode
from arp.ledger.payload_fields import Delivery
from arp.live.live_session import LiveSession
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import Json
from arp.record import work
from arp.store.store import facts

JOINING = ("job_id", "job_item_id", "parent_task_id", "root_task_id")
"""Correlations of a task's first fact that all its facts carry."""


class KnownTask(Struct, frozen=True):
    """A task at one moment, and the ids that the facts about it carry."""

    task: Task
    sequence: int
    """The newest fact that it takes into account."""
    ids: dict[str, str]

    @property
    def attempts(self) -> int:
        """How many attempts there were."""
        return self.task.older_attempts + len(self.task.attempts)

    @property
    def running(self) -> Attempt | None:
        """The attempt that runs."""
        run_id = self.task.current_run_id
        return next((one for one in self.task.attempts if one.run_id == run_id), None)

    @property
    def has_failed(self) -> bool:
        """Return whether the last attempt failed."""
        attempts = self.task.attempts
        return bool(attempts) and attempts[-1].status == "failed"

    def has_run(self, run_id: str | None) -> bool:
        """Return whether there was an attempt of that id."""
        return any(one.run_id == run_id for one in self.task.attempts)

    def check_idle(self) -> None:
        """Refuse another attempt while one runs.

        Raises:
            SessionBusy: One does.
        """
        task = self.task
        if task.current_run_id is not None:
            raise SessionBusy(f"attempt {task.current_run_id} of task {task.task_id} still runs")


def unknown_task(task_id: str) -> KnownTask:
    """Return a task without facts: the first fact about a task may be an attempt at it."""
    task = Task(task_id=task_id, objective="unknown", status="unknown", first_sequence=0)
    return KnownTask(task, 0, {})


async def find_task(
    context: ControlContext, session_id: str, task_id: str | None
) -> KnownTask | None:
    """Return a task of a session; `None` if there is none of that id."""
    model, store = await context.model(session_id), context.hub.store
    tasks, sequence = model.state.tasks.tasks, model.sequence
    task = tasks.get(task_id)
    if task_id is None or (task is None and not tasks.older):
        return None
    if task is not None and not task.partial:  # copied: the model changes with further facts
        task = msgspec.json.decode(msgspec.json.encode(task), type=Task)
    else:
        folded, mark = Tasks(), task_id.encode()
        async with aclosing(facts(store, session_id, through=sequence)) as found:
            async for _, body in found:
                fact = decode(body) if mark in body else None
                if fact is not None and fact.task_id == task_id and fact.type in RULES:
                    RULES[fact.type](folded, fact)
        task = folded.tasks.get(task_id)
        if task is None:
            return None
    first = decode((await store.read(session_id, task.first_sequence - 1, 1))[0][1])
    ids = {name: getattr(first, name) for name in JOINING if getattr(first, name)}
    return KnownTask(task, sequence, ids)


def check_edges(
    model: ReadModel, task_id: str, depends_on: Iterable[str], parent_id: str | None
) -> str | None:
    """Refuse edges of a task from unknown tasks, and edges that make a circle.

    Returns:
        The root of the tasks above, as far as it is known.

    Raises:
        UnknownObject: One of the other tasks is not known.
        InvalidMessage: It would come before itself.
    """
    known = model.state.tasks.tasks
    seen: set[str] = set()
    queue = [*depends_on, *([parent_id] if parent_id else [])]
    for one in queue:
        if known.get(one) is None and one != task_id:
            raise UnknownObject(f"no task {one!r:.80} in this session", detail=one)
    while queue:
        one = queue.pop()
        if one == task_id:
            raise InvalidMessage(f"task {task_id!r:.80} would come before itself", detail=one)
        task = known.get(one)
        if task is not None and one not in seen:
            seen.add(one)
            queue += task.edges.depends_on
            queue += [task.edges.parent_task_id] if task.edges.parent_task_id else []
    parent = known.get(parent_id)
    return (parent.edges.root_task_id or parent_id) if parent is not None else None


class TaskRecorder:
    """Records facts of one task, and of the item of a job that the task carries out."""

    def __init__(
        self,
        context: ControlContext,
        live: LiveSession,
        known: KnownTask,
        turn_id: str | None = None,
    ) -> None:
        scope = {}
        if turn_id is not None:
            scope = {"thread_id": live.session.threads.of(turn_id), "turn_id": turn_id}
        self._recorder = context.hub.recorder(live).within(**known.ids, **scope)
        self._known = known
        running = known.running
        self._number = (running.attempt if running is not None else None) or known.attempts
        """Of the attempt that runs, or of the last one."""
        last = known.task.attempts[-1].run_id if known.task.attempts else None
        run_id = running.run_id if running is not None else last
        self.task: work.RecordedTask = self._recorder.known_task(
            known.task.task_id, known.attempts, run_id
        )

    def status(self, status: str, reason: str | None, run_id: str | None) -> None:
        """Record a new status; `run_id` is the id of the attempt that `running` starts."""
        match status:
            case "running":
                self._run(reason, run_id)
            case "failed" | "timed_out" | "lost":
                self._attempt_failed(reason or "timed out")
                self.task.record(f"task.{status}", {"reason": reason})
            case "waiting_input" | "waiting_permission" | "waiting_resource":
                need = status.removeprefix("waiting_")
                self.task.record("task.waiting", {"waitingFor": need, "reason": reason})
            case _:  # the fact has the name of the status, and the reason is all of its payload
                self.task.record(f"task.{status}", {"reason": reason})

    def _run(self, reason: str | None, run_id: str | None) -> None:
        if self._known.running is None:
            self._begin(run_id or f"{self.task.id}.{self._known.attempts + 1}")
        elif self._known.task.status == "paused":
            self.task.record("task.resumed", {"reason": reason})
        else:
            self.task.record("task.started")

    def retry(self, run_id: str, reason: str | None) -> None:
        """Record that the task is tried again, as a run of that id."""
        attempt = self.task.retry(reason, run_id)
        self._item("started", attempt.number)

    def begin(self, run_id: str) -> None:
        """Record that an attempt begins: the first, or another one after one that ended."""
        if self._known.has_failed or self._known.task.status in ENDED:
            self.retry(run_id, None)
        else:
            self._begin(run_id)

    def complete(
        self,
        outputs: Sequence[Json],
        artifacts: Sequence[str],
        evidence_refs: Sequence[str],
        delivery: Delivery | None,
    ) -> None:
        """Record that the task is done, and the attempt that completed it."""
        if self._known.running is not None:
            payload = {"attempt": self._number, "outputs": outputs or None}
            self.task.record("task.attempt.completed", payload)
            self._item("completed", self._number, outputs=outputs or None)
        self.task.completed(
            outputs, artifacts=artifacts, evidence_refs=evidence_refs, delivery=delivery
        )

    def cancelled(self, reason: str | None) -> None:
        """Record that it stopped."""
        self._attempt_failed("cancelled")
        self.task.record("task.cancelled", {"reason": reason})

    def part_of(self, parent_id: str, root_id: str | None) -> None:
        """Record which task it is a part of."""
        root = {"root_task_id": root_id} if root_id is not None else {}
        joined = self._recorder.within(parent_task_id=parent_id, **root)
        joined("task.updated", {}, task_id=self.task.id)

    def _begin(self, run_id: str) -> None:
        self.task.record("task.started", run_id=run_id)
        attempt = self.task.attempt(run_id)
        self._item("started", attempt.number)

    def _attempt_failed(self, reason: str | None) -> None:
        running = self._known.running
        if running is not None:
            payload = {"attempt": self._number, "reason": reason}
            self.task.record("task.attempt.failed", payload)
            self._item("failed", self._number, reason=reason)

    def _item(self, what: str, attempt: int, **more: Json) -> None:
        if self._known.ids.keys() >= {"job_id", "job_item_id"}:
            self.task.record(f"job.item.{what}", {"attempt": attempt, **more})
