"""Facts of the context of a model and of the history of a session."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    REASON,
    THROUGH_SEQUENCE,
    Count,
    Name,
    Ordinal,
    PayloadField,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule
from arp.protocol.json_value import Json

FROM_SEQUENCE: Final = PayloadField(
    "fromSequence", Ordinal, "Sequence of the first fact of a range."
)
MAX_TOKENS: Final = PayloadField("maxTokens", Ordinal, "Maximum size of a model's context.")
REMOVED_TURNS: Final = PayloadField(
    "removedTurns", list[Name], "Ids of the turns that are not shown any more."
)
RESTORED_TURNS: Final = PayloadField(
    "restoredTurns", list[Name], "Ids of the turns that are shown again."
)
SOURCE: Final = PayloadField("source", str, "Origin of reconstructed data.")
SOURCES: Final = PayloadField("sources", list[Json], "Parts of a model's context.")
SUMMARY: Final = PayloadField("summary", str, "Text that replaces the removed part of a context.")
TO_SEQUENCE: Final = PayloadField(
    "toSequence", Count, "Sequence of the newest fact that is still in effect."
)
TOKENS: Final = PayloadField("tokens", Count, "Size of a context.")
TOKENS_AFTER: Final = PayloadField("tokensAfter", Count, "Size of a context after a compaction.")
TOKENS_BEFORE: Final = PayloadField("tokensBefore", Count, "Size of a context before a compaction.")


CONTEXT_FACTS: Final = FactFamily(
    "context",
    "What a model gets as its context, and compactions of the context.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "context.resolved",
            *optional(TOKENS, MAX_TOKENS, SOURCES),
            effects=[CustomRule("history")],
        ),
        FactType(
            "context.compaction.started",
            *optional(REASON, TOKENS_BEFORE),
            written_ids=["request_id"],
            effects=[CustomRule("history")],
        ),
        FactType(
            "context.compaction.completed",
            *optional(TOKENS_BEFORE, TOKENS_AFTER, THROUGH_SEQUENCE, SUMMARY),
            written_ids=["request_id"],
            effects=[CustomRule("history")],
        ),
        FactType(
            "context.compaction.failed",
            REASON,
            written_ids=["request_id"],
            effects=[AddRecord("incidents"), CustomRule("history")],
        ),
    ],
)

HISTORY_FACTS: Final = FactFamily(
    "history",
    "A part of the log is loaded or repaired, or the session shows another version of a turn.",
    types=[
        FactType(
            "history.window.loaded",
            FROM_SEQUENCE,
            THROUGH_SEQUENCE,
            REASON.optional(),
            effects=[CustomRule("history")],
        ),
        FactType(
            "history.reconstructed",
            THROUGH_SEQUENCE,
            SOURCE,
            effects=[AddRecord("diagnostics"), CustomRule("history")],
        ),
        FactType(
            "history.rollback.started",
            TO_SEQUENCE,
            REASON.optional(),
            written_ids=["request_id"],
            effects=[CustomRule("history")],
        ),
        FactType(
            "history.rollback.completed",
            TO_SEQUENCE,
            REMOVED_TURNS,
            RESTORED_TURNS.optional(),
            written_ids=["request_id"],
            effects=[CustomRule("threads"), AddRecord("diagnostics"), CustomRule("history")],
        ),
    ],
)

FAMILIES: Final = (CONTEXT_FACTS, HISTORY_FACTS)
