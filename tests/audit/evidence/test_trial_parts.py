"""The two parts of a trial are made of the facts and of what the manifest names, nothing else."""

from __future__ import annotations

import json

from arp.audit.evidence.manifest import TrialOf
from arp.audit.evidence.trials import TrialParts
from tests.audit.evidence.test_trials import DATA, story


def test_the_trajectory_tells_of_which_trial_it_is() -> None:
    parts = TrialParts(TrialOf("a", "counter"))
    for fact in story().facts:
        parts.add(fact)
    documents = parts.documents()
    assert sorted(documents) == ["trajectory.json", "trial.json"]
    trajectory = json.loads(documents["trajectory.json"])
    assert trajectory["agent"] == {"name": "counter", "version": "unknown"}
    assert trajectory["extra"] == {
        "benchmark": {**DATA, "trialId": "a", "p0QcGateRegressionCount": 2},
        "taskId": "count",
        "runId": "r1",
    }
    assert json.loads(documents["trial.json"])["status"] == "failed"


def test_a_trial_of_which_no_fact_tells_has_a_trajectory_without_it() -> None:
    documents = TrialParts(TrialOf("b", "counter")).documents()
    assert "extra" not in json.loads(documents["trajectory.json"])
