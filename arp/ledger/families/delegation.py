"""Facts of subagents, jobs and channels."""

from __future__ import annotations

from typing import Final, Literal

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    ATTEMPT,
    DECISION,
    DONE,
    MESSAGE,
    NAME,
    OBJECTIVE,
    OUTPUTS,
    REASON,
    RETRYABLE,
    TEXT,
    TO,
    TOOL,
    TOTAL,
    Count,
    PayloadField,
    Resolution,
    optional,
)
from arp.ledger.record_steps import (
    AddRecord,
    AddTo,
    ChangeRecord,
    Clear,
    Copy,
    CopyFactField,
    CustomRule,
    End,
    Reopen,
    copies,
)

DIRECTION: Final = PayloadField(
    "direction", Literal["in", "out"], "Direction of a message, seen from the session."
)
ENCODING: Final = PayloadField("encoding", str, "Encoding of a renderer's messages.")
FAILED: Final = PayloadField("failed", Count, "Number of items that failed.")
FEATURES: Final = PayloadField("features", list[str], "Features of a renderer.")

# `closed` after `completed` or `failed` must not replace that outcome.
_SUBAGENT_ENDED: Final = ChangeRecord("subagents", if_open=[End(), *copies(REASON, OUTPUTS)])

_JOB_STATE: Final = (
    *copies(NAME, MESSAGE, REASON, keep_old="if_empty"),
    *copies(DONE, TOTAL, FAILED, keep_old="if_absent"),
)

_CHANNEL_MESSAGE: Final = ChangeRecord("channels", AddTo("messages"))

SUBAGENT_FACTS: Final = FactFamily(
    "subagent",
    "An agent that works for this one.",
    required_ids=["subagent_id"],
    types=[
        FactType(
            "subagent.spawned",
            *optional(NAME, OBJECTIVE),
            effects=[ChangeRecord("subagents", *copies(NAME, OBJECTIVE))],
        ),
        FactType(
            "subagent.status",
            MESSAGE.optional(),
            written_ids=["status"],
            effects=[
                ChangeRecord(
                    "subagents",
                    Copy(MESSAGE, keep_old="if_empty"),
                    if_open=[CopyFactField("status", keep_old="if_empty")],
                )
            ],
        ),
        FactType("subagent.input", TEXT, effects=[ChangeRecord("subagents", AddTo("inputs"))]),
        FactType("subagent.completed", OUTPUTS.optional(), effects=[_SUBAGENT_ENDED]),
        FactType("subagent.failed", REASON, effects=[_SUBAGENT_ENDED, AddRecord("incidents")]),
        FactType("subagent.closed", REASON.optional(), effects=[_SUBAGENT_ENDED]),
    ],
)

JOB_FACTS: Final = FactFamily(
    "job",
    "Work in the background, item by item.",
    types=[
        FactType(
            "job.created",
            *optional(NAME, TOTAL),
            written_ids=["job_id"],
            effects=[ChangeRecord("jobs", *_JOB_STATE)],
        ),
        FactType(
            "job.started", written_ids=["job_id"], effects=[ChangeRecord("jobs", Reopen("running"))]
        ),
        FactType(
            "job.progress",
            DONE,
            *optional(TOTAL, MESSAGE),
            written_ids=["job_id"],
            effects=[ChangeRecord("jobs", *_JOB_STATE)],
        ),
        FactType(
            "job.item.started",
            ATTEMPT,
            written_ids=["job_id", "job_item_id"],
            effects=[CustomRule("delegation")],
        ),
        FactType(
            "job.item.completed",
            ATTEMPT,
            OUTPUTS.optional(),
            written_ids=["job_id", "job_item_id"],
            effects=[CustomRule("delegation")],
        ),
        FactType(
            "job.item.failed",
            ATTEMPT,
            REASON,
            RETRYABLE.optional(),
            written_ids=["job_id", "job_item_id"],
            effects=[CustomRule("delegation"), AddRecord("incidents")],
        ),
        FactType(
            "job.completed",
            DONE,
            FAILED.optional(),
            written_ids=["job_id"],
            effects=[ChangeRecord("jobs", End(), *_JOB_STATE)],
        ),
        FactType(
            "job.failed",
            REASON,
            written_ids=["job_id"],
            effects=[ChangeRecord("jobs", End(), *_JOB_STATE), AddRecord("incidents")],
        ),
        FactType(
            "job.cancelled",
            REASON.optional(),
            written_ids=["job_id"],
            effects=[ChangeRecord("jobs", End(), *_JOB_STATE)],
        ),
    ],
)

CHANNEL_FACTS: Final = FactFamily(
    "channel",
    "A renderer connects or disconnects; messages and permissions on other channels.",
    types=[
        FactType(
            "channel.connected",
            FEATURES,
            ENCODING,
            written_ids=["channel_id"],
            effects=[
                ChangeRecord("channels", Reopen("connected"), Copy(ENCODING), Clear("reason"))
            ],
        ),
        FactType(
            "channel.disconnected",
            REASON.optional(),
            written_ids=["channel_id"],
            effects=[ChangeRecord("channels", End("disconnected"), Copy(REASON))],
        ),
        FactType(
            "channel.resumed",
            FEATURES,
            ENCODING,
            written_ids=["channel_id"],
            effects=[
                ChangeRecord("channels", Reopen("connected"), Copy(ENCODING), Clear("reason"))
            ],
        ),
        FactType(
            "channel.message",
            DIRECTION,
            TEXT.optional(),
            written_ids=["channel_id"],
            effects=[_CHANNEL_MESSAGE],
        ),
        FactType(
            "channel.permission_forwarded",
            TOOL,
            TO,
            written_ids=["channel_id", "request_id"],
            effects=[CustomRule("requests"), _CHANNEL_MESSAGE],
        ),
        FactType(
            "channel.permission_returned",
            TOOL,
            DECISION.typed(Resolution),
            written_ids=["channel_id", "request_id"],
            effects=[_CHANNEL_MESSAGE],
        ),
    ],
)

FAMILIES: Final = (SUBAGENT_FACTS, JOB_FACTS, CHANNEL_FACTS)
