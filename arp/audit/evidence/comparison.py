"""Two configurations of a benchmark compared: figures, what stands against them, what to do.

Theory of operation. A comparison is worth something if the two sides ran the same tasks of the same
dataset and differ in one thing. What is missing for that makes it a `hold`, with the reason; so
does evidence that is not whole. Gates of the first priority come before any reward.
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
    """One configuration's trials, in figures."""

    configuration_id: str
    trials: int
    rewarded: int
    """Trials with a reward; those that failed without one count as 0 in the mean."""
    mean_reward: float
    timeouts: int
    p0_regressions: int = field(name="p0QcGateRegressionCount")
    rewards: dict[str, float]
    """Task → mean reward of its trials."""


class Missing(Struct, frozen=True, rename="camel"):
    """What the evidence of a trial lacks."""

    session_id: str
    trial_id: str
    missing: list[str]


class DecisionInput(Struct, frozen=True, rename="camel"):
    """What somebody needs to decide."""

    baseline: Side
    candidate: Side
    changed_variable: str | None = field(name="singleChangedVariable")
    incomplete: list[Missing]
    objections: list[str]
    """Why the two cannot be compared; empty if they can."""
    recommended: Decision
    reason: str


class Compared(Struct, frozen=True, rename="camel"):
    """A comparison, and what it was made of."""

    comparison: Comparison
    decision_input: DecisionInput


def compare(
    baseline: Sequence[Trial], candidate: Sequence[Trial], decided: Decision | None = None
) -> Compared:
    """Compare trials of two configurations; both sides have one at least.

    Args:
        baseline: Trials of what there is.
        candidate: Trials of what is proposed.
        decided: What somebody decided already; `None` takes what is recommended.

    Source: evidence.md 6.
    """
    one, other, both = _side(baseline), _side(candidate), [*baseline, *candidate]
    incomplete = [
        Missing(trial.session_id, trial.trial_id, trial.missing) for trial in both if trial.missing
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
    variables = _all(candidate, "singleChangedVariable")
    changed = variables[0] if len(variables) == 1 else None
    found = DecisionInput(one, other, changed, incomplete, objections, recommended, reason)
    return Compared(comparison, found)


def _side(trials: Sequence[Trial]) -> Side:
    by_task: dict[str, list[float]] = {}
    for trial in trials:
        by_task.setdefault(trial.task_id, []).append(trial.reward or 0.0)
    rewards = [reward for several in by_task.values() for reward in several]
    return Side(
        configuration_id=next(iter(_all(trials, "configurationId")), "unknown"),
        trials=len(trials),
        rewarded=sum(trial.reward is not None for trial in trials),
        mean_reward=sum(rewards) / len(rewards),
        timeouts=sum(trial.has_timed_out for trial in trials),
        p0_regressions=sum(trial.p0_regressions or 0 for trial in trials),
        rewards={task: sum(several) / len(several) for task, several in by_task.items()},
    )


def _all(trials: Iterable[Trial], name: str) -> list[str]:
    """Return the different values that trials have of a field of `benchmark`."""
    values = (text(trial.benchmark, name) for trial in trials)
    return list(dict.fromkeys(value for value in values if value is not None))


def _objections(baseline: Sequence[Trial], candidate: Sequence[Trial]) -> Iterable[str]:
    both = [*baseline, *candidate]
    for name, noun in (("datasetId", "datasets"), ("datasetVersion", "versions of the dataset")):
        values = _all(both, name)
        if len(values) > 1:
            yield f"the trials are of several {noun}: {', '.join(values)}"
    for trials, noun in ((baseline, "baseline"), (candidate, "candidate")):
        values = _all(trials, "configurationId")
        if len(values) != 1:
            yield f"the {noun} has {len(values)} configurations, not one"
    variables = _all(candidate, "singleChangedVariable")
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
    """Return what is to be done and why: the first rule that applies."""
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
    return "promote", "the mean reward is higher, and nothing stands against it"
