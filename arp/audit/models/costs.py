"""Usage and cost of a session: in total, by model and by turn."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from msgspec import Struct, to_builtins

from arp.audit.models.reading import added, number, text, whole
from arp.audit.models.records import Rule
from arp.ledger.fact import Fact
from arp.protocol.json_value import JsonObject

MOST_MODELS: Final = 20
"""Number of models with costs of their own."""

MOST_CURRENCIES: Final = 10
"""Number of currencies of one cost."""

MOST_TURNS: Final = 50
"""Number of recent turns with costs of their own."""

_PRECISION: Final = Decimal("0.000001")
"""Precision of amounts: a millionth of the currency unit. A request may cost less than a cent."""


class Cost(Struct, rename="camel", omit_defaults=True):
    """Usage, and its cost by currency to a millionth."""

    records: int = 0
    """Number of `cost.*` facts."""
    input_tokens: int | None = None
    """Input tokens. Here and below, `None` means that no fact has reported them."""
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    amounts: dict[str, str] = {}
    """Amounts by currency, as decimal text. Binary numbers would add rounding errors."""

    def add(self, payload: JsonObject) -> None:
        """Add the payload of a `cost.*` fact."""
        self.records += 1
        self.input_tokens = _added(self.input_tokens, whole(payload, "inputTokens"))
        self.output_tokens = _added(self.output_tokens, whole(payload, "outputTokens"))
        cached = whole(payload, "cachedInputTokens")
        self.cached_input_tokens = _added(self.cached_input_tokens, cached)
        amount, currency = _amount(payload), text(payload, "currency") or "unknown"
        if amount is None:
            return
        if currency in self.amounts or len(self.amounts) < MOST_CURRENCIES:
            before = Decimal(self.amounts.get(currency, "0"))
            self.amounts[currency] = f"{before + amount:f}"

    def document(self) -> JsonObject:
        """Return the cost as a JSON object with numbers as amounts."""
        document: JsonObject = to_builtins(self)
        if self.amounts:
            document["amounts"] = {name: float(amount) for name, amount in self.amounts.items()}
        return document


def _added(before: int | None, more: int | None) -> int | None:
    return before if more is None else added(before or 0, more)


def _amount(payload: JsonObject) -> Decimal | None:
    value = number(payload, "amount")
    return None if value is None else Decimal(str(value)).quantize(_PRECISION).normalize()


class Costs(Struct, rename="camel", omit_defaults=True):
    """Costs of a session."""

    recorded: Cost | None = None
    estimated: Cost | None = None
    by_model: dict[str, Cost] = {}
    by_turn: dict[str, Cost] = {}
    """Costs by turn, of the newest `MOST_TURNS` turns with costs."""


def _recorded(costs: Costs, fact: Fact) -> None:
    payload = fact.payload
    costs.recorded = costs.recorded or Cost()
    costs.recorded.add(payload)
    model = text(payload, "model") or "unknown"
    if model in costs.by_model or len(costs.by_model) < MOST_MODELS:
        costs.by_model.setdefault(model, Cost()).add(payload)
    costs.by_turn.setdefault(fact.turn_id or "unknown", Cost()).add(payload)
    if len(costs.by_turn) > MOST_TURNS:
        del costs.by_turn[next(iter(costs.by_turn))]


def _estimated(costs: Costs, fact: Fact) -> None:
    costs.estimated = costs.estimated or Cost()
    costs.estimated.add(fact.payload)


RULES: Final[dict[str, Rule]] = {"cost.recorded": _recorded, "cost.estimated": _estimated}
"""Fact type → rule that changes `Costs`."""
