"""A piece of work, and the attempts at it. A retry is a new attempt of the same task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from arp.ledger.payload_fields import Delivery, Need
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.record.scope import FactScope


class Task:
    """A task; given by `turn.record.task(objective)`."""

    __slots__ = ("_scope", "attempts", "id", "run_id")

    def __init__(
        self, scope: FactScope, task_id: str, attempts: int = 0, run_id: str | None = None
    ) -> None:
        self.id = task_id
        self.attempts = attempts
        """How many there were so far."""
        self.run_id = run_id
        """Of the attempt that runs, or ran last; facts of the task carry it. `None`: there was
        none."""
        self._scope = scope

    def subtask(self, objective: str, *, depends_on: Sequence[str] = ()) -> Task:
        """Makes a task that is a part of this one.

        Args:
            objective: What it is to achieve.
            depends_on: Ids of tasks that must be completed before.
        """
        root = self._scope.ids.get("root_task_id", self.id)
        within = self._scope.within(parent_task_id=self.id, root_task_id=root)
        return created(within, objective, depends_on=depends_on)

    # -- how it goes -----------------------------------------------------------------------------

    def accepted(self, reason: str | None = None) -> None:
        """Notes that the task will be done."""
        self._record("task.accepted", reason=reason)

    def queued(self, position: int | None = None, reason: str | None = None) -> None:
        """Notes that it waits in line; `position` counts from 1."""
        self._record("task.queued", position=position, reason=reason)

    def started(self, run_id: str | None = None) -> None:
        """Notes that work on it has begun.

        Args:
            run_id: Of the attempt that begins next; `None`: it goes on, or that is not known yet.
        """
        self._scope.record("task.started", {}, task_id=self.id, run_id=run_id or self.run_id)

    def updated(self, objective: str | None = None, detail: Json = None) -> None:
        """Notes that it is about something else now."""
        self._record("task.updated", objective=objective, detail=detail)

    def progress(
        self,
        fraction: float | None = None,
        *,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
    ) -> None:
        """Notes how far it is: a fraction from 0 to 1, or so many of so many."""
        self._record("task.progress", fraction=fraction, done=done, total=total, message=message)

    def waiting(self, need: Need, reason: str | None = None) -> None:
        """Notes that it waits for input, for a permission or for a resource."""
        self._record("task.waiting", waitingFor=need, reason=reason)

    def blocked(self, reason: str, blocked_by: Sequence[str] = ()) -> None:
        """Notes that it cannot go on; `blocked_by` are ids of what stands in the way."""
        self._record("task.blocked", reason=reason, blockedBy=list(blocked_by) or None)

    def paused(self, reason: str | None = None) -> None:
        """Notes that somebody stopped it for a while."""
        self._record("task.paused", reason=reason)

    def resumed(self, reason: str | None = None) -> None:
        """Notes that it goes on."""
        self._record("task.resumed", reason=reason)

    def cancel_requested(self, reason: str | None = None) -> None:
        """Notes the wish that it stop; what runs is still to be cleaned up."""
        self._record("task.cancel_requested", reason=reason)

    def delegated(self, to: str, reason: str | None = None) -> None:
        """Notes who does it now: the id of a subagent, or a name."""
        self._record("task.delegated", to=to, reason=reason)

    def depends_on(self, *task_ids: str) -> None:
        """Notes all tasks that must be completed before it; none: it depends on nothing."""
        self._record("task.dependency.updated", dependsOn=list(task_ids))

    def profile(self, **asked: Json) -> None:
        """Notes what it asks of a model: kind of work, size, what it must be able to do."""
        self._record("task.profile.resolved", profile=asked)

    # -- how it ends -----------------------------------------------------------------------------

    def completed(
        self,
        outputs: Sequence[Json] = (),
        *,
        artifacts: Sequence[str] = (),
        evidence_refs: Sequence[str] = (),
        delivery: Delivery | None = None,
    ) -> None:
        """Notes that it is done, what came of it, and whether that was delivered."""
        self._record(
            "task.completed",
            outputs=list(outputs) or None,
            artifacts=list(artifacts) or None,
            evidenceRefs=list(evidence_refs) or None,
            delivery=delivery,
        )

    def failed(self, reason: str) -> None:
        """Notes that it is given up."""
        self._record("task.failed", reason=reason)

    def cancelled(self, reason: str | None = None) -> None:
        """Notes that it stopped because somebody wanted it to."""
        self._record("task.cancelled", reason=reason)

    def timed_out(self, timeout_s: float | None = None, reason: str | None = None) -> None:
        """Notes that it took longer than the seconds that it was allowed."""
        self._record("task.timed_out", timeoutS=timeout_s, reason=reason)

    def lost(self, reason: str) -> None:
        """Notes that nobody knows what became of it."""
        self._record("task.lost", reason=reason)

    def archived(self, reason: str | None = None) -> None:
        """Notes that it need not be shown any more."""
        self._record("task.archived", reason=reason)

    # -- attempts --------------------------------------------------------------------------------

    def attempt(self, run_id: str | None = None) -> Attempt:
        """Begins an attempt; `with task.attempt():` notes how it ended.

        Args:
            run_id: Of the run; `None` makes one.
        """
        number = self.attempts + 1
        run = run_id or f"{self.id}.{number}"
        begun = Attempt(self._scope.within(task_id=self.id, run_id=run), run, number)
        self.attempts, self.run_id = number, run
        return begun

    def retry(self, reason: str | None = None, run_id: str | None = None) -> Attempt:
        """Begins another attempt after one that failed.

        Args:
            reason: Why it may go better.
            run_id: As for `attempt`.
        """
        run = run_id or f"{self.id}.{self.attempts + 1}"
        payload = {"attempt": self.attempts + 1, "reason": reason}
        self._scope.record("task.retrying", payload, task_id=self.id, run_id=run)
        return self.attempt(run)

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, payload, task_id=self.id, run_id=self.run_id)


class Attempt:
    """One attempt at a task, which is a run; as a context manager it notes its own end."""

    __slots__ = ("_ended", "_scope", "number", "run_id")

    def __init__(self, scope: FactScope, run_id: str, number: int) -> None:
        self.run_id = run_id
        self.number = number
        """From 1."""
        self._scope = scope
        self._ended = False
        self._record("task.attempt.started")

    def status(self, status: str, reason: str | None = None) -> None:
        """Notes how the run stands, in the words of a task's status."""
        self._scope.record("run.status", {"reason": reason}, status=status)

    def completed(self, outputs: Sequence[Json] = ()) -> None:
        """Notes that the attempt did what it should."""
        self._ended = True
        self._record("task.attempt.completed", outputs=list(outputs) or None)

    def failed(self, reason: str, *, retryable: bool | None = None) -> None:
        """Notes that it did not; the task may be tried again."""
        self._ended = True
        self._record("task.attempt.failed", reason=reason, retryable=retryable)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended:
            return
        if error is None:
            self.completed()
            return
        with suppress(SurfaceDestroyed):  # the turn is over: what was raised says more
            self.failed(reason_of(error))

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, {"attempt": self.number, **payload})


def created(
    scope: FactScope,
    objective: str,
    *,
    task_id: str | None = None,
    depends_on: Sequence[str] = (),
    detail: Json = None,
) -> Task:
    """Makes a task.

    Args:
        scope: Its ids may name the tasks above.
        objective: What it is to achieve.
        task_id: `None` makes one.
        depends_on: Ids of tasks that must be completed before.
        detail: What else is known.

    Raises:
        ProfileViolation: Something of it is not as it must be; there is no task then.
    """
    task = Task(scope, task_id or scope.new_id("task"))
    payload: JsonObject = {"objective": objective, "dependsOn": list(depends_on) or None}
    scope.record("task.created", {**payload, "detail": detail}, task_id=task.id)
    return task


def reason_of(error: BaseException) -> str:
    """Gives what may be told of an error: of a stranger's only its kind, never its text."""
    if isinstance(error, ArpError):
        return error.message
    name = type(error).__name__
    return "cancelled" if name == "CancelledError" else name
