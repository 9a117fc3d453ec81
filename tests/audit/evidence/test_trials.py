"""Trials of a benchmark, from facts: whole, or it is said what lacks (evidence.md 6)."""

from __future__ import annotations

from typing import Any

from arp.audit.evidence.trials import REFS, Trial, TrialBook, TrialPart
from tests.ledger.historian import Historian

DATA = {"datasetId": "terminal", "datasetVersion": "1.0"}


def story(trial_id: str | None = "a") -> Historian:
    """One trial that timed out and was scored."""
    told = Historian()
    named = {**DATA, "trialId": trial_id} if trial_id else DATA
    ids: dict[str, Any] = {"thread_id": "main", "turn_id": "t1", "task_id": "count"}
    ids |= {"run_id": "r1", "benchmark": named, "refs": {"harborJobRef": "jobs/7"}}
    told.add("benchmark.dataset.resolved", {"tasks": ["count"]}, benchmark=DATA)
    told.add("benchmark.trial.started", {"attempt": 1}, **ids)
    told.add("benchmark.trial.failed", {"reason": "timeout"}, **ids)
    ids |= {"benchmark": {**named, "p0QcGateRegressionCount": 2}, "refs": {"rewardRef": "r.json"}}
    scored = {"reward": 0.5, "detail": [1], "criteria": ["files-counted"]}
    told.add("benchmark.reward.recorded", scored, **ids)
    other = {**ids, "benchmark": {**DATA, "trialId": "z"}, "run_id": "r9"}
    told.add("benchmark.trial.started", {}, **other)
    return told


def book_of(told: Historian) -> TrialBook:
    book = TrialBook()
    for fact in told.facts:
        book.add(fact)
    return book


def test_a_trial_is_what_all_its_facts_say() -> None:
    trial = book_of(story()).trials["a"]
    assert trial == Trial(
        session_id="s",
        trial_id="a",
        status="failed",
        task_id="count",
        run_id="r1",
        thread_id="main",
        turn_id="t1",
        benchmark={**DATA, "trialId": "a", "p0QcGateRegressionCount": 2},
        refs={"harborJobRef": "jobs/7", "rewardRef": "r.json"},
        reward=0.5,
        detail=[1],
        criteria=["files-counted"],
        reason="timeout",
        p0_regressions=2,
        first_sequence=3,
        last_sequence=5,
    )
    assert trial.has_timed_out
    assert list(book_of(story()).trials) == ["a", "z"]


def test_how_the_turn_of_a_trial_ended_is_part_of_it() -> None:
    told = story()
    assert book_of(told).trials["a"].turn_status is None
    told.add("turn.completed", {"status": "completed"}, thread_id="main", turn_id="t7")
    assert book_of(told).trials["a"].turn_status is None
    told.add("turn.failed", {"status": "cancelled"}, thread_id="main", turn_id="t1")
    assert book_of(told).trials["a"].turn_status == "cancelled"


def test_a_trial_without_a_name_is_called_as_its_run() -> None:
    assert "r1" in book_of(story(None)).trials


def test_evidence_lacks_what_is_not_named_or_not_known() -> None:
    trials = book_of(story()).trials
    assert trials["a"].missing == [
        "refs.harborTrialRef",
        "refs.taskTomlRef",
        "refs.trajectoryRef",
        "refs.rewardDetailsRef",
        "refs.artifactManifestRef",
        "refs.agentQcReportRef",
    ]
    assert trials["z"].missing[:2] == ["end", "reward"]
    whole = Trial(
        session_id="s",
        trial_id="a",
        task_id="count",
        run_id="r1",
        status="completed",
        reward=0.0,
        refs=dict.fromkeys(REFS, "x"),
    )
    assert whole.missing == []
    assert not whole.has_timed_out
    whole.refs["agentQcReportRef"] = "unavailable"
    assert whole.missing == ["refs.agentQcReportRef"]


def test_an_exported_trajectory_is_where_the_pack_lies_unless_it_was_named_before() -> None:
    told = story()
    payload = {"kind": "benchmark", "state": "exported"}
    for trial_id, path in (("a", "/packs/1"), ("a", "/packs/2"), ("nobody", "/packs/3")):
        ids: dict[str, Any] = {"benchmark": {**DATA, "trialId": trial_id}, "refs": {"path": path}}
        told.add("evidence.changed", payload, evidence_id="e", **ids)
    told.add("evidence.changed", payload, evidence_id="f")
    named: dict[str, Any] = {"task_id": "sort", "run_id": "r3", "refs": {"trajectoryRef": "t.json"}}
    told.add("benchmark.trial.completed", {}, benchmark={**DATA, "trialId": "b"}, **named)
    ids = {"benchmark": {**DATA, "trialId": "b"}, "refs": {"path": "/packs/4"}}
    told.add("evidence.changed", payload, evidence_id="g", **ids)
    trials = book_of(told).trials
    assert trials["a"].refs["trajectoryRef"] == "/packs/1#trajectory.json"
    assert trials["a"].refs["runtimeTranscriptRef"] == "/packs/1#facts.jsonl"
    assert trials["b"].refs["trajectoryRef"] == "t.json"


def part_of(told: Historian, trial_id: str) -> Any:
    maker = TrialPart(trial_id)
    for fact in told.facts:
        maker.add(fact)
    return maker.document({"agent": True})


def test_the_document_of_a_trial_has_its_facts_and_says_what_is_not_known() -> None:
    document = part_of(story(), "a")
    assert document["runtimeCorrelation"] == {
        "runtimeId": "arp",
        "sessionId": "s",
        "threadId": "main",
        "turnId": "t1",
        "taskId": "count",
        "runId": "r1",
        "traceId": "unavailable",
    }
    assert document["benchmark"] == {
        **DATA,
        "taskId": "count",
        "trialId": "a",
        "datasetRef": "unavailable",
        "configurationId": "unavailable",
        "p0QcGateRegressionCount": 2,
        "harborJobRef": "jobs/7",
        "harborTrialRef": "unavailable",
        "taskTomlRef": "unavailable",
    }
    assert (document["status"], document["reason"]) == ("failed", "timeout")
    assert document["reward"] == {
        "value": 0.5,
        "ref": "r.json",
        "detailsRef": "unavailable",
        "detail": [1],
        "criteria": ["files-counted"],
        "failureCategory": "timeout",
    }
    assert document["trajectory"] == {
        "schema": "ATIF-v1.8",
        "ref": "trajectory.json",
        "exportStatus": "exported",
        "requiredFieldStatus": {"agent": True},
    }
    assert document["decisionInputs"] == {
        "p0QcGateRegressionCount": 2,
        "failureCategory": "timeout",
        "promotionEligible": False,
        "artifactManifestPresent": False,
        "trajectoryAtifCompatible": True,
    }
    assert document["refs"]["runtimeTranscriptRef"] == "facts.jsonl"
    assert document["refs"]["trajectoryRef"] == "trajectory.json"
    for name in ("agentQcReportRef", "harborTrialResultRef", "harborVerifierStdoutRef"):
        assert document["refs"][name] == "unavailable"
    assert [event["sequence"] for event in document["events"]] == [2, 3, 4, 5]


def test_the_document_of_a_trial_that_no_fact_is_of_has_only_what_is_common() -> None:
    document = part_of(story(), "b")
    assert document["trialId"] == "b"
    assert [event["sequence"] for event in document["events"]] == [2]


def test_a_trial_that_did_not_fail_gives_no_reason() -> None:
    document = part_of(story(), "z")
    assert document["status"] == "running"
    assert "reason" not in document


def test_tokens_and_dollars_of_a_trial_that_no_fact_tells_are_absent() -> None:
    told = Historian()
    ids: dict[str, Any] = {"thread_id": "main", "turn_id": "t1"}
    trial = ids | {"task_id": "count", "run_id": "r1", "benchmark": {**DATA, "trialId": "a"}}
    trial["refs"] = dict.fromkeys(REFS, "there")
    told.add("turn.started", {}, **ids)
    told.add("benchmark.trial.started", {}, **trial)
    told.add("cost.recorded", {"model": "m", "amount": "much", "currency": "USD"}, **ids)
    told.add("turn.completed", {"status": "completed"}, status="completed", **ids)
    told.add("benchmark.trial.completed", {"durationMs": 90}, **trial)
    metrics = part_of(told, "a")["metrics"]
    assert {"tokens", "costUsd"}.isdisjoint(metrics)


def test_the_document_of_a_trial_measures_what_its_turn_took() -> None:
    told = Historian()
    ids: dict[str, Any] = {"thread_id": "main", "turn_id": "t1"}
    trial = ids | {"task_id": "count", "run_id": "r1", "benchmark": {**DATA, "trialId": "a"}}
    trial["refs"] = dict.fromkeys(REFS, "there")
    told.add("turn.started", {}, **ids)
    told.add("benchmark.trial.started", {}, **trial)
    for amount in (0.25, 0.5):
        cost = {"model": "m", "inputTokens": 10, "outputTokens": 5}
        told.add("cost.recorded", {**cost, "amount": amount, "currency": "USD"}, **ids)
    told.add("cost.recorded", {"model": "m", "inputTokens": 1, "outputTokens": 1}, **ids)
    denied = {"tool": "rm", "decision": "deny", "decidedBy": {"kind": "rule", "name": "r"}}
    told.add("permission.evaluated", denied, request_id="p1", **ids)
    file = {"id": "f", "name": "a.txt", "size": 1, "mime": "text/plain", "sha256": "0" * 64}
    kept = {"bytes": 1, "sha256": "0" * 64, "file": file}
    told.add("output.spilled", kept, output_ref="0" * 64, **ids)
    told.add("turn.completed", {"status": "completed"}, status="completed", **ids)
    told.add("benchmark.trial.completed", {"durationMs": 90}, **trial)
    scored = trial | {"benchmark": {**DATA, "trialId": "a", "p0QcGateRegressionCount": 0}}
    told.add("benchmark.reward.recorded", {"reward": 1}, **scored)
    document = part_of(told, "a")
    assert document["metrics"] == {
        "reward": 1,
        "timeout": False,
        "evidenceComplete": True,
        "durationMs": 90,
        "deniedSideEffectCount": 1,
        "tokens": 32,
        "costUsd": 0.75,
        "artifactCount": 1,
    }
    assert document["decisionInputs"]["promotionEligible"] is True
    assert document["decisionInputs"]["failureCategory"] == "none"


def test_where_harbor_keeps_a_trial_may_stand_in_benchmark_or_in_refs() -> None:
    told = Historian()
    ids: dict[str, Any] = {"task_id": "count", "run_id": "r1", "refs": {"taskTomlRef": "t.toml"}}
    ids["benchmark"] = {**DATA, "trialId": "a", "harborJobRef": "jobs/7"}
    told.add("benchmark.trial.completed", {}, **ids)
    trial = book_of(told).trials["a"]
    assert trial.refs == {"harborJobRef": "jobs/7", "taskTomlRef": "t.toml"}
    assert part_of(told, "a")["benchmark"]["taskTomlRef"] == "t.toml"


def test_facts_with_the_names_of_before_are_read_as_those_of_now() -> None:
    told = Historian()
    before = {**DATA, "trialId": "a", "changedVariable": "model", "p0Regressions": 1}
    refs = {"harborJob": "jobs/7", "qcReport": "qc.json", "trajectory": "t.json"}
    ids: dict[str, Any] = {"task_id": "count", "run_id": "r1", "benchmark": before, "refs": refs}
    told.add("benchmark.trial.completed", {}, **ids)
    trial = book_of(told).trials["a"]
    assert trial.benchmark["singleChangedVariable"] == "model"
    assert trial.p0_regressions == 1
    assert trial.refs == {
        "harborJobRef": "jobs/7",
        "agentQcReportRef": "qc.json",
        "trajectoryRef": "t.json",
    }
