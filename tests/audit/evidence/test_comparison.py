"""Two configurations compared: figures, objections, the decision (evidence.md 6)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.evidence.comparison import Decision, compare
from arp.audit.evidence.trials import REFS, Trial


def trial(role: str, reward: float | None, task: str = "count", **more: Any) -> Trial:
    """A trial whose evidence is whole, of `c-1` or `c-2`."""
    is_candidate = role == "candidate"
    benchmark = {
        "datasetId": "terminal",
        "datasetVersion": "1.0",
        "configurationId": "c-2" if is_candidate else "c-1",
        **({"singleChangedVariable": "model"} if is_candidate else {}),
        **more.pop("benchmark", {}),
    }
    fields: dict[str, Any] = {
        "session_id": role,
        "trial_id": f"{task}.{role}",
        "status": "completed",
        "task_id": task,
        "run_id": "r",
        "benchmark": benchmark,
        "refs": dict.fromkeys(REFS, "there"),
        "reward": reward,
    }
    return Trial(**{**fields, **more})


def test_figures_are_candidate_less_baseline() -> None:
    timed_out = {"status": "failed", "reason": "timeout"}
    baseline = [trial("baseline", 0.5), trial("baseline", 0.0, "sort", **timed_out)]
    candidate = [
        trial("candidate", 1.0),
        trial("candidate", 0.5, "sort"),
        trial("candidate", 0.0, "sort"),
        trial("candidate", 0.5, "count"),
    ]
    found = compare(baseline, candidate)
    comparison, told = found.comparison, found.decision_input
    assert (comparison.baseline, comparison.candidate) == ("c-1", "c-2")
    assert comparison.mean_reward_delta == 0.25
    assert comparison.timeout_rate_delta == -0.5
    assert comparison.evidence_completeness == 1.0
    assert comparison.p0_regressions == 0
    assert comparison.decision == "promote"
    assert told.baseline.timeouts == 1
    assert told.candidate.rewards == {"count": 0.75, "sort": 0.25}
    assert told.changed_variable == "model"
    assert told.objections == []
    assert told.reason == "the mean reward is higher, and all checks passed"


@pytest.mark.parametrize(
    ("baseline", "candidate", "decision", "reason"),
    [
        (0.5, {"reward": 0.4}, "revert", "the mean reward is lower"),
        (0.5, {"reward": 0.5}, "hold", "the mean reward is the same"),
        (
            0.5,
            {"reward": 0.9, "status": "failed", "reason": "timeout"},
            "hold",
            "more trials time out",
        ),
        (0.5, {"reward": 0.9, "refs": {}}, "hold", "the evidence is not whole"),
        (0.5, {"reward": 0.9, "p0_regressions": 2}, "revert", "2 P0 gates hold no longer"),
    ],
)
def test_what_stands_against_it_decides_before_the_reward(
    baseline: float, candidate: dict[str, Any], decision: Decision, reason: str
) -> None:
    found = compare([trial("baseline", baseline)], [trial("candidate", **candidate)])
    assert (found.comparison.decision, found.decision_input.reason) == (decision, reason)


@pytest.mark.parametrize(
    ("changed", "objection"),
    [
        (
            {"benchmark": {"datasetVersion": "1.1"}},
            "the trials are of several versions of the dataset: 1.0, 1.1",
        ),
        (
            {"benchmark": {"datasetId": "other"}},
            "the trials are of several datasets: terminal, other",
        ),
        ({"benchmark": {"configurationId": None}}, "the candidate has 0 configurations, not one"),
        (
            {"benchmark": {"singleChangedVariable": None}},
            "the candidate names 0 changed variables, not one",
        ),
        ({"task": "sort"}, "these tasks ran on one side alone: count, sort"),
    ],
)
def test_what_cannot_be_compared_is_held_and_says_why(
    changed: dict[str, Any], objection: str
) -> None:
    found = compare([trial("baseline", 0.0)], [trial("candidate", 1.0, **changed)])
    assert found.decision_input.objections == [objection]
    assert (found.comparison.decision, found.decision_input.reason) == ("hold", objection)


def test_a_trial_without_a_reward_counts_as_nothing_and_is_incomplete() -> None:
    found = compare([trial("baseline", 1.0)], [trial("candidate", None)])
    assert found.comparison.mean_reward_delta == -1.0
    assert found.comparison.evidence_completeness == 0.5
    (incomplete,) = found.decision_input.incomplete
    assert (incomplete.session_id, incomplete.missing) == ("candidate", ["reward"])
    assert found.decision_input.candidate.rewarded == 0


def test_what_somebody_decided_stands_beside_what_is_recommended() -> None:
    found = compare([trial("baseline", 1.0)], [trial("candidate", 0.0)], "promote")
    assert found.comparison.decision == "promote"
    assert found.decision_input.recommended == "revert"
