"""The public documents of a read model: the snapshot of a session, the read model of a thread.

Fields that do not apply are left out, or have the value `not_applicable` if the document requires
them. A gap is reported only if a fact reported it.
"""

from __future__ import annotations

from typing import Final

from msgspec import to_builtins

from arp.audit.models import entities
from arp.audit.models.costs import Cost
from arp.audit.models.reading import milliseconds
from arp.audit.models.records import Durations, EntityKind, Records, ordered
from arp.audit.models.state import State
from arp.audit.models.tasks import Task, Tasks
from arp.audit.models.turns import UNKNOWN_THREAD, Thread, TurnModel
from arp.ledger.fact import SCHEMA_VERSION
from arp.protocol.json_value import Json, JsonObject

NOT_APPLICABLE: Final = "not_applicable"

_EXPORT_KINDS: Final = {
    "evidence": "packs",
    "replay": "replays",
    "review": "reviews",
    "benchmark": "benchmarks",
}
"""Kind of an export → its list in an evidence summary; exports of unknown kinds are in `others`."""

_SANDBOX: Final = "sandbox mode network readable writable turnId sequence"
_COMPACTION: Final = (
    "status sequence turnId tokensBefore tokensAfter throughSequence summary reason"
)
_BOUNDARY: Final = "type sequence fromSequence throughSequence source reason"

STALE_MS: Final = 15 * 60 * 1000
"""Time without a fact after which a running turn is shown as stale, since its agent may be gone."""

_STATUSES: Final = "idle queued running blocked completed failed cancelled stale unknown"

THREAD_STATUSES: Final = frozenset(_STATUSES.split())
"""All statuses of a thread (ledger.md 4)."""


def snapshot_document(state: State, now: str | None) -> JsonObject:
    """Return the document of a whole session; see `ReadModel.snapshot`."""
    head, threads = state.head, state.threads
    ordered = sorted(threads.threads.values(), key=lambda thread: thread.first_sequence)
    document: JsonObject = {
        "schemaVersion": SCHEMA_VERSION,
        "runtimeId": state.runtime_id or "unknown",
        "sessionId": state.session_id or "unknown",
        "updatedAt": state.updated_at,
        "sequence": state.sequence,
        "recoveryCursor": {"epoch": head.epoch or "unknown", "sequence": state.sequence},
        "threads": [_thread(state, one, now) for one in ordered or [_no_thread()]],
        "tasks": [_task(task) for task in state.tasks.tasks.entries()],
        "taskSummary": _tasks(state.tasks),
        "permissionSandboxSummary": _permissions(state.records),
        "routingLimitSummary": _routing(state),
        "telemetrySummary": _telemetry(state),
        "evidenceSummary": _evidence(state.records, None),
        "evidenceRefs": [one["evidenceId"] for one in entities.EXPORTS.shown(state.records)],
        "benchmarkSummary": _benchmarks(state.records),
        "incidents": entities.INCIDENTS.shown(state.records),
        "diagnostics": entities.DIAGNOSTICS.shown(state.records),
        **{name: value for name, value in _head(state).items() if value},
        **{name: value for name, value in _work(state.records).items() if value},
    }
    return document


def _task(task: Task) -> JsonObject:
    """Return the document of a task; the profile requires artifacts as objects."""
    document: JsonObject = to_builtins(task)
    if task.artifacts:
        document["artifacts"] = [{"artifactId": name} for name in task.artifacts]
    return document


def _head(state: State) -> JsonObject:
    head = state.head
    return {
        "title": head.title,
        "workflow": head.workflow,
        "owner": head.owner,
        "createdAt": head.created_at,
    }


def _work(records: Records) -> JsonObject:
    """Return the parts that are empty in most sessions."""
    jobs = [
        {**job, "items": entities.ITEMS.entries(entities.items_of(job))}
        for job in entities.JOBS.shown(records)
    ]
    return {
        "artifacts": entities.ARTIFACTS.shown(records),
        "subagents": entities.SUBAGENTS.shown(records),
        "jobs": jobs,
        "channels": entities.CHANNELS.shown(records),
        "history": _history(records),
    }


def _history(records: Records) -> JsonObject:
    history: JsonObject = {
        "tokens": records.values.get("tokens"),
        "maxTokens": records.values.get("maxTokens"),
        "compactions": records.counted("history", "compactions") or None,
        "compaction": _newest(records, "compaction", _COMPACTION),
        "rollbacks": records.counted("history", "rollbacks") or None,
        "boundary": _newest(records, "boundary", _BOUNDARY),
        "storedModels": records.maps.get("storedModels"),
    }
    return {name: value for name, value in history.items() if value is not None}


def _newest(records: Records, name: str, fields: str) -> JsonObject | None:
    record = records.newest.get(name)
    return ordered(record, fields.split()) if record is not None else None


def thread_document(state: State, thread_id: str | None, now: str | None) -> JsonObject | None:
    """Return the document of one thread; see `ReadModel.thread`."""
    threads = state.threads.threads
    if thread_id is not None:
        thread = threads.get(thread_id)
    else:
        newest = max(threads.values(), key=lambda one: one.last_sequence, default=None)
        thread = newest or _no_thread()
    if thread is None:
        return None
    return {
        "schemaVersion": SCHEMA_VERSION,
        "runtimeId": state.runtime_id or "unknown",
        "sessionId": state.session_id or "unknown",
        "updatedAt": state.updated_at,
        "sequence": state.sequence,
        **_thread(state, thread, now),
        "permissionSandboxSummary": _permissions(state.records),
        "routingLimitSummary": _routing(state),
    }


def _no_thread() -> Thread:
    """Return a placeholder for the thread of a session, until a fact names the thread."""
    return Thread(thread_id=UNKNOWN_THREAD)


def _thread(state: State, thread: Thread, now: str | None) -> JsonObject:
    records, turns = state.records, thread.turns.entries()

    def own(entity: EntityKind) -> list[JsonObject]:
        """Return the records of the thread; a record without a thread belongs to every thread."""
        return [one for one in entity.shown(records) if _is_of(one, thread)]

    requests, limits = own(entities.REQUESTS), entities.LIMITS.shown(records)
    document: JsonObject = {
        "threadId": thread.thread_id,
        "status": thread_status(state, thread, now),
        "turns": [_turn(state, turn, requests, limits) for turn in turns],
        "pendingRequests": requests,
        "queuedTurns": _queued(thread),
        "incidents": own(entities.INCIDENTS),
        "diagnostics": own(entities.DIAGNOSTICS),
        "toolCalls": own(entities.TOOL_CALLS),
        "evidenceSummary": _evidence(records, thread.thread_id),
        "history": {
            "olderTurns": thread.turns.older,
            "through": state.sequence,
            **({"before": turns[0].first_sequence} if turns else {}),
        },
    }
    more: JsonObject = {
        "title": thread.title,
        "correlation": thread.correlation,
        "activeTurnId": thread.active_turn_id,
        "lastOutcome": to_builtins(thread.last_outcome) if thread.last_outcome else None,
        "processes": own(entities.PROCESSES),
        "outputs": own(entities.OUTPUTS),
    }
    return document | {name: value for name, value in more.items() if value}


def _is_of(record: JsonObject, thread: Thread) -> bool:
    return record.get("threadId") in (None, thread.thread_id)


def thread_status(state: State, thread: Thread, now: str | None) -> str:
    """Return the status of a thread.

    The first of these that applies:

    - A turn is active: `blocked` if it waits for a request or a quota, `stale` after `STALE_MS`
      without a fact, otherwise `running`.
    - Turns are queued: `queued`.
    - A `thread.updated` came after the last turn: its status.
    - The status of the last turn; `blocked` if a crash ended it while it waited for an answer.
    - `idle`, if there was no turn.
    """
    turn = thread.turns.open.get(thread.active_turn_id or "")
    if turn is not None:
        if turn.blocked_by_quota or _waits(state, thread, turn):
            return "blocked"
        silent = milliseconds(state.updated_at, now)
        return "stale" if silent is not None and silent > STALE_MS else "running"
    if thread.queue:
        return "queued"
    if thread.told_status is not None:
        return thread.told_status if thread.told_status in THREAD_STATUSES else "unknown"
    last = thread.last_outcome.status if thread.last_outcome is not None else "idle"
    return "blocked" if last == "waiting" else last


def _waits(state: State, thread: Thread, turn: TurnModel) -> bool:
    pending = state.records.read("requests").open.values()
    return any(one.get("turnId") == turn.turn_id and _is_of(one, thread) for one in pending)


def _turn(
    state: State, turn: TurnModel, requests: list[JsonObject], limits: list[JsonObject]
) -> JsonObject:
    """Return the document of a turn, with the limits that it hit and its cost."""
    document: JsonObject = to_builtins(turn)
    waits = any(one.get("turnId") == turn.turn_id for one in requests)
    if turn.status == "running" and (waits or turn.blocked_by_quota):
        document["status"] = "waiting"
    hit = [one for one in limits if one.get("turnId") == turn.turn_id]
    if hit:
        document["limits"] = hit
    cost = state.costs.by_turn.get(turn.turn_id)
    if cost is not None:
        document["cost"] = cost.document()
    return document


def _queued(thread: Thread) -> list[JsonObject]:
    """Return the queued turns, in order."""
    out: list[JsonObject] = []
    for position, turn_id in enumerate(thread.queue, 1):
        turn = thread.turns.get(turn_id)
        entry: JsonObject = {"turnId": turn_id, "position": position}
        if turn is not None:
            entry |= {"submittedAt": turn.submitted_at, "input": turn.input}
        out.append({name: value for name, value in entry.items() if value is not None})
    return out


# -- summaries -------------------------------------------------------------------------------------


def _tasks(tasks: Tasks) -> JsonObject:
    """Return the number of tasks by status."""
    return {
        "total": tasks.total,
        "byStatus": dict(sorted(tasks.counts.items())),
        "retries": tasks.retries,
        "older": tasks.tasks.older,
    }


def _permissions(records: Records) -> JsonObject:
    """Return the permission mode, pending approvals, decisions, and the sandbox."""
    decisions, policies = entities.DECISIONS.shown(records), records.maps.get("policies", {})
    more: JsonObject = {
        "permissionMode": policies.get("permissionMode"),
        "policies": policies,
        "pendingApprovals": [
            one
            for one in entities.REQUESTS.shown(records)
            if one["kind"] == "permission" or "tool" in one
        ],
        "decisions": decisions,
        "denials": [one for one in decisions if one["decision"] == "deny"],
        "decisionCounts": records.maps.get("decisions"),
        "olderDecisions": records.older("decisions"),
        "sandbox": _newest(records, "sandbox", _SANDBOX),
        "violations": entities.VIOLATIONS.shown(records),
        "olderViolations": records.older("violations"),
        "hooks": records.maps.get("hooks"),
    }
    return _applicable(more)


def _routing(state: State) -> JsonObject:
    """Return the model in use and the reason for its choice, the costs, and the limits by turn."""
    records, costs = state.records, state.costs
    chosen: JsonObject = records.newest.get("selected", {})
    more: JsonObject = {
        "taskProfile": records.values.get("profile"),
        "taskProfileTaskId": records.values.get("profileTaskId"),
        "candidateCount": records.values.get("candidateCount"),
        "candidates": records.values.get("candidates"),
        "selectedModel": chosen.get("model"),
        "selection": entities.CHOICES.document(chosen),
        "singleCandidate": chosen.get("kind") == "single_candidate",
        "notPossible": entities.CHOICES.document(records.newest.get("failed", {})),
        "fallbacks": entities.CHOICES.shown(records),
        "olderFallbacks": records.older("fallbacks"),
        "cost": _cost(costs.recorded),
        "estimatedCost": _cost(costs.estimated),
        "costByModel": {name: cost.document() for name, cost in costs.by_model.items()},
        "limits": entities.LIMITS.shown(records),
        "olderLimits": records.older("limits"),
        "quotas": records.maps.get("quotas"),
    }
    return _applicable(more)


def _cost(cost: Cost | None) -> JsonObject | None:
    return cost.document() if cost is not None else None


def _telemetry(state: State) -> JsonObject:
    """Return the number of facts by family, durations, and trace ids."""
    facts, records, threads = state.facts, state.records, state.threads
    families: dict[str, int] = {}
    for name, count in facts.items():
        family = name.partition(".")[0]
        families[family] = families.get(family, 0) + count
    times: dict[str, Durations] = {
        "queueWait": threads.queue_wait,
        "firstOutput": threads.first_output,
        "turn": threads.turn_time,
        **{name: records.times[name] for name in ("tool", "requestWait") if name in records.times},
    }
    more: JsonObject = {
        "facts": sum(facts.values()),
        "byFamily": dict(sorted(families.items())),
        "times": {name: to_builtins(spans) for name, spans in times.items() if spans.count},
        "traceIds": state.trace_ids,
        "secretsRedacted": records.counted("outputs", "redacted"),
        "outputsTruncated": records.counted("outputs", "truncated"),
        "outputsSpilled": facts.get("output.spilled", 0),
    }
    return _applicable(more)


def _evidence(records: Records, thread_id: str | None) -> JsonObject:
    """Return the exports of a session or of one of its threads.

    Args:
        records: Records of the session.
        thread_id: Restricts the result to exports of this thread or of no thread; `None` means all
            exports.
    """
    exports = [
        one
        for one in entities.EXPORTS.shown(records)
        if thread_id is None or one.get("threadId") in (None, thread_id)
    ]
    if not exports:
        return {"status": NOT_APPLICABLE}
    newest = max(exports, key=lambda one: one["lastSequence"])
    more: JsonObject = {
        "evidenceRefs": [one["evidenceId"] for one in exports],
        **{
            name: [one for one in exports if _EXPORT_KINDS.get(one["kind"], "others") == name]
            for name in (*_EXPORT_KINDS.values(), "others")
        },
        "verifications": [
            {"evidenceId": one["evidenceId"], **one["verification"]}
            for one in exports
            if isinstance(one.get("verification"), dict)
        ],
        "knownGaps": [
            {"evidenceId": one["evidenceId"], "gap": gap}
            for one in exports
            for gap in one.get("gaps", ())
        ],
        "older": records.older("exports"),
    }
    return {"status": newest["state"]} | {name: value for name, value in more.items() if value}


def _benchmarks(records: Records) -> JsonObject:
    """Return the trials, their rewards, and the decision of the last comparison."""
    comparisons, counts = entities.COMPARISONS.shown(records), records.maps.get("trials", {})
    last = comparisons[-1] if comparisons else JsonObject()
    rewards = counts.get("rewards", 0)
    more: JsonObject = {
        "datasetId": records.values.get("datasetId"),
        "datasetVersion": records.values.get("datasetVersion"),
        "datasetTasks": records.values.get("datasetTasks"),
        "configurations": records.maps.get("configurations"),
        "trials": entities.TRIALS.shown(records),
        "olderTrials": records.older("trials"),
        "counts": counts,
        "meanReward": records.values["rewardTotal"] / rewards if rewards else None,
        "comparisons": comparisons,
        "olderComparisons": records.older("comparisons"),
        "decision": last.get("decision"),
        "p0QcGateRegressionCount": last.get("p0QcGateRegressionCount"),
    }
    return _applicable(more, zeros=("meanReward", "p0QcGateRegressionCount"))


def _applicable(fields: JsonObject, zeros: tuple[str, ...] = ("candidateCount",)) -> JsonObject:
    """Return the fields that are not empty; `{"status": "not_applicable"}` if all are empty.

    Args:
        fields: Fields of a summary.
        zeros: Names of fields that count as not empty even if they are zero.
    """

    def says(name: str, value: Json) -> bool:
        return bool(value) or (name in zeros and value is not None)

    known = {name: value for name, value in fields.items() if says(name, value)}
    return known or {"status": NOT_APPLICABLE}
