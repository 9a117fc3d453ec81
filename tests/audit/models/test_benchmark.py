"""Benchmark trials: what ran, what it scored, what was decided."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from arp.audit.models import entities
from tests.audit.models.story import IN_TURN, Story

MOST_TRIALS = entities.TRIALS.most[1]
MOST_COMPARISONS = entities.COMPARISONS.most[1]
MOST_CONFIGURATIONS = entities.MOST_CONFIGURATIONS

SET = {"datasetId": "set", "datasetVersion": "2"}


def trial(number: int = 1, **more: Any) -> dict[str, Any]:
    told = SET | {"configurationId": "base", "trialId": f"trial{number}"} | more
    return {
        "benchmark": told,
        "task_id": "k1",
        "run_id": f"r{number}",
        "refs": {"harborJobRef": "j"},
    }


def summary(story: Story) -> dict[str, Any]:
    found: dict[str, Any] = story.snapshot["benchmarkSummary"]
    return found


def test_a_session_without_a_benchmark_says_that_it_does_not_apply() -> None:
    assert summary(Story()) == {"status": "not_applicable"}


def test_a_trial_is_told_from_its_start_to_its_reward() -> None:
    story = Story()
    story.tell("benchmark.dataset.resolved", {"benchmark": SET}, tasks=["one", "two"])
    story.tell(
        "benchmark.configuration.resolved",
        {"benchmark": SET | {"configurationId": "base"}},
        configuration={"model": "big"},
    )
    told = trial(role="candidate", singleChangedVariable="model", p0QcGateRegressionCount=0)
    story.tell("benchmark.trial.started", IN_TURN | told)
    assert summary(story)["trials"][0]["status"] == "running"
    told = trial() | {"refs": {"trajectoryRef": "t.json"}}
    story.tell("benchmark.trial.completed", told, durationMs=90)
    story.tell("benchmark.reward.recorded", told, reward=0.75, detail={"tests": 3})
    found = summary(story)
    assert found["trials"] == [
        {
            "trialId": "trial1",
            "status": "completed",
            "datasetId": "set",
            "datasetVersion": "2",
            "configurationId": "base",
            "role": "candidate",
            "singleChangedVariable": "model",
            "taskId": "k1",
            "runId": "r1",
            "threadId": "main",
            "turnId": "t1",
            "reward": 0.75,
            "rewardDetail": {"tests": 3},
            "p0QcGateRegressionCount": 0,
            "refs": {"harborJobRef": "j", "trajectoryRef": "t.json"},
            "firstSequence": 4,
            "lastSequence": 6,
        }
    ]
    assert (found["datasetId"], found["datasetVersion"]) == ("set", "2")
    assert found["datasetTasks"] == ["one", "two"]
    assert found["configurations"] == {"base": {"model": "big"}}
    assert found["counts"] == {"started": 1, "completed": 1, "rewards": 1}
    assert found["meanReward"] == 0.75


def test_a_failed_trial_says_why_and_is_an_incident() -> None:
    story = Story()
    story.tell("benchmark.trial.started", IN_TURN | trial())
    story.tell("benchmark.trial.failed", trial(), reason="timeout")
    (found,) = summary(story)["trials"]
    assert (found["status"], found["reason"]) == ("failed", "timeout")
    assert [one["type"] for one in story.snapshot["incidents"]] == ["benchmark.trial.failed"]


def test_a_trial_without_an_id_of_its_own_is_known_by_its_run() -> None:
    story = Story()
    told = trial() | {"benchmark": SET, "refs": ["t.json"]}
    story.tell("benchmark.trial.completed", told)
    (found,) = summary(story)["trials"]
    assert (found["trialId"], found["refs"]) == ("r1", ["t.json"])


def test_an_export_adds_where_the_trajectory_is_unless_the_trial_names_it() -> None:
    story = Story()
    story.tell("benchmark.trial.completed", trial() | {"refs": {"trajectoryRef": "unavailable"}})
    story.tell("benchmark.trial.completed", trial(2) | {"refs": {"trajectoryRef": "t.json"}})
    story.tell("benchmark.trial.completed", trial(3) | {"refs": ["t.json"]})
    made = {"path": "/p", "trajectoryRef": "/p#t", "runtimeTranscriptRef": "/p#f"}
    told = {"kind": "benchmark", "state": "exported"}
    for number, refs in ((1, made), (2, made), (3, made), (1, {"path": "/old"}), (9, made)):
        ids = {"evidence_id": f"e{number}", "benchmark": trial(number)["benchmark"], "refs": refs}
        story.tell("evidence.changed", ids, **told)
    first, second, third = summary(story)["trials"]
    exported = {"trajectoryRef": "/p#t", "runtimeTranscriptRef": "/p#f"}
    assert (first["refs"], third["refs"]) == (exported, exported)
    assert second["refs"] == {**exported, "trajectoryRef": "t.json"}


def test_the_mean_reward_is_of_what_was_rewarded() -> None:
    story = Story()
    for number, reward in enumerate((1, 0, "high"), 1):
        story.tell("benchmark.reward.recorded", trial(number), reward=reward)
    assert summary(story)["meanReward"] == 0.5
    story = Story()
    story.tell("benchmark.reward.recorded", trial(), reward=0)
    assert summary(story)["meanReward"] == 0.0


def test_a_trial_that_nobody_could_score_keeps_the_reason() -> None:
    """It has no reward, which is not the reward 0."""
    story = Story()
    story.tell("benchmark.reward.recorded", trial(), reward="none", detail={"why": "timed out"})
    (found,) = summary(story)["trials"]
    assert "reward" not in found
    assert found["rewardDetail"] == {"why": "timed out"}


def test_a_comparison_of_another_program_without_references_tells_none() -> None:
    """The profile wants them; a fact that was written without them is read all the same."""
    story = Story()
    ids = {"benchmark": SET, "comparison": {"decision": "hold"}, "refs": {"a": "b"}}
    fact = story.tell("session.updated", title="x")
    bare = replace(
        fact,
        sequence=3,
        type="benchmark.comparison.completed",
        payload={},
        **(ids | {"refs": None}),
    )
    story.model.fold(bare)
    (found,) = summary(story)["comparisons"]
    assert found == {"decision": "hold", "firstSequence": 3, "lastSequence": 3}


@pytest.mark.parametrize("decision", ["promote", "revert", "hold"])
def test_a_comparison_tells_its_deltas_and_the_decision(decision: str) -> None:
    story = Story()
    comparison = {
        "baseline": "base",
        "candidate": "new",
        "meanRewardDelta": -0.25,
        "timeoutRateDelta": 2,
        "evidenceCompletenessRate": 0.9,
        "p0QcGateRegressionCount": 0,
        "decision": decision,
    }
    ids = {"benchmark": SET, "comparison": comparison, "refs": {"agentQcReportRef": "qc.json"}}
    story.tell("benchmark.comparison.completed", ids, reason="one gate open")
    found = summary(story)
    assert (found["decision"], found["p0QcGateRegressionCount"]) == (decision, 0)
    assert found["comparisons"] == [
        comparison
        | {
            "reason": "one gate open",
            "refs": {"agentQcReportRef": "qc.json"},
            "firstSequence": 2,
            "lastSequence": 2,
        }
    ]


def test_benchmark_objects_that_are_none_are_taken_as_unknown() -> None:
    story = Story()
    story.tell("benchmark.configuration.resolved", {"benchmark": "set"})
    told = {"benchmark": "set", "comparison": "better", "refs": "qc.json"}
    story.tell("benchmark.comparison.completed", told)
    assert summary(story)["configurations"] == {"unknown": {}}
    assert summary(story)["comparisons"] == [
        {"refs": "qc.json", "firstSequence": 3, "lastSequence": 3}
    ]


def test_what_is_kept_of_a_benchmark_is_bounded() -> None:
    story = Story()
    comparison = {"baseline": "base", "candidate": "new", "decision": "hold"}
    for number in range(60):
        story.tell("benchmark.trial.completed", trial(number))
        told = {"benchmark": SET | {"configurationId": f"c{number}"}}
        story.tell("benchmark.configuration.resolved", told, configuration={})
        ids = {"benchmark": SET, "comparison": comparison, "refs": ["x"]}
        story.tell("benchmark.comparison.completed", ids)
    found = summary(story)
    assert (len(found["trials"]), found["olderTrials"]) == (MOST_TRIALS, 60 - MOST_TRIALS)
    assert len(found["comparisons"]) == MOST_COMPARISONS
    assert found["olderComparisons"] == 60 - MOST_COMPARISONS
    assert len(found["configurations"]) == MOST_CONFIGURATIONS
    assert found["counts"] == {"completed": 60}
