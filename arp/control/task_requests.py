"""What may be asked about tasks, and what is answered."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from arp.control.asked import Id, OfSession, Reason, TurnId
from arp.control.turns import TurnInput
from arp.ledger.payload_fields import Count, Delivery, Share
from arp.protocol.json_value import Json, JsonObject

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
"""What `task/update` can say; `completed`, `cancelled` and `retrying` have methods of their own."""

Ids: TypeAlias = Annotated[tuple[Id, ...], Meta(max_length=50, description="at most 50 ids")]


class CreateTask(OfSession, frozen=True, kw_only=True):
    """Asks for a task."""

    objective: Reason
    task_id: Id | None = None
    """A call with an id that there is changes nothing. `None` makes one."""
    parent_task_id: Id | None = None
    depends_on: Ids = ()
    """Tasks that must be completed before."""
    detail: Json = None
    job_id: Id | None = None
    job_item_id: Id | None = None
    """The item of the job that it stands for: its facts are told of the item too."""


class OfTask(OfSession, frozen=True, kw_only=True):
    """Parameters of a method about one task."""

    task_id: Id


class Progress(Struct, frozen=True, forbid_unknown_fields=True):
    """How far a task is: a fraction, or so many of so many."""

    fraction: Share | None = None
    done: Count | None = None
    total: Count | None = None
    message: str | None = None


class UpdateTask(OfTask, frozen=True, kw_only=True):
    """Says something new of a task."""

    status: TaskStatus | None = None
    """`running` begins an attempt if none runs; `failed`, `timed_out`, `lost` end the one that
    does."""
    reason: Reason | None = None
    """Must stand with `failed`, `lost` and `blocked`."""
    run_id: Id | None = None
    """Of the attempt that `running` begins."""
    objective: Reason | None = None
    detail: Json = None
    progress: Progress | None = None


class RetryTask(OfTask, frozen=True, kw_only=True):
    """Asks for another attempt at a task that failed."""

    run_id: Id | None = None
    """A call with a run that there is changes nothing. `None` makes one."""
    reason: Reason | None = None
    input: TurnInput | None = None
    """Begins a turn for the attempt."""
    turn_id: TurnId | None = None
    """What that turn is to be called."""


class CompleteTask(OfTask, frozen=True, kw_only=True):
    """Says that a task is done."""

    outputs: tuple[Json, ...] = ()
    artifacts: Ids = ()
    evidence_refs: Ids = ()
    delivery: Delivery | None = None


class CancelTask(OfTask, frozen=True, kw_only=True):
    """Asks a task to stop."""

    reason: Reason | None = None


class LinkTask(OfTask, frozen=True, kw_only=True):
    """Sets edges of the graph of tasks."""

    depends_on: Ids | None = None
    """All tasks that must be completed before; an empty list: none."""
    parent_task_id: Id | None = None


class ListTasks(OfSession, frozen=True, kw_only=True):
    """Asks for the tasks of a session."""

    status: str | None = None
    limit: Annotated[int, Meta(ge=1, le=300, description="1 to 300")] = 100


class TaskState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a task stands."""

    session_id: str
    sequence: int
    """Of the newest fact that it takes into account."""
    task: JsonObject
    """Its `TaskSnapshot` (ledger.md 4)."""
    repeated: bool = False
    """It was so before: the call changed nothing."""
    turn_id: str | None = None
    """The turn that a retry began."""


class TaskPage(Struct, frozen=True, rename="camel"):
    """The tasks of a session that a read model keeps."""

    session_id: str
    sequence: int
    tasks: list[JsonObject]
    counts: dict[str, int]
    """All tasks by status, also those that are not kept."""
    total: int
    older: int
    """How many ended so long ago that they are read with `task/get` alone."""
