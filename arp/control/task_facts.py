"""Tasks of a session: read them from the read model or the facts, and record their facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct

from arp.audit.models.read_model import ReadModel
from arp.audit.models.tasks import ENDED, RULES, Task, Tasks
from arp.control.context import ControlContext
from arp.ledger.fact import decode
from arp.ledger.payload_fields import Delivery
from arp.live.live_session import LiveSession
from arp.protocol.errors import InvalidMessage, SessionBusy, UnknownObject
from arp.protocol.json_value import Json
from arp.record import work
from arp.store.store import facts

JOINING = ("job_id", "job_item_id", "parent_task_id", "root_task_id")
"""Correlation ids that later facts about a task take from its first fact."""


class StoredTask(Struct, frozen=True):
    """A task as the durable facts describe it."""

    task: Task
    sequence: int
    """Sequence number of the newest fact that was read."""
    ids: dict[str, str]
    """Correlation ids that all further facts about the task carry."""


def unknown_task(task_id: str) -> StoredTask:
    """Return a placeholder for a task that has no facts yet.

    It is needed because an attempt may be the first recorded fact of a task.
    """
    task = Task(task_id=task_id, objective="unknown", status="unknown", first_sequence=0)
    return StoredTask(task, 0, {})


def check_idle(task: Task) -> None:
    """Refuse another attempt while one runs.

    Raises:
        SessionBusy: An attempt runs.
    """
    if task.current_run_id is not None:
        raise SessionBusy(f"attempt {task.current_run_id} of task {task.task_id} still runs")


async def find_task(
    context: ControlContext, session_id: str, task_id: str | None
) -> StoredTask | None:
    """Return a task of a session; `None` if there is none with that id.

    A task that the read model has evicted, or keeps only in part, is folded from the log by the
    rules of the read model.
    """
    model, store = await context.model(session_id), context.hub.store
    tasks, sequence = model.state.tasks.tasks, model.sequence
    task = tasks.get(task_id)
    if task_id is None or (task is None and not tasks.older):
        return None
    if task is not None and not task.partial:  # a copy: later facts change the read model
        task = msgspec.json.decode(msgspec.json.encode(task), type=Task)
    else:
        # The read model has dropped parts of the task. The log still has all facts about it.
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
    return StoredTask(task, sequence, ids)


def check_edges(
    model: ReadModel, task_id: str, depends_on: Iterable[str], parent_id: str | None
) -> str | None:
    """Refuse edges that lead to unknown tasks or make a cycle.

    Returns:
        Id of the root task; `None` if the task has no parent.

    Raises:
        UnknownObject: One of the other tasks does not exist.
        InvalidMessage: The task would depend on itself.
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
            raise InvalidMessage(f"task {task_id!r:.80} would depend on itself", detail=one)
        task = known.get(one)
        if task is not None and one not in seen:
            seen.add(one)
            queue += task.edges.depends_on
            queue += [task.edges.parent_task_id] if task.edges.parent_task_id else []
    parent = known.get(parent_id)
    return (parent.edges.root_task_id or parent_id) if parent is not None else None


class TaskRecorder:
    """Records facts of one task, and of the item of a job that the task carries out.

    Args:
        context: Context of the call.
        live: Session of the task.
        stored: The task before the call.
        turn_id: Turn of the facts; `None` if they belong to no turn.
    """

    def __init__(
        self,
        context: ControlContext,
        live: LiveSession,
        stored: StoredTask,
        turn_id: str | None = None,
    ) -> None:
        scope = {}
        if turn_id is not None:
            scope = {"thread_id": live.session.threads.of(turn_id), "turn_id": turn_id}
        self._recorder = context.hub.recorder(live).within(**stored.ids, **scope)
        self._before, self._ids = stored.task, stored.ids
        running = self._before.running_attempt
        self._number = (running and running.attempt) or self._before.attempt_count
        """Number of the attempt that runs, or else of the newest one."""
        newest = running or (self._before.attempts[-1] if self._before.attempts else None)
        self.task: work.RecordedTask = self._recorder.known_task(
            self._before.task_id,
            self._before.attempt_count,
            newest.run_id if newest is not None else None,
        )

    def status(self, status: str, reason: str | None, run_id: str | None) -> None:
        """Record a new status.

        Args:
            status: One of `TaskStatus`.
            reason: Reason of the change; `None` if there is none.
            run_id: Id of the attempt that `running` starts; `None` makes one.
        """
        match status:
            case "running":
                self._run(reason, run_id)
            case "failed" | "timed_out" | "lost":
                self._attempt_failed(reason or "timed out")
                self.task.record(f"task.{status}", {"reason": reason})
            case "waiting_input" | "waiting_permission" | "waiting_resource":
                need = status.removeprefix("waiting_")
                self.task.record("task.waiting", {"waitingFor": need, "reason": reason})
            case _:  # the fact is named after the status, and has only a reason
                self.task.record(f"task.{status}", {"reason": reason})

    def _run(self, reason: str | None, run_id: str | None) -> None:
        if self._before.running_attempt is None:
            self._begin(run_id or f"{self.task.id}.{self._before.attempt_count + 1}")
        elif self._before.status == "paused":
            self.task.record("task.resumed", {"reason": reason})
        else:
            self.task.record("task.started")

    def retry(self, run_id: str, reason: str | None) -> None:
        """Record another attempt, with this run id."""
        attempt = self.task.retry(reason, run_id)
        self._item("started", attempt.number)

    def begin(self, run_id: str) -> None:
        """Record the start of an attempt; after a failed attempt or an ended task it is a retry."""
        if self._before.has_failed_attempt or self._before.status in ENDED:
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
        """Record the end of the task, and of the attempt that completed it."""
        if self._before.running_attempt is not None:
            payload = {"attempt": self._number, "outputs": outputs or None}
            self.task.record("task.attempt.completed", payload)
            self._item("completed", self._number, outputs=outputs or None)
        self.task.completed(
            outputs, artifacts=artifacts, evidence_refs=evidence_refs, delivery=delivery
        )

    def cancelled(self, reason: str | None) -> None:
        """Record that the task was cancelled, and that its attempt failed."""
        self._attempt_failed("cancelled")
        self.task.record("task.cancelled", {"reason": reason})

    def part_of(self, parent_id: str, root_id: str | None) -> None:
        """Record the parent of the task, and its root if it is known."""
        root = {"root_task_id": root_id} if root_id is not None else {}
        joined = self._recorder.within(parent_task_id=parent_id, **root)
        joined("task.updated", {}, task_id=self.task.id)

    def _begin(self, run_id: str) -> None:
        self.task.record("task.started", run_id=run_id)
        attempt = self.task.attempt(run_id)
        self._item("started", attempt.number)

    def _attempt_failed(self, reason: str | None) -> None:
        if self._before.running_attempt is not None:
            payload = {"attempt": self._number, "reason": reason}
            self.task.record("task.attempt.failed", payload)
            self._item("failed", self._number, reason=reason)

    def _item(self, what: str, attempt: int, **more: Json) -> None:
        if self._ids.keys() >= {"job_id", "job_item_id"}:
            self.task.record(f"job.item.{what}", {"attempt": attempt, **more})
