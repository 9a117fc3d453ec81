"""A trial in the profile's names is read again, whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.audit.evidence.trials import NoTrial, decode_trial

OF_ANOTHER_RUNTIME: dict[str, Any] = {
    "schemaVersion": "lime-profile-0.4.0",
    "benchmark": {
        "datasetId": "runtime-tasks",
        "datasetVersion": "2026-05",
        "taskId": "boundary",
        "trialId": "trial-7",
        "configurationId": "candidate-2",
        "role": "candidate",
        "harborJobRef": "jobs/7",
        "harborTrialRef": "jobs/7/trial-7",
        "taskTomlRef": "boundary/task.toml",
    },
    "runtimeCorrelation": {"runtimeId": "r", "sessionId": "s", "threadId": "t", "turnId": "u"},
    "refs": {"trajectoryRef": "/logs/agent/trajectory.json", "agentQcReportRef": "qc.json"},
    "metrics": {"reward": 1, "timeout": False, "tokens": 22000},
    "decisionInputs": {"p0QcGateRegressionCount": 0, "promotionEligible": True},
    "trajectory": {"schema": "ATIF-v1.4-compatible", "exportStatus": "exported"},
    "reward": {"value": 1, "failureCategory": "none"},
    "galaxy": 7,
}


def test_a_trial_that_another_runtime_wrote_is_read() -> None:
    trial = decode_trial(json.dumps(OF_ANOTHER_RUNTIME).encode())
    assert trial.benchmark["taskTomlRef"] == "boundary/task.toml"
    assert trial.refs["agentQcReportRef"] == "qc.json"
    assert trial.decision_inputs["p0QcGateRegressionCount"] == 0
    assert trial.reward == {"value": 1, "failureCategory": "none"}
    assert (trial.status, trial.missing) == (None, [])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", "missing required field `schemaVersion`"),
        (b"trial", "malformed"),
        (b'{"schemaVersion": "\xff"}', "utf-8"),
        (b"[" * 100_000, "recursion|malformed|truncated|object"),
    ],
)
def test_what_is_no_trial_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(NoTrial, match=f"(?i)no trial of a benchmark: .*({why})"):
        decode_trial(data)
