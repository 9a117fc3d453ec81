"""Facts of tasks and of their runs."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    ATTEMPT,
    DETAIL,
    DONE,
    INPUT_ID,
    MESSAGE,
    OBJECTIVE,
    OUTPUTS,
    REASON,
    RETRYABLE,
    TO,
    TOTAL,
    Amount,
    Delivery,
    Name,
    Need,
    Ordinal,
    PayloadField,
    Share,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule
from arp.protocol.json_value import JsonObject

ARTIFACTS: Final = PayloadField("artifacts", list[Name], "Ids of artifacts.")
BLOCKED_BY: Final = PayloadField("blockedBy", list[Name], "Ids of the things that block the task.")
DELIVERY: Final = PayloadField("delivery", Delivery, "Whether the result reached its recipient.")
DEPENDS_ON: Final = PayloadField(
    "dependsOn", list[Name], "Ids of the tasks that must be completed before this one."
)
EVIDENCE_REFS: Final = PayloadField("evidenceRefs", list[Name], "Ids of evidence.")
FRACTION: Final = PayloadField("fraction", Share, "Progress from 0 to 1.")
POSITION: Final = PayloadField("position", Ordinal, "Position in the queue, from 1.")
PROFILE: Final = PayloadField("profile", JsonObject, "What a task requires of a model.")
TIMEOUT_S: Final = PayloadField("timeoutS", Amount, "Timeout in seconds.")
WAITING_FOR: Final = PayloadField("waitingFor", Need, "What a task is waiting for.")


TASK_FACTS: Final = FactFamily(
    "task",
    "A task, which may outlive a turn, from its creation to its end, with its attempts.",
    required_ids=["task_id"],
    types=[
        FactType(
            "task.created", OBJECTIVE, *optional(DEPENDS_ON, DETAIL), effects=[CustomRule("tasks")]
        ),
        FactType("task.accepted", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.queued", *optional(POSITION, REASON), effects=[CustomRule("tasks")]),
        FactType("task.started", effects=[CustomRule("tasks")]),
        FactType("task.updated", *optional(OBJECTIVE, DETAIL), effects=[CustomRule("tasks")]),
        FactType(
            "task.progress",
            *optional(FRACTION, DONE, TOTAL, MESSAGE),
            effects=[CustomRule("tasks")],
        ),
        FactType("task.waiting", WAITING_FOR, REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.blocked", REASON, BLOCKED_BY.optional(), effects=[CustomRule("tasks")]),
        FactType("task.paused", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.resumed", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType(
            "task.retrying",
            ATTEMPT,
            REASON.optional(),
            effects=[CustomRule("tasks"), AddRecord("diagnostics")],
        ),
        FactType("task.cancel_requested", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.cancelled", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType(
            "task.timed_out",
            *optional(TIMEOUT_S, REASON),
            effects=[CustomRule("tasks"), AddRecord("incidents")],
        ),
        FactType("task.failed", REASON, effects=[CustomRule("tasks"), AddRecord("incidents")]),
        FactType("task.lost", REASON, effects=[CustomRule("tasks"), AddRecord("incidents")]),
        FactType(
            "task.completed",
            *optional(OUTPUTS, ARTIFACTS, EVIDENCE_REFS, DELIVERY),
            effects=[CustomRule("tasks")],
        ),
        FactType("task.archived", REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.delegated", TO, REASON.optional(), effects=[CustomRule("tasks")]),
        FactType("task.dependency.updated", DEPENDS_ON, effects=[CustomRule("tasks")]),
        FactType(
            "task.attempt.started", ATTEMPT, required_ids=["run_id"], effects=[CustomRule("tasks")]
        ),
        FactType(
            "task.attempt.completed",
            ATTEMPT,
            OUTPUTS.optional(),
            required_ids=["run_id"],
            effects=[CustomRule("tasks")],
        ),
        FactType(
            "task.attempt.failed",
            ATTEMPT,
            REASON,
            RETRYABLE.optional(),
            required_ids=["run_id"],
            effects=[CustomRule("tasks"), AddRecord("incidents")],
        ),
        FactType(
            "task.profile.resolved", PROFILE, effects=[CustomRule("tasks"), CustomRule("routing")]
        ),
    ],
)

RUN_FACTS: Final = FactFamily(
    "run",
    (
        "The status of a turn or of an attempt at a task changes; also a request to cancel, "
        "promote or resume."
    ),
    types=[
        FactType(
            "run.status",
            *optional(INPUT_ID, REASON),
            written_ids=["status"],
            effects=[CustomRule("threads"), CustomRule("tasks")],
        ),
    ],
)

FAMILIES: Final = (TASK_FACTS, RUN_FACTS)
