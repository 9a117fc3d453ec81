"""The whole state of a read model, in one value that can be stored.

`RULES` has the rules of each fact type, made from the effects in its row.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from arp.audit.models import costs, entities, tasks, turns
from arp.audit.models.reading import part, text
from arp.audit.models.records import Records, Rule
from arp.ledger.fact import Fact
from arp.ledger.fact_types import FACT_TYPES
from arp.ledger.record_steps import CustomRule, Effect, RuleTable

MODEL_VERSION: Final = 4
"""Version of stored models. Increase it with each change of the state or of the fold: stored models
of another version are rebuilt."""

MOST_TRACES: Final = 10
"""Number of trace ids that are kept."""


class HeadModel(Struct, rename="camel", omit_defaults=True):
    """Identity and title of a session."""

    epoch: str | None = None
    workflow: str | None = None
    owner: str | None = None
    title: str | None = None
    created_at: str | None = None
    title_was_given: bool = False
    """Whether `session.created` or `session.updated` set the title. Otherwise the title is the
    beginning of the first input. No document has this field; readers of the model can use it."""


class State(Struct, rename="camel", omit_defaults=True):
    """The result of all facts up to `sequence`."""

    version: int
    sequence: int = 0
    """Sequence number of the newest folded fact; 0 if there is none."""
    session_id: str = ""
    runtime_id: str = ""
    updated_at: str = ""
    facts: dict[str, int] = {}
    """Number of facts by type; `other` counts the types that this version does not know."""
    trace_ids: list[str] = []
    """The newest trace ids in facts, oldest first."""
    head: HeadModel = field(default_factory=HeadModel)
    threads: turns.ThreadsModel = field(default_factory=turns.ThreadsModel)
    tasks: tasks.Tasks = field(default_factory=tasks.Tasks)
    costs: costs.Costs = field(default_factory=costs.Costs)
    records: Records = field(default_factory=Records)
    """Records of the kinds in `entities`."""


def _created(head: HeadModel, fact: Fact) -> None:
    payload = fact.payload
    head.epoch = text(payload, "epoch")
    head.workflow = text(payload, "workflow")
    head.owner = text(payload, "owner")
    head.created_at = fact.timestamp
    _titled(head, fact)


def _titled(head: HeadModel, fact: Fact) -> None:
    title = text(fact.payload, "title")
    if title is not None:
        head.title, head.title_was_given = title, True


def _title_from_input(head: HeadModel, fact: Fact) -> None:
    """Use the beginning of the first input as the title, if the session has no title yet."""
    if head.title is None:
        typed = text(part(part(fact.payload, "input"), "data"), "text")
        head.title = " ".join(typed.split())[:80] or None if typed is not None else None


HEAD_RULES: Final[dict[str, Rule]] = {
    "session.created": _created,
    "session.updated": _titled,
    "turn.submitted": _title_from_input,
}

TABLES: Final[dict[RuleTable, tuple[str, dict[str, Rule]]]] = {
    "head": ("head", HEAD_RULES),
    "threads": ("threads", turns.RULES),
    "tasks": ("tasks", tasks.RULES),
    "costs": ("costs", costs.RULES),
    "tools": ("records", entities.TOOL_RULES),
    "requests": ("records", entities.REQUEST_RULES),
    "routing": ("records", entities.ROUTING_RULES),
    "delegation": ("records", entities.DELEGATION_RULES),
    "incidents": ("records", entities.INCIDENT_RULES),
    "benchmarks": ("records", entities.BENCHMARK_RULES),
    "history": ("records", entities.HISTORY_RULES),
}
"""Name of a table, as used in the rows of fact types → the part of `State` that its rules change,
and these rules by fact type."""


def _rule(fact_type: str, effect: Effect) -> tuple[str, Rule]:
    if isinstance(effect, CustomRule):
        part_name, table = TABLES[effect.table]
        return part_name, table[fact_type]
    return "records", entities.effect_rule(effect)


RULES: Final[dict[str, tuple[tuple[str, Rule], ...]]] = {
    name: tuple(_rule(name, effect) for effect in row.effects) for name, row in FACT_TYPES.items()
}
"""Fact type → parts of `State` that it changes, each with its rule."""
