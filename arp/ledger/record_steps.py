"""Effects of facts on read models, as data that the row of a fact type contains.

A read model keeps one record for each entity, such as a tool call or a job. A record is a JSON
object; it is open until a fact ends it. Two effects are written as data: `ChangeRecord` changes the
record of the fact's entity step by step, and `AddRecord` adds a record that one fact describes
completely. An effect that needs logic is a function in `arp.audit.models`; its row names the table
of that function with `CustomRule`.

`arp.audit.models` defines the records and applies these effects. This module names them only,
because the ledger is below the read models and does not import them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from arp.ledger.fact import FactField
from arp.ledger.payload_fields import PayloadField

RecordKind: TypeAlias = Literal[
    "toolCalls", "processes", "violations", "limits", "subagents", "jobs", "channels", "exports",
    "artifacts", "incidents", "diagnostics",
]  # fmt: skip
"""Kinds of records that effects name: keys of `RECORD_KINDS` in `arp.audit.models.entities`."""

RuleTable: TypeAlias = Literal[
    "head", "threads", "tasks", "costs", "tools", "requests", "routing", "delegation", "incidents",
    "benchmarks", "history",
]  # fmt: skip
"""Tables of functions, from fact type to function: keys of `TABLES` in `arp.audit.models.state`."""

Reader: TypeAlias = Literal[
    "text", "text_or_unknown", "count", "number", "flag", "texts", "values", "json", "object"
]
"""Ways to read a field of a payload. Each cuts the value to a limit (`arp.audit.models.reading`).

A value of another type counts as absent; `text_or_unknown` then reads `unknown`.
"""

KeepOld: TypeAlias = Literal["if_absent", "if_empty"]
"""Whether a step keeps the old value of the record if the fact has no new value. `if_empty` keeps
it also if the new value is empty or zero."""


class Copy(Struct, frozen=True):
    """Copy a field of the payload to the record.

    If the payload does not have the field, it is removed from the record, unless `keep_old` is set.
    """

    source: PayloadField | str
    """Field of the payload. A plain name is a field of another object that is read like a payload;
    it is a text unless `read` is set."""
    to: str = ""
    """Field of the record; empty means the name of `source`."""
    or_else: tuple[PayloadField | str, ...] = ()
    """Texts or counts to read instead if `source` is absent: the first of them that is present."""
    read: Reader | None = None
    """How to read the field; `None` means by its type."""
    keep_old: KeepOld | None = None


class CopyFactField(Struct, frozen=True):
    """Copy a field of the fact itself, such as an id, to the field of the record with its name."""

    name: FactField
    keep_old: KeepOld | None = None


class SetTime(Struct, frozen=True):
    """Set a field of the record to the time of the fact."""

    to: str


class SetWord(Struct, frozen=True):
    """Set a field of the record to a constant text."""

    to: str
    word: str


class SetTypeWord(Struct, frozen=True):
    """Set a field of the record to the last word of the fact's type: `failed` for `job.failed`."""

    to: str


class AddTo(Struct, frozen=True):
    """Add the number in a payload field to a count of the record; add 1 if `source` is `None`."""

    to: str
    source: PayloadField | None = None


class Clear(Struct, frozen=True):
    """Remove a field of the record."""

    to: str


class Reopen(Struct, frozen=True):
    """Set the status, and open the record again if it has ended."""

    status: str


class End(Struct, frozen=True):
    """Set the status, and end the record."""

    status: str = ""
    """The new status; empty means the last word of the fact's type."""


RecordStep: TypeAlias = (
    Copy | CopyFactField | SetTime | SetWord | SetTypeWord | AddTo | Clear | Reopen | End
)
"""One change of a record. The steps of a fact are applied in their order."""


class ChangeRecord:
    """Change the record of the fact's entity; begin a record if there is none.

    Args:
        kind: Kind of the record.
        steps: Changes of the record.
        if_open: Further changes, which do not apply to a record that has ended.
    """

    __slots__ = ("if_open", "kind", "steps")

    def __init__(
        self, kind: RecordKind, *steps: RecordStep, if_open: Sequence[RecordStep] = ()
    ) -> None:
        self.kind: Final = kind
        self.steps: Final = steps
        self.if_open: Final = tuple(if_open)


class AddRecord(Struct, frozen=True):
    """Add a record that this fact describes completely."""

    kind: RecordKind


class CustomRule(Struct, frozen=True):
    """Call a function of `arp.audit.models`: the one for the fact's type in `table`."""

    table: RuleTable


Effect: TypeAlias = ChangeRecord | AddRecord | CustomRule
"""Effect of a fact on a read model."""


def copies(*sources: PayloadField | str, keep_old: KeepOld | None = None) -> tuple[Copy, ...]:
    """Return steps that copy several fields of the payload under their own names."""
    return tuple(Copy(source, keep_old=keep_old) for source in sources)


def fact_fields(*names: FactField, keep_old: KeepOld | None = None) -> tuple[CopyFactField, ...]:
    """Return steps that copy several fields of the fact itself."""
    return tuple(CopyFactField(name, keep_old) for name in names)
