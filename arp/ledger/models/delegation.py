"""Work that others do: subagents, jobs with their items, and the channels that are connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.models.reading import text, values, whole
from arp.ledger.models.window import Record, Window
from arp.protocol.json_value import Json

MOST_SUBAGENTS: Final = 50
MOST_JOBS: Final = 20
MOST_ITEMS: Final = 20
MOST_CHANNELS: Final = 50


class Subagent(Record, rename="camel", omit_defaults=True, kw_only=True):
    """Another agent that works for this session."""

    subagent_id: str
    status: str
    """What `subagent.status` said, or completed, failed, closed."""
    name: str | None = None
    objective: str | None = None
    message: str | None = None
    reason: str | None = None
    inputs: int = 0
    outputs: list[Json] = field(default_factory=list)
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None


class Item(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One item of a job; a failed one is retried alone, under the same id."""

    job_item_id: str
    status: str
    """running, completed or failed."""
    attempt: int | None = None
    failures: int = 0
    reason: str | None = None


class Job(Record, rename="camel", omit_defaults=True, kw_only=True):
    """A piece of background work."""

    job_id: str
    status: str
    """created, running, completed, failed or cancelled."""
    name: str | None = None
    done: int | None = None
    total: int | None = None
    failed: int | None = None
    message: str | None = None
    reason: str | None = None
    items: Window[Item] = field(default_factory=lambda: Window[Item]())
    task_id: str | None = None


class Channel(Record, rename="camel", omit_defaults=True, kw_only=True):
    """A renderer, or another place that the session is told on."""

    channel_id: str
    status: str
    """connected or disconnected."""
    encoding: str | None = None
    reason: str | None = None
    messages: int = 0


class Delegation(Struct, rename="camel", omit_defaults=True):
    """Subagents, jobs and channels of a session."""

    subagents: Window[Subagent] = field(default_factory=lambda: Window[Subagent]())
    jobs: Window[Job] = field(default_factory=lambda: Window[Job]())
    channels: Window[Channel] = field(default_factory=lambda: Window[Channel]())


# -- subagents -------------------------------------------------------------------------------------


def _subagent(delegation: Delegation, fact: Fact) -> Subagent:
    name = fact.subagent_id or "unknown"
    subagent = delegation.subagents.get(name)
    if subagent is None:
        subagent = Subagent(
            subagent_id=name,
            status="running",
            first_sequence=fact.sequence,
            thread_id=fact.thread_id,
            turn_id=fact.turn_id,
            task_id=fact.task_id,
        )
        delegation.subagents.begin(name, subagent, MOST_SUBAGENTS)
    subagent.last_sequence = fact.sequence
    return subagent


def _spawned(delegation: Delegation, fact: Fact) -> None:
    subagent = _subagent(delegation, fact)
    subagent.name = text(fact.payload, "name")
    subagent.objective = text(fact.payload, "objective")


def _subagent_status(delegation: Delegation, fact: Fact) -> None:
    subagent = _subagent(delegation, fact)
    if subagent.subagent_id in delegation.subagents.open:
        subagent.status = fact.status or subagent.status
    subagent.message = text(fact.payload, "message") or subagent.message


def _subagent_input(delegation: Delegation, fact: Fact) -> None:
    _subagent(delegation, fact).inputs += 1


def _subagent_ended(delegation: Delegation, fact: Fact) -> None:
    """Closed after an end keeps the end; closed before one is the end."""
    subagent = _subagent(delegation, fact)
    if subagent.subagent_id in delegation.subagents.open:
        subagent.status = fact.type.removeprefix("subagent.")
        subagent.reason = text(fact.payload, "reason")
        subagent.outputs = values(fact.payload, "outputs")
        delegation.subagents.end(subagent.subagent_id, MOST_SUBAGENTS)


# -- jobs ------------------------------------------------------------------------------------------


def _job(delegation: Delegation, fact: Fact) -> Job:
    name = fact.job_id or "unknown"
    job = delegation.jobs.get(name)
    if job is None:
        job = Job(job_id=name, status="created", first_sequence=fact.sequence, task_id=fact.task_id)
        delegation.jobs.begin(name, job, MOST_JOBS)
    job.last_sequence = fact.sequence
    return job


def _job_told(delegation: Delegation, fact: Fact) -> None:
    job, payload = _job(delegation, fact), fact.payload
    job.name = text(payload, "name") or job.name
    job.message = text(payload, "message") or job.message
    job.reason = text(payload, "reason") or job.reason
    for name in ("done", "total", "failed"):
        told = whole(payload, name)
        setattr(job, name, getattr(job, name) if told is None else told)


def _job_started(delegation: Delegation, fact: Fact) -> None:
    job = _job(delegation, fact)
    job.status = "running"
    delegation.jobs.reopen(job.job_id, MOST_JOBS)


def _job_ended(delegation: Delegation, fact: Fact) -> None:
    _job_told(delegation, fact)
    job = _job(delegation, fact)
    job.status = fact.type.removeprefix("job.")
    delegation.jobs.end(job.job_id, MOST_JOBS)


def _item(delegation: Delegation, fact: Fact) -> None:
    job, name = _job(delegation, fact), fact.job_item_id or "unknown"
    item = job.items.get(name)
    if item is None:
        item = Item(job_item_id=name, status="running", first_sequence=fact.sequence)
        job.items.begin(name, item, MOST_ITEMS)
    step = fact.type.removeprefix("job.item.")
    item.last_sequence = fact.sequence
    item.attempt = whole(fact.payload, "attempt") or item.attempt
    item.reason = text(fact.payload, "reason")
    if step == "started":
        item.status = "running"
        job.items.reopen(name, MOST_ITEMS)
    else:
        item.status = step
        item.failures += step == "failed"
        job.items.end(name, MOST_ITEMS)


# -- channels --------------------------------------------------------------------------------------


def _channel(delegation: Delegation, fact: Fact) -> Channel:
    name = fact.channel_id or "unknown"
    channel = delegation.channels.get(name)
    if channel is None:
        channel = Channel(channel_id=name, status="connected", first_sequence=fact.sequence)
        delegation.channels.begin(name, channel, MOST_CHANNELS)
    channel.last_sequence = fact.sequence
    return channel


def _connected(delegation: Delegation, fact: Fact) -> None:
    channel = _channel(delegation, fact)
    channel.status, channel.reason = "connected", None
    channel.encoding = text(fact.payload, "encoding")
    delegation.channels.reopen(channel.channel_id, MOST_CHANNELS)


def _disconnected(delegation: Delegation, fact: Fact) -> None:
    channel = _channel(delegation, fact)
    channel.status, channel.reason = "disconnected", text(fact.payload, "reason")
    delegation.channels.end(channel.channel_id, MOST_CHANNELS)


def _message(delegation: Delegation, fact: Fact) -> None:
    _channel(delegation, fact).messages += 1


RULES: Final[dict[str, Callable[[Delegation, Fact], None]]] = {
    "subagent.spawned": _spawned,
    "subagent.status": _subagent_status,
    "subagent.input": _subagent_input,
    "subagent.completed": _subagent_ended,
    "subagent.failed": _subagent_ended,
    "subagent.closed": _subagent_ended,
    "job.created": _job_told,
    "job.started": _job_started,
    "job.progress": _job_told,
    "job.item.started": _item,
    "job.item.completed": _item,
    "job.item.failed": _item,
    "job.completed": _job_ended,
    "job.failed": _job_ended,
    "job.cancelled": _job_ended,
    "channel.connected": _connected,
    "channel.resumed": _connected,
    "channel.disconnected": _disconnected,
    "channel.message": _message,
    "channel.permission_forwarded": _message,
    "channel.permission_returned": _message,
}
"""Type of a fact → what it changes here."""
