"""All that a read model remembers, in one value that can be written and read again.

What folds into which part is one table, made from the tables of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.fact_types import REQUIRED_IDS
from arp.ledger.models import (
    benchmark,
    calls,
    delegation,
    evidence,
    history,
    incidents,
    requests,
    routing,
    tasks,
    turns,
)
from arp.ledger.models.reading import part, text

MODEL_VERSION: Final = 2
"""Raised with each change of what is remembered or of how facts fold: stored models of another
version are not read, but rebuilt."""

MOST_TRACES: Final = 10


class Head(Struct, rename="camel", omit_defaults=True):
    """What a session is."""

    epoch: str | None = None
    workflow: str | None = None
    owner: str | None = None
    title: str | None = None
    created_at: str | None = None
    title_was_given: bool = False
    """Otherwise it is the beginning of what was said first."""


class State(Struct, rename="camel", omit_defaults=True):
    """Everything that facts up to `sequence` have come to."""

    version: int
    sequence: int = 0
    """Of the newest fact that was folded; 0: none was."""
    session_id: str = ""
    runtime_id: str = ""
    updated_at: str = ""
    facts: dict[str, int] = {}
    """How many of each type; `other` are those that this version does not know."""
    trace_ids: list[str] = []
    """The last that facts named."""
    head: Head = field(default_factory=Head)
    threads: turns.Threads = field(default_factory=turns.Threads)
    requests: requests.Requests = field(default_factory=requests.Requests)
    calls: calls.Calls = field(default_factory=calls.Calls)
    incidents: incidents.Incidents = field(default_factory=incidents.Incidents)
    tasks: tasks.Tasks = field(default_factory=tasks.Tasks)
    routing: routing.Routing = field(default_factory=routing.Routing)
    evidence: evidence.Evidence = field(default_factory=evidence.Evidence)
    benchmark: benchmark.Benchmark = field(default_factory=benchmark.Benchmark)
    delegation: delegation.Delegation = field(default_factory=delegation.Delegation)
    history: history.History = field(default_factory=history.History)


def _created(head: Head, fact: Fact) -> None:
    payload = fact.payload
    head.epoch = text(payload, "epoch")
    head.workflow = text(payload, "workflow")
    head.owner = text(payload, "owner")
    head.created_at = fact.timestamp
    _titled(head, fact)


def _titled(head: Head, fact: Fact) -> None:
    title = text(fact.payload, "title")
    if title is not None:
        head.title, head.title_was_given = title, True


def _said(head: Head, fact: Fact) -> None:
    if head.title is None:
        said = text(part(part(fact.payload, "input"), "data"), "text")
        head.title = " ".join(said.split())[:80] or None if said is not None else None


_HEAD: Final[dict[str, Callable[[Head, Fact], None]]] = {
    "session.created": _created,
    "session.updated": _titled,
    "turn.submitted": _said,
}

Rule: TypeAlias = Callable[[Any, Fact], None]

_PARTS: Final[dict[str, Mapping[str, Rule]]] = {
    "head": _HEAD,
    "threads": turns.RULES,
    "requests": requests.RULES,
    "calls": calls.RULES,
    "incidents": incidents.RULES,
    "tasks": tasks.RULES,
    "routing": routing.RULES,
    "evidence": evidence.RULES,
    "benchmark": benchmark.RULES,
    "delegation": delegation.RULES,
    "history": history.RULES,
}

RULES: Final[dict[str, tuple[tuple[str, Rule], ...]]] = {
    name: tuple((part_name, rules[name]) for part_name, rules in _PARTS.items() if name in rules)
    for name in REQUIRED_IDS
}
"""Type of a fact → the parts of `State` that it changes, and how."""
