"""Which model does the work, what it costs, and the limits and quotas that were met on the way.

A limit is joined to the turn that hit it by the turn's id in the fact. One candidate is a state of
its own, not an error.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from msgspec import Struct, to_builtins

from arp.ledger.fact import Fact
from arp.ledger.models.reading import LIST_ITEMS, added, brief, number, part, text, whole
from arp.ledger.models.window import Record, keep
from arp.protocol.json_value import Json, JsonObject

MOST_FALLBACKS: Final = 20
MOST_LIMITS: Final = 50
MOST_QUOTAS: Final = 20
MOST_MODELS: Final = 20
MOST_CURRENCIES: Final = 10
MOST_TURNS: Final = 50

_CENT_PARTS: Final = Decimal("0.000001")
"""Money is added to this fineness: a token costs less than a cent, and more than a millionth."""


class Choice(Record, rename="camel", omit_defaults=True, kw_only=True):
    """How the model of a turn was chosen."""

    kind: str
    """decided, single_candidate, fallback or not_possible."""
    model: str | None = None
    provider: str | None = None
    reason: str | None = None
    failed_model: str | None = None
    candidate_count: int | None = None
    thread_id: str | None = None
    turn_id: str | None = None


class Limit(Record, rename="camel", omit_defaults=True, kw_only=True):
    """A limit or quota that a turn met."""

    type: str
    name: str
    at: str
    remaining: int | float | None = None
    total: int | float | None = None
    unit: str | None = None
    retry_after_s: int | float | None = None
    resets_at: str | None = None
    provider: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None


class Quota(Struct, rename="camel", omit_defaults=True):
    """What is known of a quota now."""

    state: str
    """low, blocked or changed."""
    remaining: int | float | None = None
    total: int | float | None = None
    unit: str | None = None
    resets_at: str | None = None
    value: Json = None
    """Of `limit.changed`."""
    sequence: int = 0


class Cost(Struct, rename="camel", omit_defaults=True):
    """What was used, and what it cost by currency, to a millionth."""

    records: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    amounts: dict[str, str] = {}
    """Decimal numbers as text: money is not added in binary."""

    def add(self, payload: JsonObject) -> None:
        """Take what a `cost.*` fact says."""
        self.records += 1
        self.input_tokens = added(self.input_tokens, whole(payload, "inputTokens"))
        self.output_tokens = added(self.output_tokens, whole(payload, "outputTokens"))
        cached = whole(payload, "cachedInputTokens")
        self.cached_input_tokens = added(self.cached_input_tokens, cached)
        amount, currency = _amount(payload), text(payload, "currency") or "unknown"
        if amount is None:
            return
        if currency in self.amounts or len(self.amounts) < MOST_CURRENCIES:
            before = Decimal(self.amounts.get(currency, "0"))
            self.amounts[currency] = f"{before + amount:f}"

    def document(self) -> JsonObject:
        """Return what is told of it: amounts as numbers."""
        told: JsonObject = to_builtins(self)
        if self.amounts:
            told["amounts"] = {name: float(amount) for name, amount in self.amounts.items()}
        return told


def _amount(payload: JsonObject) -> Decimal | None:
    value = number(payload, "amount")
    return None if value is None else Decimal(str(value)).quantize(_CENT_PARTS).normalize()


class Routing(Struct, rename="camel", omit_defaults=True):
    """Routing, cost and limits of a session."""

    task_profile: Json = None
    profile_task_id: str | None = None
    candidates: list[Json] = []
    candidate_count: int | None = None
    selected: Choice | None = None
    """The newest choice that gave a model."""
    failed: Choice | None = None
    """The newest that gave none, until one gives a model again."""
    fallbacks: list[Choice] = []
    older_fallbacks: int = 0
    single_candidates: int = 0
    cost: Cost | None = None
    estimate: Cost | None = None
    by_model: dict[str, Cost] = {}
    by_turn: dict[str, Cost] = {}
    """Of the turns that used something last."""
    limits: list[Limit] = []
    older_limits: int = 0
    quotas: dict[str, Quota] = {}


# -- routing ---------------------------------------------------------------------------------------


def _profile(routing: Routing, fact: Fact) -> None:
    routing.task_profile = brief(part(fact.payload, "profile"))
    routing.profile_task_id = fact.task_id


def _candidates(routing: Routing, fact: Fact) -> None:
    found = fact.payload.get("candidates")
    if isinstance(found, list):
        routing.candidates = [brief(one) for one in found[:LIST_ITEMS]]
        routing.candidate_count = sum(1 for one in found if not _is_excluded(one))


def _is_excluded(candidate: Json) -> bool:
    return isinstance(candidate, dict) and bool(candidate.get("excluded"))


def _chosen(routing: Routing, fact: Fact) -> None:
    kind = fact.type.removeprefix("routing.").removesuffix(".applied")
    if kind == "single_candidate":
        routing.candidate_count = 1
        routing.single_candidates += 1
    choice = _choice(routing, fact, kind)
    routing.selected, routing.failed = choice, None
    if kind == "fallback":
        routing.older_fallbacks += keep(routing.fallbacks, choice, MOST_FALLBACKS)


def _not_possible(routing: Routing, fact: Fact) -> None:
    _candidates(routing, fact)
    routing.failed = _choice(routing, fact, "not_possible")


def _choice(routing: Routing, fact: Fact, kind: str) -> Choice:
    payload = fact.payload
    return Choice(
        kind=kind,
        model=text(payload, "model"),
        provider=text(payload, "provider"),
        reason=text(payload, "reason"),
        failed_model=text(payload, "failedModel"),
        candidate_count=routing.candidate_count,
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )


# -- cost ------------------------------------------------------------------------------------------


def _recorded(routing: Routing, fact: Fact) -> None:
    payload = fact.payload
    routing.cost = routing.cost or Cost()
    routing.cost.add(payload)
    model = text(payload, "model") or "unknown"
    if model in routing.by_model or len(routing.by_model) < MOST_MODELS:
        routing.by_model.setdefault(model, Cost()).add(payload)
    turn_id = fact.turn_id or "unknown"
    routing.by_turn.setdefault(turn_id, Cost()).add(payload)
    if len(routing.by_turn) > MOST_TURNS:
        del routing.by_turn[next(iter(routing.by_turn))]


def _estimated(routing: Routing, fact: Fact) -> None:
    routing.estimate = routing.estimate or Cost()
    routing.estimate.add(fact.payload)


# -- limits ----------------------------------------------------------------------------------------


def _limit(routing: Routing, fact: Fact) -> None:
    payload = fact.payload
    limit = Limit(
        type=fact.type,
        name=text(payload, "quota", "limit") or "unknown",
        at=fact.timestamp,
        remaining=number(payload, "remaining"),
        total=number(payload, "total"),
        unit=text(payload, "unit"),
        retry_after_s=number(payload, "retryAfterS"),
        resets_at=text(payload, "resetsAt"),
        provider=text(payload, "provider"),
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        task_id=fact.task_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    routing.older_limits += keep(routing.limits, limit, MOST_LIMITS)
    if fact.type.startswith("quota."):
        state = fact.type.removeprefix("quota.")
        quota = Quota(state, limit.remaining, limit.total, limit.unit, limit.resets_at)
        _set_quota(routing, limit.name, quota, fact.sequence)


def _changed(routing: Routing, fact: Fact) -> None:
    name = text(fact.payload, "limit") or "unknown"
    quota = Quota("changed", value=brief(fact.payload.get("value")))
    _set_quota(routing, name, quota, fact.sequence)


def _set_quota(routing: Routing, name: str, quota: Quota, sequence: int) -> None:
    quota.sequence = sequence
    if name in routing.quotas or len(routing.quotas) < MOST_QUOTAS:
        routing.quotas[name] = quota


RULES: Final[dict[str, Callable[[Routing, Fact], None]]] = {
    "task.profile.resolved": _profile,
    "routing.candidates.resolved": _candidates,
    "routing.decided": _chosen,
    "routing.single_candidate": _chosen,
    "routing.fallback.applied": _chosen,
    "routing.not_possible": _not_possible,
    "cost.recorded": _recorded,
    "cost.estimated": _estimated,
    "rate_limit.hit": _limit,
    "quota.low": _limit,
    "quota.blocked": _limit,
    "limit.changed": _changed,
}
"""Type of a fact → what it changes here."""
