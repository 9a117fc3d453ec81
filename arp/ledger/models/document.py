"""What is given out of a read model: the session's snapshot and the thread's read model.

What does not apply is left out, or says `not_applicable` where the document must have it; no gap
is told that nobody found.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins

from arp.ledger.fact import SCHEMA_VERSION
from arp.ledger.models.requests import Request
from arp.ledger.models.span import milliseconds
from arp.ledger.models.state import State
from arp.ledger.models.summaries import (
    benchmark_summary,
    evidence_refs,
    evidence_summary,
    permission_summary,
    routing_summary,
    task_summary,
    telemetry_summary,
)
from arp.ledger.models.tasks import Task
from arp.ledger.models.turns import UNKNOWN_THREAD, Thread, Turn
from arp.protocol.json_value import JsonObject

STALE_MS: Final = 15 * 60 * 1000
"""A turn that runs and says nothing for so long may have nobody left who works on it."""

_STATUSES: Final = "idle queued running blocked completed failed cancelled stale unknown"

THREAD_STATUSES: Final = frozenset(_STATUSES.split())
"""Every status that a thread may have (ledger.md 4)."""


def snapshot_document(state: State, now: str | None) -> JsonObject:
    """Return the document of a whole session; see `ReadModel.snapshot`."""
    head, threads = state.head, state.threads
    told = sorted(threads.threads.values(), key=lambda thread: thread.first_sequence)
    document: JsonObject = {
        "schemaVersion": SCHEMA_VERSION,
        "runtimeId": state.runtime_id or "unknown",
        "sessionId": state.session_id or "unknown",
        "updatedAt": state.updated_at,
        "sequence": state.sequence,
        "recoveryCursor": {"epoch": head.epoch or "unknown", "sequence": state.sequence},
        "threads": [_thread(state, one, now) for one in told or [_no_thread()]],
        "tasks": [_task(task) for task in state.tasks.tasks.entries()],
        "taskSummary": task_summary(state.tasks),
        "permissionSandboxSummary": permission_summary(state.requests),
        "routingLimitSummary": routing_summary(state.routing),
        "telemetrySummary": telemetry_summary(state),
        "evidenceSummary": evidence_summary(state.evidence, None),
        "evidenceRefs": evidence_refs(state.evidence),
        "benchmarkSummary": benchmark_summary(state.benchmark),
        "incidents": _lines(state, "incidents", None),
        "diagnostics": _lines(state, "diagnostics", None),
        **{name: told for name, told in _head(state).items() if told},
        **{name: told for name, told in _work(state).items() if told},
    }
    return document


def _task(task: Task) -> JsonObject:
    """Return a task; the profile wants its artifacts as objects."""
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


def _work(state: State) -> JsonObject:
    """Return what most sessions have nothing of."""
    work = state.delegation
    return {
        "artifacts": to_builtins(state.evidence.artifacts.entries()),
        "subagents": to_builtins(work.subagents.entries()),
        "jobs": [
            {**to_builtins(job), "items": to_builtins(job.items.entries())}
            for job in work.jobs.entries()
        ],
        "channels": to_builtins(work.channels.entries()),
        "history": to_builtins(state.history),
    }


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
        "permissionSandboxSummary": permission_summary(state.requests),
        "routingLimitSummary": routing_summary(state.routing),
    }


def _no_thread() -> Thread:
    """Stands for the thread of a session of which no fact names one yet."""
    return Thread(thread_id=UNKNOWN_THREAD)


def _thread(state: State, thread: Thread, now: str | None) -> JsonObject:
    turns = thread.turns.entries()
    requests = [one for one in state.requests.pending.entries() if _is_of(one, thread)]
    calls = state.calls
    document: JsonObject = {
        "threadId": thread.thread_id,
        "status": thread_status(state, thread, now),
        "turns": [_turn(state, turn, requests) for turn in turns],
        "pendingRequests": [to_builtins(one) for one in requests],
        "queuedTurns": _queued(thread),
        "incidents": _lines(state, "incidents", thread),
        "diagnostics": _lines(state, "diagnostics", thread),
        "toolCalls": [to_builtins(one) for one in calls.tools.entries() if _is_of(one, thread)],
        "evidenceSummary": evidence_summary(state.evidence, thread.thread_id),
        "history": {
            "olderTurns": thread.turns.older,
            "through": state.sequence,
            **({"before": turns[0].first_sequence} if turns else {}),
        },
    }
    more: JsonObject = {
        "title": thread.title,
        "activeTurnId": thread.active_turn_id,
        "lastOutcome": to_builtins(thread.last_outcome) if thread.last_outcome else None,
        "processes": [to_builtins(one) for one in calls.processes.entries() if _is_of(one, thread)],
        "outputs": [to_builtins(one) for one in calls.outputs if _is_of(one, thread)],
    }
    return document | {name: told for name, told in more.items() if told}


def _is_of(entry: Any, thread: Thread) -> bool:
    """Return whether something belongs to a thread; what names none belongs to any."""
    return entry.thread_id is None or entry.thread_id == thread.thread_id


def thread_status(state: State, thread: Thread, now: str | None) -> str:
    """Return where a thread stands.

    It runs or is blocked while a turn is active; else turns are queued; else what
    `thread.updated` said since the last turn counts, or how that turn ended. A thread that never
    had a turn is idle.
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
    return thread.last_outcome.status if thread.last_outcome is not None else "idle"


def _waits(state: State, thread: Thread, turn: Turn) -> bool:
    pending = state.requests.pending.open.values()
    return any(one.turn_id == turn.turn_id and _is_of(one, thread) for one in pending)


def _turn(state: State, turn: Turn, requests: list[Request]) -> JsonObject:
    """Return a turn with the limits that it hit and what it cost."""
    document: JsonObject = to_builtins(turn)
    waits = any(one.turn_id == turn.turn_id for one in requests)
    if turn.status == "running" and (waits or turn.blocked_by_quota):
        document["status"] = "waiting"
    routing = state.routing
    limits = [to_builtins(one) for one in routing.limits if one.turn_id == turn.turn_id]
    if limits:
        document["limits"] = limits
    cost = routing.by_turn.get(turn.turn_id)
    if cost is not None:
        document["cost"] = cost.document()
    return document


def _queued(thread: Thread) -> list[JsonObject]:
    """Return the queued turns, in order."""
    line: list[JsonObject] = []
    for position, turn_id in enumerate(thread.queue, 1):
        turn = thread.turns.get(turn_id)
        entry: JsonObject = {"turnId": turn_id, "position": position}
        if turn is not None:
            entry |= {"submittedAt": turn.submitted_at, "input": turn.input}
        line.append({name: told for name, told in entry.items() if told is not None})
    return line


def _lines(state: State, name: str, thread: Thread | None) -> list[JsonObject]:
    kept = state.incidents.incidents if name == "incidents" else state.incidents.diagnostics
    return [to_builtins(one) for one in kept if thread is None or _is_of(one, thread)]
