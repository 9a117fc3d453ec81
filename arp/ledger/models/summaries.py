"""The summaries of a session: tasks, permissions, routing, telemetry, evidence, benchmark."""

from __future__ import annotations

from typing import Final

from msgspec import to_builtins

from arp.ledger.models.benchmark import Benchmark
from arp.ledger.models.evidence import Evidence
from arp.ledger.models.requests import Requests
from arp.ledger.models.routing import Routing
from arp.ledger.models.state import State
from arp.ledger.models.tasks import Tasks
from arp.protocol.json_value import JsonObject

NOT_APPLICABLE: Final = "not_applicable"

_KINDS: Final = {
    "evidence": "packs",
    "replay": "replays",
    "review": "reviews",
    "benchmark": "benchmarks",
}
"""Kind of an export → where an evidence summary tells it; `others` has those of no known kind."""


def task_summary(tasks: Tasks) -> JsonObject:
    """Return how many tasks there are, by status."""
    return {
        "total": tasks.total,
        "byStatus": dict(sorted(tasks.counts.items())),
        "retries": tasks.retries,
        "older": tasks.tasks.older,
    }


def permission_summary(requests: Requests) -> JsonObject:
    """Return the mode, what is asked for, what was decided and by whom, and the sandbox."""
    pending = [one for one in requests.pending.entries() if one.kind == "permission" or one.tool]
    denials = [to_builtins(one) for one in requests.decisions if one.decision == "deny"]
    more: JsonObject = {
        "permissionMode": requests.policies.get("permissionMode"),
        "policies": requests.policies,
        "pendingApprovals": to_builtins(pending),
        "decisions": to_builtins(requests.decisions),
        "denials": denials,
        "decisionCounts": requests.counts,
        "olderDecisions": requests.older_decisions,
        "sandbox": to_builtins(requests.sandbox) if requests.sandbox else None,
        "violations": to_builtins(requests.violations),
        "olderViolations": requests.older_violations,
        "hooks": requests.hooks,
    }
    return _applicable(more)


def routing_summary(routing: Routing) -> JsonObject:
    """Return which model works and why, what it cost, and which limits were met in which turn."""
    chosen = routing.selected
    more: JsonObject = {
        "taskProfile": routing.task_profile,
        "taskProfileTaskId": routing.profile_task_id,
        "candidateCount": routing.candidate_count,
        "candidates": routing.candidates,
        "selectedModel": chosen.model if chosen else None,
        "selection": to_builtins(chosen) if chosen else None,
        "singleCandidate": chosen is not None and chosen.kind == "single_candidate",
        "notPossible": to_builtins(routing.failed) if routing.failed else None,
        "fallbacks": to_builtins(routing.fallbacks),
        "olderFallbacks": routing.older_fallbacks,
        "cost": routing.cost.document() if routing.cost else None,
        "estimatedCost": routing.estimate.document() if routing.estimate else None,
        "costByModel": {name: cost.document() for name, cost in routing.by_model.items()},
        "limits": to_builtins(routing.limits),
        "olderLimits": routing.older_limits,
        "quotas": to_builtins(routing.quotas),
    }
    return _applicable(more)


def telemetry_summary(state: State) -> JsonObject:
    """Return how much happened and how long it took, in milliseconds."""
    facts, threads = state.facts, state.threads
    families: dict[str, int] = {}
    for name, count in facts.items():
        family = name.partition(".")[0]
        families[family] = families.get(family, 0) + count
    times = {
        "queueWait": threads.queue_wait,
        "firstOutput": threads.first_output,
        "turn": threads.turn_time,
        "tool": state.calls.tool_time,
        "requestWait": state.requests.wait,
    }
    more: JsonObject = {
        "facts": sum(facts.values()),
        "byFamily": dict(sorted(families.items())),
        "times": {name: to_builtins(spans) for name, spans in times.items() if spans.count},
        "traceIds": state.trace_ids,
        "secretsRedacted": state.calls.redacted,
        "outputsTruncated": state.calls.truncated,
        "outputsSpilled": facts.get("output.spilled", 0),
    }
    return _applicable(more)


def evidence_summary(evidence: Evidence, thread_id: str | None) -> JsonObject:
    """Return what was exported, of a session or a thread of it.

    Args:
        evidence: Of the session.
        thread_id: Only what belongs to this thread, or to none; `None` = everything.
    """
    exports = [
        one
        for one in evidence.exports.entries()
        if thread_id is None or one.thread_id is None or one.thread_id == thread_id
    ]
    if not exports:
        return {"status": NOT_APPLICABLE}
    newest = max(exports, key=lambda one: one.last_sequence)
    more: JsonObject = {
        "evidenceRefs": [one.evidence_id for one in exports],
        **{
            name: [to_builtins(one) for one in exports if _KINDS.get(one.kind, "others") == name]
            for name in (*_KINDS.values(), "others")
        },
        "verifications": [
            {"evidenceId": one.evidence_id, **one.verification}
            for one in exports
            if isinstance(one.verification, dict)
        ],
        "knownGaps": [
            {"evidenceId": one.evidence_id, "gap": gap} for one in exports for gap in one.gaps
        ],
        "older": evidence.exports.older,
    }
    return {"status": newest.state} | {name: told for name, told in more.items() if told}


def evidence_refs(evidence: Evidence) -> list[str]:
    """Return the ids of the exports that are kept; `evidence_summary` tells what they are."""
    return [one.evidence_id for one in evidence.exports.entries()]


def benchmark_summary(benchmark: Benchmark) -> JsonObject:
    """Return the trials, what they scored, and what the last comparison decided."""
    last = benchmark.comparisons[-1] if benchmark.comparisons else None
    rewards = benchmark.counts.get("rewards", 0)
    more: JsonObject = {
        "datasetId": benchmark.dataset_id,
        "datasetVersion": benchmark.dataset_version,
        "datasetTasks": benchmark.dataset_tasks,
        "configurations": benchmark.configurations,
        "trials": to_builtins(benchmark.trials.entries()),
        "olderTrials": benchmark.trials.older,
        "counts": benchmark.counts,
        "meanReward": benchmark.reward_total / rewards if rewards else None,
        "comparisons": to_builtins(benchmark.comparisons),
        "olderComparisons": benchmark.older_comparisons,
        "decision": last.decision if last else None,
        "p0QcGateRegressionCount": last.p0_regressions if last else None,
    }
    return _applicable(more, kept=("meanReward", "p0QcGateRegressionCount"))


def _applicable(fields: JsonObject, kept: tuple[str, ...] = ("candidateCount",)) -> JsonObject:
    """Leave out what is empty; say so where nothing is left."""
    told = {
        name: value
        for name, value in fields.items()
        if value or (name in kept and value is not None)
    }
    return told or {"status": NOT_APPLICABLE}
