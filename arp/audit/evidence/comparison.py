"""Compare two configurations of a benchmark: figures, objections and a recommended decision.

Theory of operation. A comparison is valid if both sides ran the same tasks of the same dataset and
differ in one variable. If that does not hold, or if evidence is incomplete, the recommendation is
`hold`, with the reason. A P0 regression comes first: it leads to `revert`, whatever else is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from arp.audit.evidence.trials import Trial
from arp.audit.models.reading import text
from arp.ledger.payload_fields import Comparison

Decision: TypeAlias = Literal["promote", "revert", "hold"]


class Side(Struct, frozen=True, rename="camel"):
    """Figures of the trials of one configuration."""

    configuration_id: str
    trials: int
    rewarded: int
    """Number of trials with a reward; a trial without one counts as 0 in the mean."""
    mean_reward: float
    timeouts: int
    p0_regressions: int = field(name="p0QcGateRegressionCount")
    rewards: dict[str, float]
    """Mean reward of the trials of each task, by task id."""


class MissingEvidence(Struct, frozen=True, rename="camel"):
    """Names of what is missing from the evidence of a trial."""

    session_id: str
    trial_id: str
    missing: list[str]


class DecisionInput(Struct, frozen=True, rename="camel"):
    """Material for the decision between baseline and candidate."""

    baseline: Side
    candidate: Side
    changed_variable: str | None = field(name="singleChangedVariable")
    incomplete: list[MissingEvidence]
    objections: list[str]
    """Reasons why the two sides cannot be compared; empty if they can."""
    recommended: Decision
    reason: str


class ComparisonResult(Struct, frozen=True, rename="camel"):
    """A comparison with the material that it is based on."""

    comparison: Comparison
    decision_input: DecisionInput


def compare(
    baseline: Sequence[Trial], candidate: Sequence[Trial], decided: Decision | None = None
) -> ComparisonResult:
    """Compare the trials of two configurations. Each side needs at least one trial.

    Args:
        baseline: Trials of the present configuration.
        candidate: Trials of the proposed configuration.
        decided: Decision that a person has already made; `None` uses the recommended one.

    Source: evidence.md 6.
    """
    one, other, both = _side(baseline), _side(candidate), [*baseline, *candidate]
    incomplete = [
        MissingEvidence(trial.session_id, trial.trial_id, trial.missing)
        for trial in both
        if trial.missing
    ]
    reward_delta = other.mean_reward - one.mean_reward
    timeout_rate_delta = other.timeouts / other.trials - one.timeouts / one.trials
    objections = list(_objections(baseline, candidate))
    recommended, reason = _decision(
        objections, other.p0_regressions, bool(incomplete), reward_delta, timeout_rate_delta
    )
    comparison = Comparison(
        baseline=one.configuration_id,
        candidate=other.configuration_id,
        mean_reward_delta=reward_delta,
        timeout_rate_delta=timeout_rate_delta,
        evidence_completeness=(len(both) - len(incomplete)) / len(both),
        p0_regressions=other.p0_regressions,
        decision=decided or recommended,
    )
    variables = _distinct(candidate, "singleChangedVariable")
    changed = variables[0] if len(variables) == 1 else None
    found = DecisionInput(one, other, changed, incomplete, objections, recommended, reason)
    return ComparisonResult(comparison, found)


def _side(trials: Sequence[Trial]) -> Side:
    by_task: dict[str, list[float]] = {}
    for trial in trials:
        by_task.setdefault(trial.task_id, []).append(trial.reward or 0.0)
    rewards = [reward for several in by_task.values() for reward in several]
    return Side(
        configuration_id=next(iter(_distinct(trials, "configurationId")), "unknown"),
        trials=len(trials),
        rewarded=sum(trial.reward is not None for trial in trials),
        mean_reward=sum(rewards) / len(rewards),
        timeouts=sum(trial.has_timed_out for trial in trials),
        p0_regressions=sum(trial.p0_regressions or 0 for trial in trials),
        rewards={task: sum(several) / len(several) for task, several in by_task.items()},
    )


def _distinct(trials: Iterable[Trial], name: str) -> list[str]:
    """Return the distinct values of a field of `benchmark`, in the order of the trials."""
    values = (text(trial.benchmark, name) for trial in trials)
    return list(dict.fromkeys(value for value in values if value is not None))


def _objections(baseline: Sequence[Trial], candidate: Sequence[Trial]) -> Iterable[str]:
    both = [*baseline, *candidate]
    for name, noun in (("datasetId", "datasets"), ("datasetVersion", "versions of the dataset")):
        values = _distinct(both, name)
        if len(values) > 1:
            yield f"the trials are of several {noun}: {', '.join(values)}"
    for trials, noun in ((baseline, "baseline"), (candidate, "candidate")):
        values = _distinct(trials, "configurationId")
        if len(values) != 1:
            yield f"the {noun} has {len(values)} configurations, not one"
    variables = _distinct(candidate, "singleChangedVariable")
    if len(variables) != 1:
        yield f"the candidate names {len(variables)} changed variables, not one"
    one, other = ({trial.task_id for trial in trials} for trials in (baseline, candidate))
    if one != other:
        yield f"these tasks ran on one side alone: {', '.join(sorted(one ^ other))}"


def _decision(
    objections: Sequence[str],
    p0_regressions: int,
    is_incomplete: bool,
    reward_delta: float,
    timeout_rate_delta: float,
) -> tuple[Decision, str]:
    """Return the decision and the reason of the first rule that applies."""
    rules: tuple[tuple[bool, Decision, str], ...] = (
        (p0_regressions > 0, "revert", f"{p0_regressions} P0 gates hold no longer"),
        (bool(objections), "hold", "; ".join(objections)),
        (is_incomplete, "hold", "the evidence is not whole"),
        (reward_delta < 0, "revert", "the mean reward is lower"),
        (timeout_rate_delta > 0, "hold", "more trials time out"),
        (reward_delta == 0, "hold", "the mean reward is the same"),
    )
    for applies, decision, reason in rules:
        if applies:
            return decision, reason
    return "promote", "the mean reward is higher, and all checks passed"
