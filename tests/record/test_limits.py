"""Limits and quotas join the turn that met them; money has a currency."""

from __future__ import annotations

import pytest

from arp.ledger.fact_types import ProfileViolation
from tests.record.rig import Notes


def test_limits_and_quotas_join_the_turn_that_met_them() -> None:
    """ledger.md 6."""
    notes = Notes()
    limits = notes.record.limits
    limits.rate_limited("requests per minute", 2.5, "acme")
    limits.quota_low("tokens", 100, 1_000, "tokens")
    limits.quota_blocked("tokens", 0, "2026-12-01T00:00:00Z")
    limits.changed("max_turns", 20, 10)
    facts = notes.facts()
    assert {(fact.thread_id, fact.turn_id) for fact in facts} == {("main", "t1")}
    assert [(fact.type, fact.payload) for fact in facts] == [
        (
            "rate_limit.hit",
            {"limit": "requests per minute", "retryAfterS": 2.5, "provider": "acme"},
        ),
        ("quota.low", {"quota": "tokens", "remaining": 100, "total": 1_000, "unit": "tokens"}),
        (
            "quota.blocked",
            {"quota": "tokens", "remaining": 0, "resetsAt": "2026-12-01T00:00:00Z"},
        ),
        ("limit.changed", {"limit": "max_turns", "value": 20, "previous": 10}),
    ]


def test_costs_are_estimated_and_recorded() -> None:
    notes = Notes()
    limits = notes.record.limits
    limits.cost_estimated(0.5, "EUR", model="m", input_tokens=10, output_tokens=20)
    limits.cost_recorded("m", input_tokens=10, output_tokens=20, amount=0.25, currency="EUR")
    assert [(name, payload) for name, payload, _ in notes.told()] == [
        (
            "cost.estimated",
            {
                "amount": 0.5,
                "currency": "EUR",
                "model": "m",
                "inputTokens": 10,
                "outputTokens": 20,
            },
        ),
        (
            "cost.recorded",
            {
                "model": "m",
                "inputTokens": 10,
                "outputTokens": 20,
                "amount": 0.25,
                "currency": "EUR",
            },
        ),
    ]


def test_an_amount_without_a_currency_is_refused() -> None:
    notes = Notes()
    with pytest.raises(ProfileViolation, match="amount and currency stand there both or not at"):
        notes.record.limits.cost_recorded("m", input_tokens=1, output_tokens=1, amount=1.0)
    with pytest.raises(ProfileViolation, match="three capital letters of ISO 4217"):
        notes.record.limits.cost_estimated(1.0, "euro")
    assert notes.facts() == []
