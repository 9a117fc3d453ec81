"""Benchmark trials of a session: what ran, what it scored, and what a comparison decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.ledger.benchmark_names import renamed
from arp.ledger.fact import Fact
from arp.ledger.models.reading import brief, number, part, text, texts, whole
from arp.ledger.models.window import Record, Window, keep
from arp.protocol.json_value import Json, JsonObject

MOST_RUNNING: Final = 100
MOST_TRIALS: Final = 50
MOST_COMPARISONS: Final = 10
MOST_CONFIGURATIONS: Final = 20


class Trial(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One run of a benchmark's task under a configuration."""

    trial_id: str
    status: str
    """running, completed or failed."""
    dataset_id: str | None = None
    dataset_version: str | None = None
    configuration_id: str | None = None
    role: str | None = None
    changed_variable: str | None = field(default=None, name="singleChangedVariable")
    task_id: str | None = None
    run_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    reward: int | float | None = None
    reward_detail: Json = None
    p0_regressions: int | None = field(default=None, name="p0QcGateRegressionCount")
    reason: str | None = None
    refs: Json = None
    """Harbor job and trial, `task.toml`, trajectory, reward, manifest, QC report."""


class Comparison(Record, rename="camel", omit_defaults=True, kw_only=True):
    """What came of comparing two configurations."""

    baseline: str | None = None
    candidate: str | None = None
    mean_reward_delta: int | float | None = None
    timeout_rate_delta: int | float | None = None
    evidence_completeness: int | float | None = field(default=None, name="evidenceCompletenessRate")
    p0_regressions: int | None = field(default=None, name="p0QcGateRegressionCount")
    decision: str | None = None
    """promote, revert or hold."""
    reason: str | None = None
    refs: Json = None


class Benchmark(Struct, rename="camel", omit_defaults=True):
    """The benchmark side of a session."""

    dataset_id: str | None = None
    dataset_version: str | None = None
    dataset_tasks: list[str] = []
    configurations: dict[str, Json] = {}
    trials: Window[Trial] = field(default_factory=lambda: Window[Trial]())
    counts: dict[str, int] = {}
    """Trials that started, completed, failed; rewards."""
    reward_total: float = 0.0
    comparisons: list[Comparison] = []
    older_comparisons: int = 0

    def count(self, what: str) -> None:
        """Count one more."""
        self.counts[what] = self.counts.get(what, 0) + 1


def _said_of(fact: Fact) -> JsonObject:
    """Return `benchmark` of a fact with the names of now."""
    return part({"benchmark": renamed(fact.benchmark)}, "benchmark")


def _dataset(benchmark: Benchmark, fact: Fact) -> None:
    said = _said_of(fact)
    benchmark.dataset_id = text(said, "datasetId") or benchmark.dataset_id
    benchmark.dataset_version = text(said, "datasetVersion") or benchmark.dataset_version
    benchmark.dataset_tasks = texts(fact.payload, "tasks") or benchmark.dataset_tasks


def _configuration(benchmark: Benchmark, fact: Fact) -> None:
    said = _said_of(fact)
    name = text(said, "configurationId") or "unknown"
    known = benchmark.configurations
    if name in known or len(known) < MOST_CONFIGURATIONS:
        known[name] = brief(part(fact.payload, "configuration"))


def _trial(benchmark: Benchmark, fact: Fact) -> Trial:
    """Return the trial that a fact names, by its id, else by its run; new if none is kept."""
    said = _said_of(fact)
    name = text(said, "trialId") or fact.run_id or "unknown"
    trial = benchmark.trials.get(name)
    if trial is None:
        trial = Trial(trial_id=name, status="running", first_sequence=fact.sequence)
        benchmark.trials.begin(name, trial, MOST_RUNNING)
    trial.last_sequence = fact.sequence
    trial.dataset_id = text(said, "datasetId") or trial.dataset_id
    trial.dataset_version = text(said, "datasetVersion") or trial.dataset_version
    trial.configuration_id = text(said, "configurationId") or trial.configuration_id
    trial.role = text(said, "role") or trial.role
    trial.changed_variable = text(said, "singleChangedVariable") or trial.changed_variable
    regressions = whole(said, "p0QcGateRegressionCount")
    trial.p0_regressions = trial.p0_regressions if regressions is None else regressions
    trial.task_id, trial.run_id = fact.task_id, fact.run_id
    trial.thread_id = fact.thread_id or trial.thread_id
    trial.turn_id = fact.turn_id or trial.turn_id
    trial.refs = _joined(trial.refs, renamed(fact.refs))
    return trial


def _joined(before: Json, refs: Json) -> Json:
    """Return what is known of a trial's refs: later facts name more of them."""
    if isinstance(before, dict) and isinstance(refs, dict):
        return brief({**before, **refs})
    return brief(refs) if refs is not None else before


def _started(benchmark: Benchmark, fact: Fact) -> None:
    _trial(benchmark, fact).status = "running"
    benchmark.count("started")


def _ended(benchmark: Benchmark, fact: Fact) -> None:
    trial = _trial(benchmark, fact)
    trial.status = fact.type.removeprefix("benchmark.trial.")
    trial.reason = text(fact.payload, "reason")
    benchmark.count(trial.status)
    benchmark.trials.end(trial.trial_id, MOST_TRIALS)


def _rewarded(benchmark: Benchmark, fact: Fact) -> None:
    trial = _trial(benchmark, fact)
    reward = number(fact.payload, "reward")
    if reward is not None:
        benchmark.count("rewards")
        benchmark.reward_total += reward
        trial.reward = reward
    trial.reward_detail = brief(fact.payload.get("detail"))


def _compared(benchmark: Benchmark, fact: Fact) -> None:
    said = part({"comparison": renamed(fact.comparison)}, "comparison")
    comparison = Comparison(
        baseline=text(said, "baseline"),
        candidate=text(said, "candidate"),
        mean_reward_delta=number(said, "meanRewardDelta"),
        timeout_rate_delta=number(said, "timeoutRateDelta"),
        evidence_completeness=number(said, "evidenceCompletenessRate"),
        p0_regressions=whole(said, "p0QcGateRegressionCount"),
        decision=text(said, "decision"),
        reason=text(fact.payload, "reason"),
        refs=brief(renamed(fact.refs)),
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    benchmark.older_comparisons += keep(benchmark.comparisons, comparison, MOST_COMPARISONS)


RULES: Final[dict[str, Callable[[Benchmark, Fact], None]]] = {
    "benchmark.dataset.resolved": _dataset,
    "benchmark.configuration.resolved": _configuration,
    "benchmark.trial.started": _started,
    "benchmark.trial.completed": _ended,
    "benchmark.trial.failed": _ended,
    "benchmark.reward.recorded": _rewarded,
    "benchmark.comparison.completed": _compared,
}
"""Type of a fact → what it changes here."""
