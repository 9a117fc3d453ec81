"""Tasks: objective, status, attempts, and relations to other tasks.

Theory of operation. The type of a fact determines the status of its task; only `run.status` and
`task.updated` name a status in a field. A failed attempt does not change the status: the task
continues until another fact ends it. A fact about an ended task does not change the status either,
except `task.archived` and the facts that start the task again: `task.retrying`, `task.started`,
`task.resumed`, `task.attempt.started`. A retry keeps the task and its earlier attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.audit.models.reading import brief, number, part, text, texts, values, whole
from arp.audit.models.records import Record, RecordWindow, Rule
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json

MOST_OPEN: Final = 200
"""Number of open tasks that are kept."""

MOST_ENDED: Final = 100
"""Number of ended tasks that are kept."""

MOST_ATTEMPTS: Final = 10
"""Number of attempts of a task that are kept."""

MOST_LINKS: Final = 50
"""Number of ids in each list of a task that are kept."""

ENDED: Final = frozenset(("cancelled", "timed_out", "failed", "lost", "completed", "archived"))

_OPEN: Final = """
draft accepted queued preparing running waiting_input waiting_permission waiting_resource
blocked paused retrying cancelling stale unknown
"""

STATUSES: Final = ENDED | frozenset(_OPEN.split())
"""All statuses of a task (ledger.md 4)."""


class Attempt(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One run of a task."""

    run_id: str
    attempt: int | None = None
    status: str
    """Status: running, completed or failed."""
    reason: str | None = None
    retryable: bool = False
    outputs: list[Json] = field(default_factory=list)
    thread_id: str | None = None
    turn_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None


class Edges(Struct, rename="camel", omit_defaults=True):
    """Relations of a task to other tasks, and to agents."""

    parent_task_id: str | None = None
    root_task_id: str | None = None
    depends_on: list[str] = []
    blocked_by: list[str] = []
    children: list[str] = []
    delegated_to: list[str] = []


class Progress(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Progress of a task."""

    fraction: int | float | None = None
    done: int | None = None
    total: int | None = None
    message: str | None = None


class Task(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One task."""

    task_id: str
    objective: str
    status: str
    status_reason: str | None = None
    current_run_id: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    older_attempts: int = 0
    edges: Edges = field(default_factory=Edges)
    progress: Progress | None = None
    position: int | None = None
    """Position in the queue, from 1."""
    outputs: list[Json] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    evidence_refs: list[str] = field(default_factory=list)
    delivery: Json = None
    profile: Json = None
    """Requirements of the task for a model."""
    thread_id: str | None = None
    turn_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    partial: bool = False
    """Whether the task was evicted before and came back. It is then not counted, and its earlier
    history is only in the facts."""

    @property
    def attempt_count(self) -> int:
        """Number of attempts, including those that are not kept."""
        return self.older_attempts + len(self.attempts)

    @property
    def running_attempt(self) -> Attempt | None:
        """The attempt that runs; `None` if none does."""
        return next((one for one in self.attempts if one.run_id == self.current_run_id), None)

    @property
    def has_failed_attempt(self) -> bool:
        """Whether the newest attempt failed."""
        return bool(self.attempts) and self.attempts[-1].status == "failed"

    def has_run(self, run_id: str | None) -> bool:
        """Return whether a kept attempt has this id."""
        return any(one.run_id == run_id for one in self.attempts)


class Tasks(Struct, rename="camel", omit_defaults=True):
    """The tasks of a session."""

    tasks: RecordWindow[Task] = field(default_factory=lambda: RecordWindow[Task]())
    total: int = 0
    counts: dict[str, int] = {}
    """Number of tasks by status; an evicted task is counted with its last status."""
    retries: int = 0

    def of(self, fact: Fact) -> Task:
        """Return the task of a fact; begin a new record if there is none."""
        name = fact.task_id or "unknown"
        task = self.tasks.get(name)
        if task is None:
            # After an eviction, an unknown task without `task.created` was probably counted before.
            # Counting it again would make `total` too large.
            partial = self.tasks.older > 0 and fact.type != "task.created"
            task = Task(
                task_id=name,
                objective="unknown",
                status="unknown",
                first_sequence=fact.sequence,
                partial=partial,
            )
            self.tasks.begin(name, task, MOST_OPEN)
            self.total += not partial
            self._count(task, 1)
        task.last_sequence, task.updated_at = fact.sequence, fact.timestamp
        task.thread_id = fact.thread_id or task.thread_id
        task.turn_id = fact.turn_id or task.turn_id
        return task

    def move(self, task: Task, status: str, reason: str | None = None) -> None:
        """Change the status of a task, and move it to the open or to the ended tasks."""
        self._count(task, -1)
        task.status, task.status_reason = status, reason
        self._count(task, 1)
        if status != "blocked":
            task.edges.blocked_by = []
        if status in ENDED:
            self.tasks.end(task.task_id, MOST_ENDED)
        else:
            self.tasks.reopen(task.task_id, MOST_OPEN)

    def _count(self, task: Task, more: int) -> None:
        if task.partial:
            return
        left = self.counts.get(task.status, 0) + more
        if left:
            self.counts[task.status] = left
        else:
            del self.counts[task.status]


# -- status ----------------------------------------------------------------------------------------


def _becomes(status: str, reopens: bool = False) -> Callable[[Tasks, Fact], None]:
    """Return the rule of a fact that sets a status.

    Args:
        status: The new status.
        reopens: Whether the fact also changes an ended task.
    """

    def rule(tasks: Tasks, fact: Fact) -> None:
        task = tasks.of(fact)
        if task.status not in ENDED or reopens or status == "archived":
            tasks.move(task, status, text(fact.payload, "reason") or fact.status_reason)

    return rule


def _created(tasks: Tasks, fact: Fact) -> None:
    task = tasks.of(fact)
    task.objective = text(fact.payload, "objective") or task.objective
    task.created_at = fact.timestamp
    _link(tasks, task, fact)
    if task.status == "unknown":  # a second `task.created` must not reset the status
        tasks.move(task, "draft")


def _link(tasks: Tasks, task: Task, fact: Fact) -> None:
    edges = task.edges
    edges.root_task_id = fact.root_task_id or edges.root_task_id
    edges.depends_on = texts(fact.payload, "dependsOn") or edges.depends_on
    parent_id = fact.parent_task_id
    edges.parent_task_id = parent_id or edges.parent_task_id
    parent = tasks.tasks.get(parent_id)
    if parent is not None:
        _add(parent.edges.children, task.task_id)


def _add(links: list[str], name: str) -> None:
    if name not in links and len(links) < MOST_LINKS:
        links.append(name)


def _queued(tasks: Tasks, fact: Fact) -> None:
    _becomes("queued")(tasks, fact)
    tasks.of(fact).position = whole(fact.payload, "position")


def _started(tasks: Tasks, fact: Fact) -> None:
    _becomes("running", reopens=True)(tasks, fact)
    tasks.of(fact).position = None


def _waiting(tasks: Tasks, fact: Fact) -> None:
    """Set the status by what the task waits for; `unknown` if the fact does not say it."""
    status = f"waiting_{text(fact.payload, 'waitingFor')}"
    _becomes(status if status in STATUSES else "unknown")(tasks, fact)


def _blocked(tasks: Tasks, fact: Fact) -> None:
    _becomes("blocked")(tasks, fact)
    tasks.of(fact).edges.blocked_by = texts(fact.payload, "blockedBy")


def _retrying(tasks: Tasks, fact: Fact) -> None:
    _becomes("retrying", reopens=True)(tasks, fact)
    tasks.of(fact).current_run_id = None
    tasks.retries += 1


def _completed(tasks: Tasks, fact: Fact) -> None:
    task, payload = tasks.of(fact), fact.payload
    task.outputs = values(payload, "outputs") or task.outputs
    for links, name in ((task.artifacts, "artifacts"), (task.evidence_refs, "evidenceRefs")):
        for one in texts(payload, name):
            _add(links, one)
    task.delivery = brief(part(payload, "delivery")) or task.delivery
    task.current_run_id = None
    _becomes("completed")(tasks, fact)


def _run_status(tasks: Tasks, fact: Fact) -> None:
    """Set the status that the fact names, if it names a task and a valid status of tasks."""
    if fact.task_id is not None and fact.status in STATUSES:
        _becomes(fact.status)(tasks, fact)


# -- other facts about tasks -----------------------------------------------------------------------


def _updated(tasks: Tasks, fact: Fact) -> None:
    task = tasks.of(fact)
    task.objective = text(fact.payload, "objective") or task.objective
    _link(tasks, task, fact)
    _run_status(tasks, fact)


def _progress(tasks: Tasks, fact: Fact) -> None:
    payload = fact.payload
    tasks.of(fact).progress = Progress(
        number(payload, "fraction"),
        whole(payload, "done"),
        whole(payload, "total"),
        text(payload, "message"),
    )


def _delegated(tasks: Tasks, fact: Fact) -> None:
    to = text(fact.payload, "to") or fact.subagent_id
    if to is not None:
        _add(tasks.of(fact).edges.delegated_to, to)


def _dependencies_updated(tasks: Tasks, fact: Fact) -> None:
    tasks.of(fact).edges.depends_on = texts(fact.payload, "dependsOn")


def _profile_resolved(tasks: Tasks, fact: Fact) -> None:
    tasks.of(fact).profile = brief(part(fact.payload, "profile"))


def _artifact(tasks: Tasks, fact: Fact) -> None:
    task = tasks.tasks.get(fact.task_id)
    if task is not None and fact.artifact_id is not None:
        _add(task.artifacts, fact.artifact_id)


def _evidence(tasks: Tasks, fact: Fact) -> None:
    task = tasks.tasks.get(fact.task_id)
    if task is not None and fact.evidence_id is not None:
        _add(task.evidence_refs, fact.evidence_id)


# -- attempts --------------------------------------------------------------------------------------


def _attempt(tasks: Tasks, fact: Fact) -> tuple[Task, Attempt]:
    """Return the task and the attempt of a fact; begin a new attempt if there is none."""
    task, run_id = tasks.of(fact), fact.run_id or "unknown"
    for attempt in task.attempts:
        if attempt.run_id == run_id:
            attempt.last_sequence = fact.sequence
            return task, attempt
    attempt = Attempt(
        run_id=run_id,
        status="running",
        attempt=whole(fact.payload, "attempt"),
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    task.attempts.append(attempt)
    if len(task.attempts) > MOST_ATTEMPTS:
        del task.attempts[0]
        task.older_attempts += 1
    return task, attempt


def _attempt_started(tasks: Tasks, fact: Fact) -> None:
    task, attempt = _attempt(tasks, fact)
    attempt.status, attempt.started_at = "running", fact.timestamp
    task.current_run_id = attempt.run_id
    tasks.move(task, "running")


def _attempt_ended(tasks: Tasks, fact: Fact) -> None:
    task, attempt = _attempt(tasks, fact)
    attempt.status = fact.type.removeprefix("task.attempt.")
    attempt.ended_at = fact.timestamp
    attempt.reason = text(fact.payload, "reason") or fact.status_reason
    attempt.retryable = fact.payload.get("retryable") is True
    attempt.outputs = values(fact.payload, "outputs")
    if task.current_run_id == attempt.run_id:
        task.current_run_id = None


RULES: Final[dict[str, Rule]] = {
    "task.created": _created,
    "task.queued": _queued,
    "task.started": _started,
    "task.updated": _updated,
    "task.progress": _progress,
    "task.waiting": _waiting,
    "task.blocked": _blocked,
    "task.resumed": _started,
    "task.retrying": _retrying,
    "task.cancel_requested": _becomes("cancelling"),
    "task.completed": _completed,
    **{
        f"task.{status}": _becomes(status)
        for status in ("accepted", "paused", "cancelled", "timed_out", "failed", "lost", "archived")
    },
    "task.delegated": _delegated,
    "task.dependency.updated": _dependencies_updated,
    "task.profile.resolved": _profile_resolved,
    "task.attempt.started": _attempt_started,
    "task.attempt.completed": _attempt_ended,
    "task.attempt.failed": _attempt_ended,
    "run.status": _run_status,
    "artifact.changed": _artifact,
    "evidence.changed": _evidence,
}
"""Fact type → rule that changes `Tasks`."""
