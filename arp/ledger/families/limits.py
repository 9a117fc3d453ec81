"""Facts of routing, costs and limits."""

from __future__ import annotations

from typing import Final

from arp.ledger.fact_family import BothOrNeither, FactFamily, FactType
from arp.ledger.payload_fields import (
    MODEL,
    PREVIOUS,
    PROVIDER,
    REASON,
    TOTAL,
    VALUE,
    Amount,
    Candidate,
    Count,
    Currency,
    Name,
    PayloadField,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule

AMOUNT: Final = PayloadField("amount", Amount, "Amount of money, in `currency`.")
CACHED_INPUT_TOKENS: Final = PayloadField(
    "cachedInputTokens", Count, "Input tokens that were read from a cache."
)
CANDIDATES: Final = PayloadField(
    "candidates",
    list[Candidate],
    "Models that were considered; `excluded` is the reason why one cannot be used.",
)
CURRENCY: Final = PayloadField("currency", Currency, "Three capital letters of ISO 4217.")
FAILED_MODEL: Final = PayloadField("failedModel", Name, "The model that could not be used.")
INPUT_TOKENS: Final = PayloadField("inputTokens", Count, "Tokens that a model read.")
LIMIT: Final = PayloadField("limit", Name, "Name of a limit.")
OUTPUT_TOKENS: Final = PayloadField("outputTokens", Count, "Tokens that a model wrote.")
QUOTA: Final = PayloadField("quota", Name, "Name of a quota.")
REMAINING: Final = PayloadField("remaining", float, "Part of a quota that is left, in `unit`.")
RESETS_AT: Final = PayloadField("resetsAt", str, "When a limit or quota is reset (RFC 3339).")
RETRY_AFTER_S: Final = PayloadField(
    "retryAfterS", Amount, "Seconds to wait before the next attempt."
)
UNIT: Final = PayloadField("unit", str, "Unit of a quota.")


ROUTING_FACTS: Final = FactFamily(
    "routing",
    "Which model is used, and why.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType("routing.candidates.resolved", CANDIDATES, effects=[CustomRule("routing")]),
        FactType(
            "routing.decided", MODEL, PROVIDER.optional(), REASON, effects=[CustomRule("routing")]
        ),
        FactType(
            "routing.fallback.applied",
            FAILED_MODEL,
            MODEL,
            REASON,
            effects=[CustomRule("routing"), AddRecord("diagnostics")],
        ),
        FactType(
            "routing.not_possible",
            REASON,
            CANDIDATES.optional(),
            effects=[CustomRule("routing"), AddRecord("incidents")],
        ),
        FactType(
            "routing.single_candidate", MODEL, PROVIDER.optional(), effects=[CustomRule("routing")]
        ),
    ],
)

COST_FACTS: Final = FactFamily(
    "cost",
    "The cost of a request to a model, estimated before or recorded after it.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "cost.estimated",
            AMOUNT,
            CURRENCY,
            *optional(MODEL, INPUT_TOKENS, OUTPUT_TOKENS),
            effects=[CustomRule("costs")],
        ),
        FactType(
            "cost.recorded",
            MODEL,
            *optional(INPUT_TOKENS, OUTPUT_TOKENS, CACHED_INPUT_TOKENS, AMOUNT, CURRENCY),
            relation=BothOrNeither(AMOUNT, CURRENCY),
            effects=[CustomRule("costs")],
        ),
    ],
)

RATE_LIMIT_FACTS: Final = FactFamily(
    "rate_limit",
    "A rate limit refuses a request.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "rate_limit.hit",
            LIMIT,
            *optional(RETRY_AFTER_S, RESETS_AT, PROVIDER),
            effects=[AddRecord("limits"), AddRecord("incidents")],
        ),
    ],
)

QUOTA_FACTS: Final = FactFamily(
    "quota",
    "A quota is almost or fully used.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "quota.low",
            QUOTA,
            REMAINING,
            *optional(TOTAL, UNIT, RESETS_AT),
            effects=[CustomRule("routing"), AddRecord("diagnostics")],
        ),
        FactType(
            "quota.blocked",
            QUOTA,
            REMAINING,
            *optional(TOTAL, UNIT, RESETS_AT),
            effects=[CustomRule("threads"), CustomRule("routing"), AddRecord("incidents")],
        ),
    ],
)

LIMIT_FACTS: Final = FactFamily(
    "limit",
    "A limit has a new value.",
    types=[
        FactType(
            "limit.changed",
            LIMIT,
            VALUE,
            PREVIOUS.optional(),
            effects=[CustomRule("threads"), CustomRule("routing")],
        ),
    ],
)

FAMILIES: Final = (ROUTING_FACTS, COST_FACTS, RATE_LIMIT_FACTS, QUOTA_FACTS, LIMIT_FACTS)
