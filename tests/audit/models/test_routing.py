"""Which model, at what cost, and which limits were met in which turn."""

from __future__ import annotations

from typing import Any

from arp.audit.models import entities
from arp.audit.models.costs import MOST_CURRENCIES, MOST_MODELS, MOST_TURNS
from tests.audit.models.story import IN_TURN, Story

MOST_FALLBACKS = entities.CHOICES.most[1]
MOST_LIMITS = entities.LIMITS.most[1]
MOST_QUOTAS = entities.MOST_QUOTAS


def summary(story: Story) -> dict[str, Any]:
    found: dict[str, Any] = story.snapshot["routingLimitSummary"]
    return found


def test_a_session_without_routing_says_that_it_does_not_apply() -> None:
    assert summary(Story()) == {"status": "not_applicable"}


def test_one_candidate_is_a_choice_and_not_an_error() -> None:
    """ledger.md 6: one model candidate is `routing.single_candidate`, not an error."""
    story = Story()
    story.start()
    story.in_turn("routing.candidates.resolved", candidates=[{"model": "small"}])
    story.in_turn("routing.single_candidate", model="small", provider="house")
    told = summary(story)
    assert (told["candidateCount"], told["selectedModel"]) == (1, "small")
    assert told["singleCandidate"] is True
    assert told["selection"] == {
        "kind": "single_candidate",
        "model": "small",
        "provider": "house",
        "candidateCount": 1,
        "threadId": "main",
        "turnId": "t1",
        "firstSequence": 5,
        "lastSequence": 5,
    }
    assert "notPossible" not in told
    assert story.thread["incidents"] == []
    assert story.thread["status"] == "running"


def test_a_choice_among_several_tells_who_was_left_out_and_why() -> None:
    story = Story()
    found = [{"model": "big"}, {"model": "small"}, {"model": "old", "excluded": "retired"}, "x"]
    story.in_turn("routing.candidates.resolved", candidates=found)
    story.in_turn("routing.decided", model="big", reason="needs tools")
    told = summary(story)
    assert told["candidates"] == found
    assert told["candidateCount"] == 3
    assert told["selection"]["reason"] == "needs tools"
    assert "singleCandidate" not in told


def test_no_candidate_is_told_until_one_is_found() -> None:
    story = Story()
    story.in_turn("routing.not_possible", reason="none fits", candidates=[])
    told = summary(story)
    assert (told["candidateCount"], told["notPossible"]["reason"]) == (0, "none fits")
    assert "selectedModel" not in told
    story.in_turn("routing.decided", model="big", reason="back again")
    assert "notPossible" not in summary(story)


def test_fallbacks_are_kept_and_bounded() -> None:
    story = Story()
    for number in range(MOST_FALLBACKS + 4):
        told = {"failedModel": "big", "model": f"m{number}", "reason": "overloaded"}
        story.in_turn("routing.fallback.applied", **told)
    found = summary(story)
    assert len(found["fallbacks"]) == MOST_FALLBACKS
    assert found["olderFallbacks"] == 4
    assert found["selectedModel"] == f"m{MOST_FALLBACKS + 3}"
    assert found["fallbacks"][-1]["failedModel"] == "big"


def test_candidates_that_are_no_list_are_not_there() -> None:
    story = Story()
    story.in_turn("routing.candidates.resolved", candidates="big")
    assert summary(story) == {"status": "not_applicable"}


# -- cost ------------------------------------------------------------------------------------------


def test_cost_adds_up_by_currency_model_and_turn_without_rounding() -> None:
    """0.1 and 0.2 are 0.3: money is not added in binary."""
    story = Story()
    story.start("t1")
    tokens = {"inputTokens": 100, "outputTokens": 20}
    for model, amount in (("big", 0.1), ("small", 0.2)):
        told = {"model": model, "amount": amount, "currency": "EUR", "cachedInputTokens": 7}
        story.in_turn("cost.recorded", **told, **tokens)
    other = IN_TURN | {"turn_id": "t2"}
    story.tell("cost.recorded", other, model="big", amount=1, currency="USD", **tokens)
    story.tell("cost.recorded", other, model="big", **tokens)
    found = summary(story)
    assert found["cost"] == {
        "records": 4,
        "inputTokens": 400,
        "outputTokens": 80,
        "cachedInputTokens": 14,
        "amounts": {"EUR": 0.3, "USD": 1.0},
    }
    assert found["costByModel"]["small"]["amounts"] == {"EUR": 0.2}
    assert story.thread["turns"][0]["cost"]["amounts"] == {"EUR": 0.3}


def test_tokens_that_no_record_tells_are_absent() -> None:
    story = Story()
    story.start("t1")
    story.in_turn("cost.recorded", model="big", amount=1, currency="EUR")
    story.in_turn("cost.recorded", model="big", outputTokens=0)
    amounts = {"amounts": {"EUR": 1.0}}
    assert summary(story)["cost"] == {"records": 2, "outputTokens": 0, **amounts}


def test_an_estimate_is_no_cost() -> None:
    story = Story()
    story.in_turn("cost.estimated", amount=0.000123, currency="EUR")
    told = summary(story)
    assert told["estimatedCost"] == {"records": 1, "amounts": {"EUR": 0.000123}}
    assert "cost" not in told


def test_an_amount_without_a_currency_is_of_an_unknown_one() -> None:
    story = Story()
    story.in_turn("cost.recorded", model="big", amount=2)
    story.in_turn("cost.recorded", amount="much")
    assert summary(story)["cost"] == {"records": 2, "amounts": {"unknown": 2.0}}
    assert set(summary(story)["costByModel"]) == {"big", "unknown"}


def test_costs_that_are_kept_apart_are_bounded_and_the_sum_is_whole() -> None:
    story = Story()
    for number in range(60):
        ids = IN_TURN | {"turn_id": f"t{number}"}
        told: dict[str, Any] = {"model": f"m{number}", "inputTokens": 1, "outputTokens": 1}
        story.tell("cost.recorded", ids, amount=1, currency=f"C{number}", **told)
    costs = story.state.costs
    assert costs.recorded is not None
    assert (costs.recorded.records, costs.recorded.input_tokens) == (60, 60)
    assert len(costs.recorded.amounts) == MOST_CURRENCIES
    assert len(costs.by_model) == MOST_MODELS
    assert list(costs.by_turn) == [f"t{number}" for number in range(60 - MOST_TURNS, 60)]


# -- limits ----------------------------------------------------------------------------------------


def test_limits_and_quotas_join_the_turn_that_hit_them() -> None:
    """ledger.md 6."""
    story = Story()
    for turn_id in ("t1", "t2"):
        story.start(turn_id)
        story.end(turn_id)
    second = IN_TURN | {"turn_id": "t2"}
    story.tell("rate_limit.hit", second, limit="requests", retryAfterS=1.5, provider="house")
    told = {"quota": "tokens", "remaining": 5, "total": 100, "unit": "tokens"}
    story.tell("quota.low", second | {"task_id": "k1"}, **told)
    first_turn, second_turn = story.thread["turns"]
    assert "limits" not in first_turn
    assert [(one["type"], one["name"]) for one in second_turn["limits"]] == [
        ("rate_limit.hit", "requests"),
        ("quota.low", "tokens"),
    ]
    assert second_turn["limits"][0]["retryAfterS"] == 1.5
    assert second_turn["limits"][1]["taskId"] == "k1"
    assert summary(story)["limits"] == second_turn["limits"]


def test_a_quota_tells_where_it_stands_now() -> None:
    story = Story()
    story.in_turn("quota.low", quota="tokens", remaining=5, total=100, unit="tokens")
    story.in_turn("quota.blocked", quota="tokens", remaining=0, resetsAt="2026-01-03T00:00:00Z")
    assert summary(story)["quotas"] == {
        "tokens": {
            "state": "blocked",
            "remaining": 0,
            "resetsAt": "2026-01-03T00:00:00Z",
            "sequence": 3,
        }
    }
    story.tell("limit.changed", limit="tokens", value={"total": 500}, previous=100)
    assert summary(story)["quotas"] == {
        "tokens": {"state": "changed", "value": {"total": 500}, "sequence": 4}
    }


def test_limits_that_are_kept_are_bounded() -> None:
    story = Story()
    for number in range(60):
        story.in_turn("quota.low", quota=f"q{number}", remaining=1)
    found = summary(story)
    assert (len(found["limits"]), found["olderLimits"]) == (MOST_LIMITS, 60 - MOST_LIMITS)
    assert len(found["quotas"]) == MOST_QUOTAS
