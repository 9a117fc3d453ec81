"""A benchmark trial carries its dataset, its configuration and its refs."""

from __future__ import annotations

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs, Comparison
from tests.record.rig import Notes

TOLD = {
    "datasetId": "swe",
    "datasetVersion": "2",
    "configurationId": "c1",
    "trialId": "x",
    "role": "candidate",
    "singleChangedVariable": "model",
}
BENCHMARK = Benchmark("swe", "2", "c1", "x", "candidate", "model")


def test_a_trial_is_joined_by_its_task_its_run_and_its_refs() -> None:
    """ledger.md 1: trial and reward also need `taskId`, `runId`, `refs`."""
    notes = Notes()
    run = notes.record.benchmark(BENCHMARK)
    run.dataset(["fix-1"])
    run.configuration(model="large")
    trial = run.trial("fix-1", "r1", BenchmarkRefs(harbor_job="job-7", task_toml="fix-1/task.toml"))
    trial.started(1)
    trial.refs = BenchmarkRefs(trajectory="trajectory.json", reward="reward.json")
    trial.completed(900.0)
    trial.reward(0.5, {"tests": 3})
    trial.failed("timeout", 901.0)
    begun = {"harborJobRef": "job-7", "taskTomlRef": "fix-1/task.toml"}
    ids = {"benchmark": TOLD, "task_id": "fix-1", "run_id": "r1"}
    ended = {**ids, "refs": {"trajectoryRef": "trajectory.json", "rewardRef": "reward.json"}}
    assert notes.told() == [
        ("benchmark.dataset.resolved", {"tasks": ["fix-1"]}, {"benchmark": TOLD}),
        (
            "benchmark.configuration.resolved",
            {"configuration": {"model": "large"}},
            {"benchmark": TOLD},
        ),
        ("benchmark.trial.started", {"attempt": 1}, {**ids, "refs": begun}),
        ("benchmark.trial.completed", {"durationMs": 900.0}, ended),
        (
            "benchmark.reward.recorded",
            {"reward": 0.5, "detail": {"tests": 3}},
            ended,
        ),
        (
            "benchmark.trial.failed",
            {"reason": "timeout", "durationMs": 901.0},
            ended,
        ),
    ]


def test_a_comparison_says_what_was_decided() -> None:
    notes = Notes()
    comparison = Comparison("c0", "c1", 0.1, -1, 1.0, 0, "promote")
    refs = BenchmarkRefs(qc_report="qc.json")
    notes.record.benchmark(Benchmark("swe", "2")).compared(comparison, refs, "better")
    assert notes.told() == [
        (
            "benchmark.comparison.completed",
            {"reason": "better"},
            {
                "benchmark": {"datasetId": "swe", "datasetVersion": "2"},
                "comparison": {
                    "baseline": "c0",
                    "candidate": "c1",
                    "meanRewardDelta": 0.1,
                    "timeoutRateDelta": -1,
                    "evidenceCompletenessRate": 1.0,
                    "p0QcGateRegressionCount": 0,
                    "decision": "promote",
                },
                "refs": {"agentQcReportRef": "qc.json"},
            },
        )
    ]


def test_a_trial_without_any_ref_is_refused() -> None:
    notes = Notes()
    with pytest.raises(ProfileViolation, match=r"benchmark\.trial\.started needs refs"):
        notes.record.benchmark(BENCHMARK).trial("a", "r", BenchmarkRefs()).started()


def test_a_benchmark_of_no_dataset_is_refused() -> None:
    notes = Notes()
    with pytest.raises(
        ProfileViolation, match=r"benchmark\.datasetId: expected a text that is not"
    ):
        notes.record.benchmark(Benchmark("", "2")).dataset()
