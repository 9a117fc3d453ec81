"""Records of a read model, and the functions that change them by the steps of facts.

Theory of operation. A record describes one entity (a tool call, a job). It is a JSON object with
the known fields, in the same form as in documents. Open records and ended records are in two
separate groups, each with a limit, so that many ended records never evict an open one. If a group
is full, its oldest record is evicted and counted.

What a fact changes in a record is a sequence of steps (`arp.ledger.record_steps`), which
`RecordUpdate` compiles into one function. The rows of fact types in `arp.ledger.families` contain
the steps of most facts. `entities` adds the steps that begin records, and the steps of rules with
logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from arp.audit.models.reading import (
    TEXT_CHARACTERS,
    added,
    brief,
    flag,
    milliseconds,
    number,
    part,
    text,
    texts,
    values,
    whole,
)
from arp.ledger.fact import ATTRIBUTES, WRITTEN, Fact
from arp.ledger.fact_types import OBJECTS
from arp.ledger.payload_fields import Amount, Count, Name, Ordinal, PayloadField, Share
from arp.ledger.record_steps import (
    AddTo,
    Clear,
    Copy,
    CopyFactField,
    End,
    Reader,
    RecordStep,
    Reopen,
    SetTime,
    SetTypeWord,
    SetWord,
)
from arp.protocol.json_value import Json, JsonObject


class Record(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A typed record, for entities with logic of their own (turns, tasks)."""

    first_sequence: int = 0
    """Sequence number of the fact that began it."""
    last_sequence: int = 0
    """Sequence number of the newest fact about it."""


R = TypeVar("R")


class RecordWindow(Struct, Generic[R], omit_defaults=True):
    """Records by id: the open records and the newest ended records, each up to a limit."""

    open: dict[str, R] = field(default_factory=dict)
    closed: dict[str, R] = field(default_factory=dict)
    older: int = 0
    """Number of evictions. A record that comes back and is evicted again counts twice."""

    def get(self, key: str | None) -> R | None:
        """Return a record; `None` if it was evicted or never existed."""
        if key is None:
            return None
        found = self.open.get(key)
        return found if found is not None else self.closed.get(key)

    def begin(self, key: str, record: R, most: int) -> None:
        """Add an open record; evict the oldest one if there are more than `most`."""
        self.closed.pop(key, None)
        self.open[key] = record
        if len(self.open) > most:
            self._drop_oldest(self.open)

    def add_closed(self, key: str, record: R, most: int) -> None:
        """Add a record that ended at once; evict the oldest one if there are more than `most`."""
        self.closed[key] = record
        if len(self.closed) > most:
            self._drop_oldest(self.closed)

    def end(self, key: str, most: int) -> None:
        """Close an open record; keep at most `most` closed ones."""
        self._move(key, self.open, self.closed, most)

    def reopen(self, key: str, most: int) -> None:
        """Open a closed record again; keep at most `most` open ones."""
        self._move(key, self.closed, self.open, most)

    def _move(self, key: str, source: dict[str, R], target: dict[str, R], most: int) -> None:
        record = source.pop(key, None)
        if record is not None:
            target[key] = record
            if len(target) > most:
                self._drop_oldest(target)

    def _drop_oldest(self, records: dict[str, R]) -> None:
        del records[next(iter(records))]
        self.older += 1

    def entries(self) -> list[R]:
        """Return all records, in the order of their first facts."""
        return sorted([*self.closed.values(), *self.open.values()], key=_first_sequence)


def _first_sequence(record: Any) -> Any:
    return record["firstSequence"] if isinstance(record, dict) else record.first_sequence


JsonWindow: TypeAlias = RecordWindow[JsonObject]


class Durations(Struct, rename="camel", omit_defaults=True):
    """Durations of one kind, computed from the times of facts."""

    count: int = 0
    total_ms: int = 0
    max_ms: int = 0

    def add(self, began: str | None, ended: str) -> None:
        """Add the time between two facts, if both times are known and valid."""
        took = milliseconds(began, ended)
        if took is not None:
            self.count += 1
            self.total_ms = added(self.total_ms, took)
            self.max_ms = max(self.max_ms, took)


class Records(Struct, omit_defaults=True):
    """Everything that the rules of `entities` keep, under the names that are used there."""

    windows: dict[str, JsonWindow] = {}
    """Records of each kind."""
    newest: dict[str, JsonObject] = {}
    """The newest record of each kind that keeps only one, by name."""
    maps: dict[str, dict[str, Json]] = {}
    """Groups of values and of counts, by name."""
    values: JsonObject = {}
    """Single values, by name."""
    times: dict[str, Durations] = {}
    """Durations by name."""

    def window(self, name: str) -> JsonWindow:
        """Return the records of a kind in order to change them; create them if there are none."""
        window = self.windows.get(name)
        if window is None:
            window = self.windows[name] = RecordWindow()
        return window

    def read(self, name: str) -> JsonWindow:
        """Return the records of a kind. Read-only."""
        return self.windows.get(name) or RecordWindow()

    def older(self, name: str) -> int:
        """Return the number of evicted records of a kind."""
        return self.read(name).older

    def count(self, group: str, name: str, more: int | None = 1) -> None:
        """Add `more` to the count `name` of a group; `None` adds nothing."""
        counts = self.maps.get(group)
        if counts is None:
            counts = self.maps[group] = {}
        counts[name] = added(counts.get(name, 0), more)

    def counted(self, group: str, name: str) -> int:
        """Return the count `name` of a group."""
        count: int = self.maps.get(group, {}).get(name, 0)
        return count

    def put(self, group: str, name: str, value: Json, most: int) -> None:
        """Set the value `name` of a group; a new name is ignored if the group has `most` names."""
        known = self.maps.get(group)
        if known is None:
            known = self.maps[group] = {}
        if name in known or len(known) < most:
            known[name] = value

    def took(self, name: str, began: str | None, ended: str) -> None:
        """Add a duration under a name."""
        if name not in self.times:
            self.times[name] = Durations()
        self.times[name].add(began, ended)


Rule: TypeAlias = Callable[[Any, Fact], None]
"""Function that applies a fact to a part of the state."""


# -- steps -----------------------------------------------------------------------------------------

_EXPRESSIONS: Final[dict[Reader, str]] = {
    "text": "text(payload, {})",
    "text_or_unknown": "text(payload, {}) or 'unknown'",
    "count": "whole(payload, {})",
    "number": "number(payload, {})",
    "flag": "flag(payload, {})",
    "texts": "texts(payload, {}) or None",
    "values": "values(payload, {}) or None",
    "json": "brief(payload.get({}))",
    "object": "brief(part(payload, {}))",
}
"""Expression of each reader; `{}` is the name of the field in the payload."""

_SHORT_TEXT: Final = (
    "found[:TEXT_CHARACTERS] if (found := payload.get({})) and isinstance(found, str) else None"
)
"""Expression for a text that has one possible name: `text` without the call, because most fields
are such texts and a call would take longer."""

_READERS: Final[dict[Any, Reader]] = {
    Count: "count",
    Ordinal: "count",
    Amount: "number",
    Share: "number",
    float: "number",
    int: "number",
    bool: "flag",
    list[Name]: "texts",
    list[str]: "texts",
    list[Json]: "values",
    Json: "json",
}
"""Type of a payload field → its reader; fields of other types are read as texts."""

_TYPE_WORD: Final = "fact.type.rpartition('.')[2]"
"""Expression for the last word of the fact's type."""

_ASSIGNMENTS: Final = {
    "set": "record[{name!r}] = {value}",
    "replace": """value = {value}
    if value is not None:
        record[{name!r}] = value
    elif {name!r} in record:
        del record[{name!r}]""",
    "if_empty": """value = {value}
    if value:
        record[{name!r}] = value""",
    "if_absent": """value = {value}
    if value is not None:
        record[{name!r}] = value""",
    "add": """value = {value}
    if value:
        record[{name!r}] = added(record.get({name!r}, 0), value)""",
    "clear": "record.pop({name!r}, None)",
}
"""Ways to assign a value to a field of a record; `set` is for a value that is never absent."""

_NAMES_IN_EXPRESSIONS: Final = {
    "TEXT_CHARACTERS": TEXT_CHARACTERS,
    **{one.__name__: one for one in (added, brief, flag, number, part, text, texts, values, whole)},
}
"""Functions and constants that the expressions above use."""


class Assignment(NamedTuple):
    """One step as source code."""

    name: str
    """Name of the field of the record."""
    value: str
    """Expression over `fact` and `payload` that gives the value of the field."""
    how: str
    """Way to assign the value: a key of `_ASSIGNMENTS`."""


class RecordUpdate:
    """A sequence of steps that change a record by a fact.

    Millions of facts are folded, so the steps are compiled into a function at their first use, with
    one statement for each step. A loop over the steps would take twice as long.

    Args:
        steps: The steps.
        is_first: Whether the record is new, so that it has none of these fields yet.
    """

    def __init__(self, *steps: RecordStep, is_first: bool = False) -> None:
        self._assignments = [_assignment(step) for step in steps]
        if is_first:  # a new record has no old value to remove
            self._assignments = [
                one._replace(how="if_absent") if one.how == "replace" else one
                for one in self._assignments
            ]

    @cached_property
    def change(self) -> Callable[[JsonObject, Fact, JsonObject], None]:
        """Compiled function of the steps; it changes a record by a fact and a payload."""
        lines = [
            _ASSIGNMENTS[how].format(name=name, value=value)
            for name, value, how in self._assignments
        ]
        source = "\n    ".join(["def change(record, fact, payload):", *lines, "return None"])
        names = ", ".join(one.name for one in self._assignments)
        # The source comes from the tables of this project only. A fact cannot inject code.
        scope: dict[str, Any] = dict(_NAMES_IN_EXPRESSIONS)
        exec(compile(source, f"<steps for {names}>", "exec"), scope)
        change: Callable[[JsonObject, Fact, JsonObject], None] = scope["change"]
        return change

    def made(self, fact: Fact) -> JsonObject:
        """Return a new record with the fields that a fact sets."""
        record: JsonObject = {}
        self.change(record, fact, fact.payload)
        return record


def _assignment(step: RecordStep) -> Assignment:
    match step:
        case Copy():
            return _copy(step)
        case CopyFactField(name, keep_old):
            value = f"brief(fact.{name})" if name in OBJECTS else f"fact.{name}"
            return Assignment(WRITTEN[name], value, keep_old or "replace")
        case SetTime(to):
            return Assignment(to, "fact.timestamp", "set")
        case SetWord(to, word):
            return Assignment(to, repr(word), "set")
        case SetTypeWord(to):
            return Assignment(to, _TYPE_WORD, "set")
        case AddTo(to, source):
            value = "1" if source is None else f"whole(payload, {source.name!r})"
            return Assignment(to, value, "add")
        case Clear(to):
            return Assignment(to, "None", "clear")
        case Reopen(status) | End(status):
            return Assignment("status", repr(status) if status else _TYPE_WORD, "set")


def _copy(step: Copy) -> Assignment:
    names = [_name(one) for one in (step.source, *step.or_else)]
    reader = step.read
    if reader is None and isinstance(step.source, PayloadField):
        reader = _READERS.get(step.source.type)
    if len(names) == 1 and reader in (None, "text"):
        expression = _SHORT_TEXT
    else:
        expression = _EXPRESSIONS[reader or "text"]
    value = expression.format(", ".join(map(repr, names)))
    return Assignment(step.to or names[0], value, step.keep_old or "replace")


def _name(source: PayloadField | str) -> str:
    return source if isinstance(source, str) else source.name


# -- kinds of entities -----------------------------------------------------------------------------


class EntityKind:
    """A kind of entity: its fields, its id, and its limits.

    Args:
        name: Name of its window in `Records`.
        fields: Fields of a record, in the order of the documents.
        most: Maximum number of open records, and of ended ones.
        key: Id that joins the facts about one entity. Without a key, each fact describes an entity
            of its own.
        begin: Steps that the first fact of a record applies.
    """

    def __init__(
        self,
        name: str,
        fields: str,
        most: tuple[int, int],
        *,
        key: str = "",
        begin: Sequence[RecordStep] = (),
    ) -> None:
        self.name, self.most = name, most
        self._fields = ("firstSequence", "lastSequence", *fields.split())
        self._key, self._key_of = key, attrgetter(ATTRIBUTES.get(key, "event_id"))
        self._begin = RecordUpdate(*begin, is_first=True)

    def of(self, window: JsonWindow, fact: Fact, name: str | None = None) -> JsonObject:
        """Return the record of a fact; begin a new one if there is none.

        Args:
            window: Records of this kind.
            fact: Fact about the entity.
            name: Id of the entity, if it is not a field of the fact.
        """
        key: str = name or self._key_of(fact) or "unknown"
        record = window.open.get(key) or window.closed.get(key)
        if record is None:
            return self._begun(window, fact, key)
        record["lastSequence"] = fact.sequence
        return record

    def _begun(self, window: JsonWindow, fact: Fact, key: str) -> JsonObject:
        sequence = fact.sequence
        record: JsonObject = {"firstSequence": sequence, "lastSequence": sequence, self._key: key}
        self._begin.change(record, fact, fact.payload)
        window.begin(key, record, self.most[0])
        return record

    def made(self, fact: Fact, payload: JsonObject | None = None) -> JsonObject:
        """Return the record of an entity that one fact describes completely.

        Args:
            fact: The fact.
            payload: Object to read instead of the payload of the fact; `None` reads the payload.
        """
        sequence = fact.sequence
        record: JsonObject = {"firstSequence": sequence, "lastSequence": sequence}
        self._begin.change(record, fact, fact.payload if payload is None else payload)
        return record

    def add(self, records: Records, record: JsonObject) -> None:
        """Add a record that `made` returned to the ended records."""
        window = records.windows.get(self.name) or records.window(self.name)
        window.add_closed(str(record["firstSequence"]), record, self.most[1])

    def added(self, records: Records, fact: Fact) -> None:
        """Add the record of an entity that one fact describes completely."""
        self.add(records, self.made(fact))

    def fold(
        self, *steps: RecordStep, if_open: Sequence[RecordStep] = ()
    ) -> Callable[[JsonWindow, Fact], JsonObject]:
        """Return a function that applies a fact to its record, and returns the record.

        Args:
            steps: Changes of the record.
            if_open: Further changes, which do not apply to an ended record.
        """
        always, guarded = RecordUpdate(*steps), RecordUpdate(*if_open)
        key_of, is_guarded = self._key_of, bool(if_open)
        ends = any(isinstance(step, End) for step in (*steps, *if_open))
        reopens = any(isinstance(step, Reopen) for step in (*steps, *if_open))

        def folded(window: JsonWindow, fact: Fact) -> JsonObject:
            key = key_of(fact) or "unknown"
            record = window.open.get(key) or window.closed.get(key)
            if record is None:
                record = self._begun(window, fact, key)
            else:
                record["lastSequence"] = fact.sequence
            always.change(record, fact, fact.payload)
            # The id is read from the record: a record of a damaged model must not pass for a valid
            # one.
            if is_guarded and record[self._key] in window.open:
                guarded.change(record, fact, fact.payload)
            if ends:
                window.end(record[self._key], self.most[1])
            elif reopens:
                window.reopen(record[self._key], self.most[0])
            return record

        return folded

    def rule(self, *steps: RecordStep, if_open: Sequence[RecordStep] = ()) -> Rule:
        """Return the rule of a fact that changes its record; the arguments are those of `fold`."""
        fold, name = self.fold(*steps, if_open=if_open), self.name

        def rule(records: Records, fact: Fact) -> None:
            fold(records.windows.get(name) or records.window(name), fact)

        return rule

    def shown(self, records: Records) -> list[JsonObject]:
        """Return the documents of all records of this kind, in the order of their first facts."""
        return self.entries(records.read(self.name))

    def entries(self, window: JsonWindow) -> list[JsonObject]:
        """Return the documents of the records of a window, in the order of their first facts."""
        return [ordered(record, self._fields) for record in window.entries()]

    def document(self, record: JsonObject) -> JsonObject:
        """Return the document of a record."""
        return ordered(record, self._fields)


def ordered(record: JsonObject, fields: Iterable[str]) -> JsonObject:
    """Return the known fields of a record, in the given order."""
    return {name: record[name] for name in fields if name in record}
