"""All that a read model remembers, in one value that can be written and read again.

What folds into which part is one table, made from the tables of the parts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from arp.audit.models import costs, tasks, turns
from arp.audit.models.entities import TABLES
from arp.audit.models.reading import part, text
from arp.audit.models.records import Records, Rule
from arp.ledger.fact import Fact
from arp.ledger.fact_types import REQUIRED_IDS

MODEL_VERSION: Final = 4
"""Raised with each change of what is remembered or of how facts fold: stored models of another
version are not read, but rebuilt."""

MOST_TRACES: Final = 10


class HeadModel(Struct, rename="camel", omit_defaults=True):
    """What a session is."""

    epoch: str | None = None
    workflow: str | None = None
    owner: str | None = None
    title: str | None = None
    created_at: str | None = None
    title_was_given: bool = False
    """`False`: the title is the beginning of the first input. Clients of the model can read it."""


class State(Struct, rename="camel", omit_defaults=True):
    """The result of all facts up to `sequence`."""

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
    head: HeadModel = field(default_factory=HeadModel)
    threads: turns.ThreadsModel = field(default_factory=turns.ThreadsModel)
    tasks: tasks.Tasks = field(default_factory=tasks.Tasks)
    costs: costs.Costs = field(default_factory=costs.Costs)
    records: Records = field(default_factory=Records)
    """What the rows of `entities` keep."""


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


def _said(head: HeadModel, fact: Fact) -> None:
    if head.title is None:
        typed = text(part(part(fact.payload, "input"), "data"), "text")
        head.title = " ".join(typed.split())[:80] or None if typed is not None else None


_HEAD: Final[dict[str, Rule]] = {
    "session.created": _created,
    "session.updated": _titled,
    "turn.submitted": _said,
}

_PARTS: Final = (
    ("head", _HEAD),
    ("threads", turns.RULES),
    ("tasks", tasks.RULES),
    ("costs", costs.RULES),
    *(("records", table) for table in TABLES),
)

RULES: Final[dict[str, tuple[tuple[str, Rule], ...]]] = {
    name: tuple((part_name, rules[name]) for part_name, rules in _PARTS if name in rules)
    for name in REQUIRED_IDS
}
"""Type of a fact → the parts of `State` that it changes, and how."""
