"""What is recorded of a task that goes a step further, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from arp.control.task_graph import Known
from arp.ledger.models.tasks import ENDED
from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import Json
from arp.record.recorder import Recorder
from arp.record.work import Task
from arp.session.threads import THREAD

if TYPE_CHECKING:
    from arp.control.task_requests import CompleteTask, TaskStatus, UpdateTask


class Steps:
    """Records facts of one task; those of an item of a job are told of the item too."""

    def __init__(
        self,
        recorder: Recorder,
        known: Known,
        turn_id: str | None = None,
        thread_id: str = THREAD,
    ) -> None:
        scope = {"thread_id": thread_id, "turn_id": turn_id} if turn_id is not None else {}
        self._recorder = recorder.within(**known.ids, **scope)
        self._known = known
        running = known.running
        self._number = (running.attempt if running is not None else None) or known.attempts
        """Of the attempt that runs, or ran last."""
        last = known.task.attempts[-1].run_id if known.task.attempts else None
        run_id = running.run_id if running is not None else last
        self.task: Task = self._recorder.known_task(known.task.task_id, known.attempts, run_id)

    def update(self, asked: UpdateTask) -> None:
        """Records everything that an update says, the new status last.

        Raises:
            InvalidMessage: A reason is missing; nothing is recorded.
        """
        if asked.status in ("failed", "lost", "blocked") and asked.reason is None:
            raise InvalidMessage(f"reason: say why the task is {asked.status}", detail="reason")
        if asked.objective is not None or asked.detail is not None:
            payload = {"objective": asked.objective, "detail": asked.detail}
            self.task.record("task.updated", payload)
        if asked.progress is not None:
            self.task.record("task.progress", msgspec.structs.asdict(asked.progress))
        if asked.status is not None:
            self._status(asked.status, asked.reason, asked.run_id)

    def _status(self, status: TaskStatus, reason: str | None, run_id: str | None) -> None:
        match status:
            case "running":
                self._run(reason, run_id)
            case "failed" | "timed_out" | "lost":
                self._attempt_failed(reason or "timed out")
                self.task.record(f"task.{status}", {"reason": reason})
            case "waiting_input" | "waiting_permission" | "waiting_resource":
                need = status.removeprefix("waiting_")
                self.task.record("task.waiting", {"waitingFor": need, "reason": reason})
            case _:  # the fact is called as the status, and tells no more than the reason
                self.task.record(f"task.{status}", {"reason": reason})

    def _run(self, reason: str | None, run_id: str | None) -> None:
        if self._known.running is None:
            self._begin(run_id or f"{self.task.id}.{self._known.attempts + 1}")
        elif self._known.task.status == "paused":
            self.task.record("task.resumed", {"reason": reason})
        else:
            self.task.record("task.started")

    def retry(self, run_id: str, reason: str | None) -> None:
        """Records that the task is tried again, as a run of that id."""
        attempt = self.task.retry(reason, run_id)
        self._item("started", attempt.number)

    def begin(self, run_id: str) -> None:
        """Records that an attempt begins: the first, or another one after one that ended."""
        if self._known.has_failed or self._known.task.status in ENDED:
            self.retry(run_id, None)
        else:
            self._begin(run_id)

    def complete(self, asked: CompleteTask) -> None:
        """Records that the task is done, and the attempt that did it."""
        running = self._known.running
        if running is not None:
            payload = {"attempt": self._number, "outputs": asked.outputs or None}
            self.task.record("task.attempt.completed", payload)
            self._item("completed", self._number, outputs=asked.outputs or None)
        self.task.completed(
            asked.outputs,
            artifacts=asked.artifacts,
            evidence_refs=asked.evidence_refs,
            delivery=asked.delivery,
        )

    def cancel(self, reason: str | None) -> None:
        """Records the wish that the task stop."""
        self.task.record("task.cancel_requested", {"reason": reason})

    def cancelled(self, reason: str | None) -> None:
        """Records that it stopped."""
        self._attempt_failed("cancelled")
        self.task.record("task.cancelled", {"reason": reason})

    def part_of(self, parent_id: str, root_id: str | None) -> None:
        """Records which task it is a part of."""
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
