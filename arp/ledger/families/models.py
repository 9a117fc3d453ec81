"""Facts of model requests and of reasoning."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    ERROR,
    MODEL,
    PROVIDER,
    RETRYABLE,
    TEXT,
    TOOLS,
    USAGE,
    Ordinal,
    PayloadField,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule
from arp.protocol.json_value import Json, JsonObject

FINISH_REASON: Final = PayloadField(
    "finishReason", str, "Why a model stopped, in the provider's words."
)
MESSAGES: Final = PayloadField(
    "messages", list[Json], "Messages that a model receives, oldest first, in the runtime's format."
)
MESSAGES_LEFT_OUT: Final = PayloadField(
    "messagesLeftOut", Ordinal, "Older messages that were too large to record."
)
PARAMETERS: Final = PayloadField(
    "parameters", JsonObject, "Parameters of a request to a model, in the runtime's format."
)


MODEL_FACTS: Final = FactFamily(
    "model",
    (
        "A request to a model, and the text that it returns. The text of every agent is "
        "`model.delta`."
    ),
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "model.requested",
            MODEL,
            *optional(PROVIDER, PARAMETERS, TOOLS, MESSAGES, MESSAGES_LEFT_OUT),
            written_ids=["model_request_id"],
            effects=[CustomRule("threads")],
        ),
        FactType("model.delta", TEXT, effects=[CustomRule("threads")]),
        FactType(
            "model.completed",
            MODEL,
            *optional(USAGE, FINISH_REASON),
            written_ids=["model_request_id"],
            effects=[CustomRule("threads")],
        ),
        FactType(
            "model.failed",
            MODEL,
            ERROR,
            RETRYABLE.optional(),
            written_ids=["model_request_id"],
            effects=[AddRecord("incidents")],
        ),
    ],
)

REASONING_FACTS: Final = FactFamily(
    "reasoning",
    "Reasoning of a model, and summaries of it.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType("reasoning.delta", TEXT, effects=[CustomRule("threads")]),
        FactType("reasoning.summary", TEXT),
    ],
)

FAMILIES: Final = (MODEL_FACTS, REASONING_FACTS)
