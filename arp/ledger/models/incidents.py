"""What went wrong, and what is worth knowing besides: one line each, with what it belongs to.

A cancel is nobody's fault, and one candidate is no error: neither is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from arp.ledger.fact import Fact
from arp.ledger.models.reading import brief, number, text
from arp.ledger.models.window import Record, keep
from arp.protocol.json_value import Json

MOST_INCIDENTS: Final = 50
MOST_DIAGNOSTICS: Final = 30


class Incident(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One line."""

    type: str
    """Of the fact that tells it."""
    at: str
    message: str | None = None
    code: int | float | None = None
    by: Json = None
    """Which rule, mode, hook or host policy denied."""
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    tool_call_id: str | None = None
    process_id: str | None = None
    subagent_id: str | None = None
    job_id: str | None = None
    job_item_id: str | None = None


class Incidents(Struct, rename="camel", omit_defaults=True):
    """The last of each, over all threads."""

    incidents: list[Incident] = []
    older_incidents: int = 0
    diagnostics: list[Incident] = []
    older_diagnostics: int = 0


_WRONG: Final = """
runtime.error model.failed tool.failed process.failed sandbox.violation hook.failed
context.compaction.failed routing.not_possible rate_limit.hit quota.blocked
task.failed task.lost task.timed_out task.attempt.failed subagent.failed
job.failed job.item.failed benchmark.trial.failed
"""

_WORTH_KNOWING: Final = """
runtime.warning snapshot.repaired history.reconstructed history.rollback.completed
quota.low output.truncated output.redacted output.expired routing.fallback.applied
task.retrying process.terminated
"""

_SAYS: Final = (
    "error", "message", "reason", "limit", "quota", "operation", "signal", "title", "tool",
)  # fmt: skip
"""Fields that tell what happened, best first."""


def _line(fact: Fact) -> Incident:
    payload = fact.payload
    return Incident(
        type=fact.type,
        at=fact.timestamp,
        message=text(payload, *_SAYS) or fact.status_reason,
        code=number(payload, "code"),
        by=brief(payload.get("deniedBy") or payload.get("decidedBy")),
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        task_id=fact.task_id,
        run_id=fact.run_id,
        tool_call_id=fact.tool_call_id,
        process_id=fact.process_id,
        subagent_id=fact.subagent_id,
        job_id=fact.job_id,
        job_item_id=fact.job_item_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )


def _incident(kept: Incidents, fact: Fact) -> None:
    kept.older_incidents += keep(kept.incidents, _line(fact), MOST_INCIDENTS)


def _diagnostic(kept: Incidents, fact: Fact) -> None:
    kept.older_diagnostics += keep(kept.diagnostics, _line(fact), MOST_DIAGNOSTICS)


def _turn_failed(kept: Incidents, fact: Fact) -> None:
    if fact.status_reason != "cancelled":
        _incident(kept, fact)


def _permission(kept: Incidents, fact: Fact) -> None:
    if fact.payload.get("decision") == "deny":
        _incident(kept, fact)


RULES: Final[dict[str, Callable[[Incidents, Fact], None]]] = {
    "turn.failed": _turn_failed,
    "permission.evaluated": _permission,
    "permission.resolved": _permission,
    **dict.fromkeys(_WRONG.split(), _incident),
    **dict.fromkeys(_WORTH_KNOWING.split(), _diagnostic),
}
"""Type of a fact → whether it is an incident or a diagnostic."""
