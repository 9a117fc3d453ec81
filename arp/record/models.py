"""Requests to models, which model is taken, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from arp.ledger.payload_fields import Candidate
from arp.protocol.json_value import Json, JsonObject
from arp.record.limits import Limits
from arp.record.scope import FactScope


class ModelRequest:
    """One request to a model; given by `turn.record.model(name)`."""

    __slots__ = ("_model", "_scope", "id")

    def __init__(self, scope: FactScope, model: str, provider: str | None) -> None:
        self.id = scope.new_id("model")
        self._model = model
        self._scope = scope.within(model_request_id=self.id)
        self._record("model.requested", provider=provider)

    def completed(self, usage: JsonObject | None = None, finish_reason: str | None = None) -> None:
        """Notes that the model is done; `usage` in its own words."""
        self._record("model.completed", usage=usage, finishReason=finish_reason)

    def failed(self, error: str, *, retryable: bool | None = None) -> None:
        """Notes that it gave nothing, or not all; `error` is for people."""
        self._record("model.failed", error=error, retryable=retryable)

    def cost(
        self,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_input_tokens: int | None = None,
        amount: float | None = None,
        currency: str | None = None,
    ) -> None:
        """Notes what the request used up; see `Limits.cost_recorded`."""
        Limits(self._scope).cost_recorded(
            self._model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_input_tokens=cached_input_tokens,
            amount=amount,
            currency=currency,
        )

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, {"model": self._model, **payload})


class Routing:
    """Which model a turn takes."""

    __slots__ = ("_scope",)

    def __init__(self, scope: FactScope) -> None:
        self._scope = scope

    def resolved(self, candidates: Sequence[str | Candidate], reason: str = "") -> Candidate | None:
        """Notes the candidates, and what follows where there is nothing to decide.

        None that can be taken is `routing.not_possible`, exactly one `routing.single_candidate`,
        which is no error.

        Args:
            candidates: All that were looked at, by name; a `Candidate` with `excluded` cannot be
                taken.
            reason: Why none can be taken, if none can.

        Returns:
            The only one that can be taken, if that is so.
        """
        told = [Candidate(one) if isinstance(one, str) else one for one in candidates]
        self._scope.record("routing.candidates.resolved", {"candidates": told})
        free = [one for one in told if one.excluded is None]
        if not free:
            why = reason or "no candidate can be taken"
            self._scope.record("routing.not_possible", {"reason": why, "candidates": told})
        if len(free) != 1:
            return None
        only = free[0]
        payload = {"model": only.model, "provider": only.provider}
        self._scope.record("routing.single_candidate", payload)
        return only

    def decided(self, model: str, reason: str, provider: str | None = None) -> None:
        """Notes which of several models is taken, and why."""
        payload = {"model": model, "provider": provider, "reason": reason}
        self._scope.record("routing.decided", payload)

    def fell_back(self, failed_model: str, model: str, reason: str) -> None:
        """Notes that another model takes the place of one that could not be used."""
        payload = {"failedModel": failed_model, "model": model, "reason": reason}
        self._scope.record("routing.fallback.applied", payload)
