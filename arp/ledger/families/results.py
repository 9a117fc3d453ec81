"""Facts of artifacts, exports, stored read models and runtime errors."""

from __future__ import annotations

from typing import Final, Literal

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    BYTES,
    DETAIL,
    ERROR,
    INPUT_ID,
    MESSAGE,
    MIME,
    NAME,
    REASON,
    RETRYABLE,
    SHA256,
    STATE,
    SURFACE,
    THROUGH_SEQUENCE,
    ExportKind,
    Name,
    PayloadField,
    Verification,
    optional,
)
from arp.ledger.record_steps import (
    AddRecord,
    AddTo,
    ChangeRecord,
    Copy,
    CopyFactField,
    CustomRule,
    SetTime,
    copies,
    fact_fields,
)
from arp.protocol.json_value import JsonObject

ANEW: Final = PayloadField(
    "anew", bool, "True if a new component reuses the id of a component in an evicted turn."
)
CHANGES: Final = PayloadField(
    "changes", list[JsonObject], "Changes of a surface, each a `render` or a `patch`."
)
CLOSED: Final = PayloadField(
    "closed",
    Literal["user", "agent", "timeout", "parent", "transferred"],
    "Why the surface was closed.",
)
CODE: Final = PayloadField("code", int, "Error code of the protocol.")
FROM_SESSION: Final = PayloadField(
    "fromSession", Name, "The session that gave the surface away, maybe on another server."
)
GAPS: Final = PayloadField("gaps", list[str], "Known gaps of an export.")
INFO: Final = PayloadField(
    "info",
    JsonObject,
    "A surface: `role`, `title`, `parent`, `component`, `row`, `anchor`, `fullscreen` …",
)
KIND: Final = PayloadField("kind", ExportKind, "Kind of an export.")
LEAVING: Final = PayloadField(
    "leaving",
    JsonObject,
    "The request to transfer the surface (`to_session`, …); empty if the surface stays.",
)
READ_MODEL: Final = PayloadField("readModel", Name, "Name of a read model.")
ROLE: Final = PayloadField(
    "role",
    Literal["popup", "overlay"],
    "Role of a surface that is not a toplevel: renderers without overlays need a snapshot.",
)
VERIFICATION: Final = PayloadField("verification", Verification, "Result of a check.")


ARTIFACT_FACTS: Final = FactFamily(
    "artifact",
    "A commit changes a surface, or an agent changes a file.",
    types=[
        FactType(
            "artifact.changed",
            *optional(
                SURFACE,
                CHANGES,
                INFO,
                ROLE,
                CLOSED,
                LEAVING,
                INPUT_ID,
                FROM_SESSION,
                ANEW,
                NAME,
                MIME,
                BYTES,
                SHA256,
            ),
            written_ids=["artifact_id"],
            effects=[
                CustomRule("tasks"),
                ChangeRecord(
                    "artifacts",
                    *fact_fields("thread_id", "turn_id"),
                    *copies(NAME, MIME, SHA256, keep_old="if_empty"),
                    AddTo("changes"),
                    Copy(BYTES, keep_old="if_empty"),
                    *fact_fields("output_ref", "task_id", keep_old="if_empty"),
                ),
            ],
        ),
    ],
)

EVIDENCE_FACTS: Final = FactFamily(
    "evidence",
    "An export (evidence, replay, review or benchmark), and its result.",
    required_ids=["evidence_id"],
    types=[
        FactType(
            "evidence.changed",
            KIND,
            STATE,
            *optional(REASON, SHA256, THROUGH_SEQUENCE, GAPS, VERIFICATION),
            effects=[
                CustomRule("tasks"),
                ChangeRecord(
                    "exports",
                    *fact_fields("thread_id", "turn_id", "task_id", "run_id"),
                    SetTime("at"),
                    *copies(KIND, STATE, keep_old="if_empty"),
                    Copy(REASON),
                    *copies(SHA256, THROUGH_SEQUENCE, GAPS, keep_old="if_empty"),
                    Copy(VERIFICATION, read="object", keep_old="if_empty"),
                    CopyFactField("refs", keep_old="if_absent"),
                ),
                CustomRule("benchmarks"),
            ],
        ),
    ],
)

SNAPSHOT_FACTS: Final = FactFamily(
    "snapshot",
    "A read model is stored, or an unusable one is rebuilt.",
    types=[
        FactType(
            "snapshot.updated",
            READ_MODEL,
            THROUGH_SEQUENCE,
            BYTES.optional(),
            effects=[CustomRule("history")],
        ),
        FactType(
            "snapshot.repaired",
            READ_MODEL,
            THROUGH_SEQUENCE,
            REASON,
            effects=[AddRecord("diagnostics"), CustomRule("history")],
        ),
    ],
)

RUNTIME_FACTS: Final = FactFamily(
    "runtime",
    "A warning or an error of the runtime.",
    types=[
        FactType("runtime.warning", MESSAGE, DETAIL.optional(), effects=[AddRecord("diagnostics")]),
        FactType(
            "runtime.error",
            ERROR,
            CODE,
            RETRYABLE,
            DETAIL.optional(),
            effects=[CustomRule("threads"), AddRecord("incidents")],
        ),
    ],
)

FAMILIES: Final = (ARTIFACT_FACTS, EVIDENCE_FACTS, SNAPSHOT_FACTS, RUNTIME_FACTS)
