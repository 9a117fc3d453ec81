"""What may be used, what was used, and what it costs."""

from __future__ import annotations

from arp.protocol.json_value import Json
from arp.record.scope import FactScope


class Limits:
    """Costs, rate limits and quotas; each joins the turn that it met."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope) -> None:
        self._scope = scope

    def cost_estimated(
        self,
        amount: float,
        currency: str,
        *,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        """Notes what something will cost, as far as that is known before."""
        self._record(
            "cost.estimated",
            amount=amount,
            currency=currency,
            model=model,
            inputTokens=input_tokens,
            outputTokens=output_tokens,
        )

    def cost_recorded(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_input_tokens: int | None = None,
        amount: float | None = None,
        currency: str | None = None,
    ) -> None:
        """Notes what a model used up; `ModelRequest.cost` says it of one request.

        Args:
            model: Its name.
            input_tokens: What it read.
            output_tokens: What it wrote.
            cached_input_tokens: Of the input tokens, those that came from a cache.
            amount: Money; `None` where the price is not known.
            currency: ISO 4217; stands there exactly if there is an amount.

        Raises:
            ProfileViolation: An amount without a currency, or a currency without an amount.
        """
        self._record(
            "cost.recorded",
            model=model,
            inputTokens=input_tokens,
            outputTokens=output_tokens,
            cachedInputTokens=cached_input_tokens,
            amount=amount,
            currency=currency,
        )

    def rate_limited(
        self, limit: str, retry_after_s: float | None = None, provider: str | None = None
    ) -> None:
        """Notes that a limit was met, and in how many seconds to try again."""
        payload = {"limit": limit, "retryAfterS": retry_after_s, "provider": provider}
        self._record("rate_limit.hit", **payload)

    def quota_low(
        self, quota: str, remaining: float, total: int | None = None, unit: str | None = None
    ) -> None:
        """Notes that little is left."""
        self._record("quota.low", quota=quota, remaining=remaining, total=total, unit=unit)

    def quota_blocked(
        self, quota: str, remaining: float | None = None, resets_at: str | None = None
    ) -> None:
        """Notes that nothing is left for what was to be done; `resets_at` is RFC 3339."""
        self._record("quota.blocked", quota=quota, remaining=remaining, resetsAt=resets_at)

    def changed(self, limit: str, value: Json, previous: Json = None) -> None:
        """Notes that a limit is another one now."""
        self._record("limit.changed", limit=limit, value=value, previous=previous)

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, payload)
