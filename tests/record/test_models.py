"""Requests to models, and which model is taken."""

from __future__ import annotations

from arp.ledger.payload_fields import Candidate
from tests.record.rig import Notes


def test_a_request_its_cost_and_its_end_carry_one_id() -> None:
    notes = Notes()
    request = notes.record.model("large", "acme")
    request.cost(input_tokens=10, output_tokens=2, cached_input_tokens=4)
    request.completed({"input": 10}, "stop")
    request.failed("overloaded", retryable=True)
    ids = {"model_request_id": "model-1"}
    cost = {"model": "large", "inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 4}
    assert notes.told() == [
        ("model.requested", {"model": "large", "provider": "acme"}, ids),
        ("cost.recorded", cost, ids),
        (
            "model.completed",
            {"model": "large", "usage": {"input": 10}, "finishReason": "stop"},
            ids,
        ),
        ("model.failed", {"model": "large", "error": "overloaded", "retryable": True}, ids),
    ]


def test_one_candidate_is_no_error() -> None:
    """ledger.md 6: one model candidate is `routing.single_candidate`, not an error."""
    notes = Notes()
    asked: list[str | Candidate] = ["small", Candidate("large", "acme", excluded="no key")]
    assert notes.record.routing.resolved(asked) == Candidate("small")
    large = {"model": "large", "provider": "acme", "excluded": "no key"}
    assert notes.told() == [
        ("routing.candidates.resolved", {"candidates": [{"model": "small"}, large]}, {}),
        ("routing.single_candidate", {"model": "small"}, {}),
    ]


def test_no_candidate_says_why() -> None:
    notes = Notes()
    routing = notes.record.routing
    assert routing.resolved([], "no model is set up") is None
    assert routing.resolved([Candidate("large", excluded="no key")]) is None
    large = {"model": "large", "excluded": "no key"}
    assert notes.told() == [
        ("routing.candidates.resolved", {"candidates": []}, {}),
        ("routing.not_possible", {"reason": "no model is set up", "candidates": []}, {}),
        ("routing.candidates.resolved", {"candidates": [large]}, {}),
        (
            "routing.not_possible",
            {"reason": "no candidate can be taken", "candidates": [large]},
            {},
        ),
    ]


def test_of_several_candidates_one_is_decided_on_and_another_may_take_its_place() -> None:
    notes = Notes()
    routing = notes.record.routing
    assert routing.resolved(["small", "large"]) is None
    routing.decided("large", "long text", "acme")
    routing.fell_back("large", "small", "overloaded")
    assert notes.told()[1:] == [
        ("routing.decided", {"model": "large", "provider": "acme", "reason": "long text"}, {}),
        (
            "routing.fallback.applied",
            {"failedModel": "large", "model": "small", "reason": "overloaded"},
            {},
        ),
    ]
