"""What may happen in a history to tasks, subagents, jobs, channels and benchmark trials."""

from __future__ import annotations

from typing import Any, Final

from tests.ledger.historian import Historian
from tests.ledger.history_actions import ACTIONS, action

__all__ = ["ACTIONS"]

TASK_STEPS: Final[dict[str, dict[str, Any]]] = {
    "accepted": {},
    "queued": {"position": 2},
    "started": {},
    "updated": {"objective": "another"},
    "progress": {"done": 1, "total": 3, "fraction": 0.33, "message": "on it"},
    "blocked": {"reason": "no key", "blockedBy": ["task1"]},
    "paused": {},
    "resumed": {},
    "cancel_requested": {},
    "delegated": {"to": "sub"},
    "dependency.updated": {"dependsOn": ["task1", "task2"]},
    "profile.resolved": {"profile": {"size": "large"}},
}

TASK_ENDS: Final[dict[str, dict[str, Any]]] = {
    "cancelled": {},
    "timed_out": {"timeoutS": 3.5},
    "failed": {"reason": "no luck"},
    "lost": {"reason": "worker gone"},
    "completed": {"outputs": ["done"], "artifacts": ["file1"], "delivery": {"state": "pending"}},
    "archived": {},
}


@action
def task(h: Historian) -> None:
    parent = h.some("task")
    ids = h.begin("task", task_id=h.name("task"))
    edges = {"parent_task_id": parent["task_id"], "root_task_id": "task1"} if parent else {}
    h.add("task.created", {"objective": h.word(), **h.maybe(dependsOn=["task1"])}, **ids, **edges)


@action
def task_step(h: Historian) -> None:
    ids = h.some("task")
    if ids is None:
        return
    if h.chance.random() < 0.2:
        need = h.chance.choice(["input", "permission", "resource"])
        h.add("task.waiting", {"waitingFor": need}, **ids)
        return
    name = h.chance.choice(sorted(TASK_STEPS))
    h.add(f"task.{name}", TASK_STEPS[name], **ids)
    if h.chance.random() < 0.1:
        h.in_turn("run.status", h.maybe(reason=h.word()), status="preparing", **ids)


@action
def attempt(h: Historian) -> None:
    ids = h.some("task")
    if ids is None:
        return
    number = h.number(9)
    run = {"run_id": h.name("run"), **ids}
    h.in_turn("task.attempt.started", {"attempt": number}, **run)
    if h.chance.random() < 0.5:
        told = {"attempt": number, "reason": h.word(), **h.maybe(retryable=True)}
        h.in_turn("task.attempt.failed", told, **run)
        h.add("task.retrying", {"attempt": number + 1}, **ids)
    elif h.chance.random() < 0.8:
        h.in_turn("task.attempt.completed", {"attempt": number, "outputs": ["ok"]}, **run)


@action
def task_end(h: Historian) -> None:
    ids = h.end("task") if h.chance.random() < 0.8 else h.some("task")
    if ids is not None:
        name = h.chance.choice(sorted(TASK_ENDS))
        h.add(f"task.{name}", TASK_ENDS[name], **ids)


@action
def subagent(h: Historian) -> None:
    ids = h.begin("subagent", subagent_id=h.name("sub"))
    h.in_turn("subagent.spawned", h.maybe(name="helper", objective=h.word()), **ids)
    h.in_turn("subagent.status", {"message": h.word()}, status="running", **ids)
    h.in_turn("subagent.input", {"text": h.word()}, **ids)


@action
def subagent_end(h: Historian) -> None:
    ids = h.end("subagent")
    if ids is not None:
        how = h.chance.choice(["completed", "failed", "closed"])
        told: dict[str, dict[str, Any]] = {
            "failed": {"reason": h.word()},
            "completed": {"outputs": [1, {"a": None}]},
        }
        h.in_turn(f"subagent.{how}", told.get(how, {}), **ids)


@action
def job(h: Historian) -> None:
    ids = h.begin("job", job_id=h.name("job"))
    h.add("job.created", {"name": "import", "total": 3}, **ids)
    h.add("job.started", {}, **ids)


@action
def job_item(h: Historian) -> None:
    ids = h.some("job")
    if ids is None:
        return
    item, number = {"job_item_id": f"item{h.number(4)}", **ids}, h.number(3)
    h.add("job.item.started", {"attempt": number}, **item)
    if h.chance.random() < 0.4:
        h.add("job.item.failed", {"attempt": number, "reason": h.word()}, **item)
    else:
        h.add("job.item.completed", {"attempt": number}, **item)
        h.add("job.progress", {"done": number, "total": 3}, **ids)


@action
def job_end(h: Historian) -> None:
    ids = h.end("job")
    if ids is not None:
        how = h.chance.choice(["completed", "failed", "cancelled"])
        told: dict[str, dict[str, Any]] = {
            "completed": {"done": 3, "failed": 0},
            "failed": {"reason": h.word()},
        }
        h.add(f"job.{how}", told.get(how, {}), **ids)


@action
def channel(h: Historian) -> None:
    ids = h.begin("channel", channel_id=h.name("ch"))
    h.add("channel.connected", {"features": ["streaming"], "encoding": "json"}, **ids)
    h.add("channel.message", {"direction": "in", "text": h.word()}, **ids)


@action
def channel_end(h: Historian) -> None:
    ids = h.end("channel")
    if ids is None:
        return
    h.add("channel.disconnected", h.maybe(reason="gone"), **ids)
    if h.chance.random() < 0.4:
        h.begin("channel", **ids)
        h.add("channel.resumed", {"features": [], "encoding": "cbor"}, **ids)


def _benchmark(h: Historian, trial: str | None = None) -> dict[str, Any]:
    told = {"datasetId": "set", "datasetVersion": "2", "configurationId": "base"}
    more = h.maybe(
        role="candidate", singleChangedVariable="model", p0QcGateRegressionCount=h.number(3) - 1
    )
    return told | more | ({"trialId": trial} if trial else {})


@action
def benchmark(h: Historian) -> None:
    h.add("benchmark.dataset.resolved", h.maybe(tasks=["one", "two"]), benchmark=_benchmark(h))
    told = {"configuration": {"model": "big", "temperature": 0.5}}
    h.add("benchmark.configuration.resolved", told, benchmark=_benchmark(h))


@action
def trial(h: Historian) -> None:
    ids = h.begin("trial", task_id=h.name("task"), run_id=h.name("run"), trial=h.name("trial"))
    h.in_turn("benchmark.trial.started", {}, **_trial(h, ids, {"harborJobRef": "job"}))


def _trial(h: Historian, ids: dict[str, str], refs: dict[str, str]) -> dict[str, Any]:
    benchmark = _benchmark(h, ids["trial"])
    return {"task_id": ids["task_id"], "run_id": ids["run_id"]} | {
        "benchmark": benchmark,
        "refs": refs,
    }


@action
def trial_end(h: Historian) -> None:
    ids = h.end("trial")
    if ids is None:
        return
    if h.chance.random() < 0.7:
        refs = {"trajectoryRef": "t.json", "rewardRef": "reward.json"}
        h.add("benchmark.trial.completed", h.maybe(durationMs=9), **_trial(h, ids, refs))
        told = {"reward": h.number(100) / 100, **h.maybe(detail={"tests": 3})}
        h.add("benchmark.reward.recorded", told, **_trial(h, ids, refs))
    else:
        told = {"reason": h.word()}
        h.add("benchmark.trial.failed", told, **_trial(h, ids, {"trajectoryRef": "t.json"}))


@action
def compare(h: Historian) -> None:
    comparison = {
        "baseline": "base",
        "candidate": "new",
        "meanRewardDelta": 0.25,
        "timeoutRateDelta": -1,
        "evidenceCompletenessRate": 1.0,
        "p0QcGateRegressionCount": 0,
        "decision": h.chance.choice(["promote", "revert", "hold"]),
    }
    refs = {"agentQcReportRef": "qc.json"}
    told = {"comparison": comparison, "refs": refs, "benchmark": _benchmark(h)}
    h.add("benchmark.comparison.completed", h.maybe(reason=h.word()), **told)
