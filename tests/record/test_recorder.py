"""`record(type, payload)`, what joins facts, and what needs more than one."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact_types import ProfileViolation
from arp.ledger.payload_fields import Benchmark, BenchmarkRefs, Candidate, Comparison
from arp.record.outputs import KeptOutput
from tests.record.rig import Recording

SHA = "0" * 64
BENCHMARK = Benchmark("swe", "2", "c1", "x", "candidate", "model")
REFS = BenchmarkRefs(trajectory="trajectory.json", reward="reward.json")


async def test_everything_within_a_run_carries_its_ids() -> None:
    recording = Recording()
    inner = recording.record.within(task_id="a", run_id="a.1")
    await inner.process("make").output("x" * 3_000)
    inner("runtime.warning", {"message": "slow"})
    told = recording.told()
    assert len(told) == 4
    assert {(ids["task_id"], ids["run_id"]) for _, _, ids in told} == {("a", "a.1")}


@pytest.mark.parametrize(
    ("type_name", "payload", "ids"),
    [
        ("thread.started", {"title": "Second", "x-acme": 1}, {}),
        ("thread.updated", {"reason": "nobody answers"}, {"status": "stale"}),
        ("session.updated", {"title": "Sales"}, {}),
        ("runtime.warning", {"message": "the clock went back", "detail": {"ms": 3}}, {}),
        ("reasoning.summary", {"text": "It is small."}, {}),
        ("output.expired", {"reason": "older than a month"}, {"output_ref": SHA}),
        ("sandbox.applied", {"sandbox": "workspace", "network": False, "writable": []}, {}),
        ("sandbox.violation", {"sandbox": "workspace", "operation": "connect"}, {}),
        ("policy.changed", {"policy": "permissionMode", "value": "ask", "previous": "allow"}, {}),
        ("channel.message", {"direction": "in", "text": "hello"}, {"channel_id": "room"}),
        (
            "channel.permission_forwarded",
            {"tool": "shell", "to": "operator"},
            {"channel_id": "room", "request_id": "r"},
        ),
        (
            "channel.permission_returned",
            {"tool": "shell", "decision": "allow"},
            {"channel_id": "room", "request_id": "r"},
        ),
        ("context.resolved", {"tokens": 900, "maxTokens": 1_000, "sources": ["history"]}, {}),
        ("history.window.loaded", {"fromSequence": 5, "throughSequence": 9}, {}),
        ("history.reconstructed", {"throughSequence": 9, "source": "ledger"}, {}),
        ("history.rollback.started", {"toSequence": 4}, {"request_id": "back"}),
        (
            "history.rollback.completed",
            {"toSequence": 4, "removedTurns": ["t2", "t3"]},
            {"request_id": "back"},
        ),
        ("cost.estimated", {"amount": 0.5, "currency": "EUR", "model": "m"}, {}),
        ("rate_limit.hit", {"limit": "requests per minute", "retryAfterS": 2.5}, {}),
        ("quota.low", {"quota": "tokens", "remaining": 100, "total": 1_000}, {}),
        ("quota.blocked", {"quota": "tokens", "remaining": 0}, {}),
        ("limit.changed", {"limit": "max_turns", "value": 20, "previous": 10}, {}),
        ("routing.decided", {"model": "large", "reason": "long text"}, {}),
        (
            "routing.fallback.applied",
            {"failedModel": "large", "model": "small", "reason": "overloaded"},
            {},
        ),
        ("snapshot.updated", {"readModel": "session", "throughSequence": 9, "bytes": 120}, {}),
        ("snapshot.repaired", {"readModel": "session", "throughSequence": 9, "reason": "x"}, {}),
        (
            "evidence.changed",
            {"kind": "evidence", "state": "exported", "verification": {"outcome": "passed"}},
            {"evidence_id": "e-1"},
        ),
    ],
)
def test_a_fact_of_any_type_is_recorded_by_its_name(
    type_name: str, payload: dict[str, Any], ids: dict[str, Any]
) -> None:
    """In the turn, and with the ids that are given."""
    recording = Recording()
    recording.record(type_name, payload, **ids)
    (fact,) = recording.facts()
    assert (fact.type, fact.payload) == (type_name, payload)
    assert (fact.thread_id, fact.turn_id) == ("main", "t1")
    assert {name: getattr(fact, name) for name in ids} == ids


def test_what_belongs_to_no_call_of_a_tool_says_so() -> None:
    """ledger.md 1: a missing correlation is written as `unavailable`."""
    recording = Recording()
    recording.record.tools(["read", "write"])
    none = {"step_id": "unavailable", "tool_call_id": "unavailable"}
    assert recording.told() == [("tool.catalog.resolved", {"tools": ["read", "write"]}, none)]


def test_a_fact_without_a_payload_needs_none() -> None:
    recording = Recording()
    recording.record("job.started", job_id="j")
    assert recording.told() == [("job.started", {}, {"job_id": "j"})]


def test_what_the_session_records_itself_is_refused() -> None:
    recording = Recording()
    with pytest.raises(ProfileViolation, match="recorded by the session itself"):
        recording.record("turn.started", {})


# -- routing -----------------------------------------------------------------------------------


def test_one_candidate_is_no_error() -> None:
    """ledger.md 6: one model candidate is `routing.single_candidate`, not an error."""
    recording = Recording()
    asked: list[str | Candidate] = ["small", Candidate("large", "acme", excluded="no key")]
    assert recording.record.route(asked) == Candidate("small")
    large = {"model": "large", "provider": "acme", "excluded": "no key"}
    assert recording.told() == [
        ("routing.candidates.resolved", {"candidates": [{"model": "small"}, large]}, {}),
        ("routing.single_candidate", {"model": "small"}, {}),
    ]


def test_no_candidate_says_why() -> None:
    recording = Recording()
    route = recording.record.route
    assert route([], "no model is set up") is None
    assert route([Candidate("large", excluded="no key")]) is None
    large = {"model": "large", "excluded": "no key"}
    assert recording.told() == [
        ("routing.candidates.resolved", {"candidates": []}, {}),
        ("routing.not_possible", {"reason": "no model is set up", "candidates": []}, {}),
        ("routing.candidates.resolved", {"candidates": [large]}, {}),
        (
            "routing.not_possible",
            {"reason": "no candidate can be taken", "candidates": [large]},
            {},
        ),
    ]


def test_of_several_candidates_somebody_decides() -> None:
    recording = Recording()
    assert recording.record.route(["small", "large"]) is None
    assert [name for name, _, _ in recording.told()] == ["routing.candidates.resolved"]


# -- files -------------------------------------------------------------------------------------


def test_a_file_says_where_its_bytes_are() -> None:
    recording = Recording()
    recording.record.file("report", "r.md", mime="text/markdown", kept=KeptOutput("#", 9_000, SHA))
    recording.record.file("report", "r.md", sha256=SHA)
    whole = {"name": "r.md", "mime": "text/markdown", "sha256": SHA, "bytes": 9_000}
    ids = {"artifact_id": "report"}
    assert recording.told() == [
        ("artifact.changed", whole, {**ids, "output_ref": SHA}),
        ("artifact.changed", {"name": "r.md", "sha256": SHA}, ids),
    ]


def test_a_file_is_on_no_screen() -> None:
    recording = Recording()
    recording.record.file("report", "r.md")
    assert list(recording.session.screen.surfaces) == ["main"]
    assert recording.session.screen.surfaces["main"].nodes == {}


# -- benchmarks --------------------------------------------------------------------------------


def test_a_trial_is_joined_by_its_task_its_run_and_its_refs() -> None:
    """ledger.md 1: trial and reward also need `taskId`, `runId`, `refs`."""
    recording = Recording()
    run = recording.record.within(benchmark=BENCHMARK)
    run("benchmark.dataset.resolved", {"tasks": ["fix-1"]})
    trial = run.within(task_id="fix-1", run_id="r1", refs=REFS)
    trial("benchmark.trial.started", {"attempt": 1})
    trial("benchmark.reward.recorded", {"reward": 0.5, "detail": {"tests": 3}})
    benchmark = {
        "datasetId": "swe",
        "datasetVersion": "2",
        "configurationId": "c1",
        "trialId": "x",
        "role": "candidate",
        "singleChangedVariable": "model",
    }
    refs = {"trajectoryRef": "trajectory.json", "rewardRef": "reward.json"}
    ids = {"benchmark": benchmark, "task_id": "fix-1", "run_id": "r1", "refs": refs}
    assert recording.told() == [
        ("benchmark.dataset.resolved", {"tasks": ["fix-1"]}, {"benchmark": benchmark}),
        ("benchmark.trial.started", {"attempt": 1}, ids),
        ("benchmark.reward.recorded", {"reward": 0.5, "detail": {"tests": 3}}, ids),
    ]


def test_a_comparison_says_what_was_decided() -> None:
    recording = Recording()
    comparison = Comparison("c0", "c1", 0.1, -1, 1.0, 0, "promote")
    ids = {"benchmark": BENCHMARK, "comparison": comparison, "refs": REFS}
    recording.record("benchmark.comparison.completed", {"reason": "better"}, **ids)
    ((_, payload, told),) = recording.told()
    assert payload == {"reason": "better"}
    assert told["comparison"] == {
        "baseline": "c0",
        "candidate": "c1",
        "meanRewardDelta": 0.1,
        "timeoutRateDelta": -1,
        "evidenceCompletenessRate": 1.0,
        "p0QcGateRegressionCount": 0,
        "decision": "promote",
    }


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ({"benchmark": BENCHMARK, "refs": {}}, r"benchmark\.trial\.started needs refs"),
        (
            {"benchmark": Benchmark("", "2"), "refs": REFS},
            r"benchmark\.datasetId: expected a text that is not",
        ),
        ({"benchmark": BENCHMARK, "refs": {"rewardRef": 3}}, r"refs\.rewardRef: expected"),
    ],
)
def test_a_trial_without_refs_or_of_no_dataset_is_refused(ids: dict[str, Any], told: str) -> None:
    recording = Recording()
    with pytest.raises(ProfileViolation, match=told):
        recording.record("benchmark.trial.started", {}, task_id="a", run_id="r", **ids)
    assert recording.facts() == []
