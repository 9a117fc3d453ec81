"""Records of a read model, and the rows that define how facts change them.

Theory of operation. A record describes one entity (a tool call, a job). It is a JSON object with
the known fields, in the form in which documents show it. Open records and ended records are in two
separate groups, each with a limit, so that many ended records never evict an open one. If a group
is full, its oldest record is evicted and counted.

A row defines what a fact changes in a record. It is a list of words, one for each field that
changes:

- `name`: the field of the payload with this name, read by its kind (`payload_fields`). The field of
  the record is removed if the payload has none. `name:kind` reads it as another kind;
  `name(one,other)` reads the first of these fields that the payload has.
- `^name`: the field of the fact itself. `name@`: the time of the fact.
- `name+`: adds one. `name+other`: adds the field `other` of the payload.
- `name=word`: this word. `name=*`: the last word of the fact's type.
- `<word`: sets the status and reopens the record. `>word`: sets the status and ends the record.
  `>` is short for `>*`.

A `?` after a word keeps the old value if the new one is absent, empty or zero; `??` keeps it only
if the new one is absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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
from arp.ledger.fact import ATTRIBUTES, Fact
from arp.ledger.fact_types import OBJECTS
from arp.ledger.payload_fields import FIELDS, Amount, Count, Name, Ordinal, Share
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
    """Everything that the rows of `entities` keep, under the names that are used there."""

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


# -- words -----------------------------------------------------------------------------------------

_READERS: Final[dict[str, str]] = {
    "text": "text(payload, {})",
    "named": "text(payload, {}) or 'unknown'",
    "count": "whole(payload, {})",
    "number": "number(payload, {})",
    "flag": "flag(payload, {})",
    "texts": "texts(payload, {}) or None",
    "values": "values(payload, {}) or None",
    "json": "brief(payload.get({}))",
    "object": "brief(part(payload, {}))",
    "never": "None",
}
"""Kind of a field → expression that reads the field from a payload; `{}` is its name there."""

_SHORT_TEXT: Final = (
    "found[:TEXT_CHARACTERS] if (found := payload.get({})) and isinstance(found, str) else None"
)
"""Expression for a text with one name. It is `text` without a call, since most fields are texts."""

_KINDS: Final[dict[Any, str]] = {
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
"""Type of a payload field → its kind; all other types are texts."""

_WORD: Final = re.compile(r"(\^)?(\w+)(?::(\w+))?(?:\(([\w,]+)\)|=([\w*]+)|(@)|(\+)(\w*))?(\??\??)")

_STORES: Final = {
    "=": "record[{name!r}] = {value}",
    "": """value = {value}
    if value is not None:
        record[{name!r}] = value
    elif {name!r} in record:
        del record[{name!r}]""",
    "?": """value = {value}
    if value:
        record[{name!r}] = value""",
    "??": """value = {value}
    if value is not None:
        record[{name!r}] = value""",
    "+": """value = {value}
    if value:
        record[{name!r}] = added(record.get({name!r}, 0), value)""",
}
"""Suffix of a word → statement that stores the value; `=` is for a value that is never absent."""

_NAMES_IN_ROWS: Final = {
    "TEXT_CHARACTERS": TEXT_CHARACTERS,
    **{one.__name__: one for one in (added, brief, flag, number, part, text, texts, values, whole)},
}
"""Functions and constants that the expressions above use."""


class Word(NamedTuple):
    """One word of a row, parsed."""

    name: str
    """Name of the field of the record."""
    value: str
    """Expression over `fact` and `payload` that gives the value of the field."""
    how: str
    """Way to store the value: a key of `_STORES`."""


class FieldRow:
    """A row: the changes that a fact makes to a record.

    Millions of facts are folded, so a row is compiled into a function at its first use, with one
    statement for each word. A loop over the words would take twice as long.

    Args:
        row: Words of the row, separated by spaces.
        is_first: Whether the row applies to new records, which have none of these fields yet.

    Raises:
        ValueError: A word is not valid.
    """

    def __init__(self, row: str, *, is_first: bool = False) -> None:
        self._row, self._words = row, [_word(word) for word in row.split()]
        if is_first:  # a new record has no old value to remove
            self._words = [one._replace(how=one.how or "??") for one in self._words]

    @cached_property
    def change(self) -> Callable[[JsonObject, Fact, JsonObject], None]:
        """Function of the row. It applies a fact and a payload to a record."""
        lines = [_STORES[how].format(name=name, value=value) for name, value, how in self._words]
        source = "\n    ".join(["def change(record, fact, payload):", *lines, "return None"])
        # The source comes from the tables of this package only. A fact cannot inject code.
        scope: dict[str, Any] = dict(_NAMES_IN_ROWS)
        exec(compile(source, f"<row: {self._row}>", "exec"), scope)
        change: Callable[[JsonObject, Fact, JsonObject], None] = scope["change"]
        return change

    def made(self, fact: Fact) -> JsonObject:
        """Return a new record with the fields that a fact sets."""
        record: JsonObject = {}
        self.change(record, fact, fact.payload)
        return record


def _word(written: str) -> Word:
    """Parse a word of a row."""
    match = _WORD.fullmatch(written)
    if match is None:
        raise ValueError(f"no word of a row: {written!r}")
    of_fact, name, kind, sources, literal, at, adds, more, how = match.groups()
    if at:
        return Word(name, "fact.timestamp", "=")
    if of_fact:
        read = f"fact.{ATTRIBUTES[name]}"
        return Word(name, f"brief({read})" if ATTRIBUTES[name] in OBJECTS else read, how)
    if literal:
        value = repr(literal) if literal != "*" else "fact.type.rpartition('.')[2]"
        return Word(name, value, "=")
    if adds:
        return Word(name, f"whole(payload, {more!r})" if more else "1", "+")
    names = sources.split(",") if sources else [name]
    kind = kind or _KINDS.get(FIELDS.get(names[0], (str, ""))[0], "text")
    reader = _SHORT_TEXT if kind == "text" and len(names) == 1 else _READERS[kind]
    return Word(name, reader.format(", ".join(map(repr, names))), how)


# -- kinds of entities -----------------------------------------------------------------------------


class EntityKind:
    """A kind of entity: its fields, its id, and its limits.

    Args:
        name: Name of its window in `Records`.
        fields: Fields of a record, in the order of the documents.
        most: Maximum number of open records, and of ended ones.
        key: Id that joins the facts about one entity. Without a key, each fact is about another
            entity.
        begin: Row of the fact that begins a record.
    """

    def __init__(
        self, name: str, fields: str, most: tuple[int, int], *, key: str = "", begin: str = ""
    ) -> None:
        self.name, self.most = name, most
        self._fields = ("firstSequence", "lastSequence", *fields.split())
        self._key, self._key_of = key, attrgetter(ATTRIBUTES.get(key, "event_id"))
        self._begin = FieldRow(begin, is_first=True)

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
        """Add a record that `made` returned, to the ended ones: its one fact is also its last."""
        window = records.windows.get(self.name) or records.window(self.name)
        window.add_closed(str(record["firstSequence"]), record, self.most[1])

    def added(self, records: Records, fact: Fact) -> None:
        """Add the record of an entity that one fact describes completely."""
        self.add(records, self.made(fact))

    def fold(self, row: str) -> Callable[[JsonWindow, Fact], JsonObject]:
        """Return a function that applies a fact to its record, and returns the record.

        Args:
            row: Words of the row. The words after `if_open` do not apply to an ended record.
        """
        given, _, guarded = row.partition("if_open")
        always, if_open = _with_status(given), _with_status(guarded)
        key_of, ends, reopens = self._key_of, ">" in row, "<" in row

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
            if guarded and record[self._key] in window.open:
                if_open.change(record, fact, fact.payload)
            if ends:
                window.end(record[self._key], self.most[1])
            elif reopens:
                window.reopen(record[self._key], self.most[0])
            return record

        return folded

    def rows(self, table: Mapping[str, str]) -> dict[str, Rule]:
        """Return the rules of a table: fact types, separated by spaces → row."""
        return {name: self.rule(row) for types, row in table.items() for name in types.split()}

    def rule(self, row: str) -> Rule:
        """Return the rule of a row."""
        fold, name = self.fold(row), self.name

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


def _with_status(row: str) -> FieldRow:
    """Parse a row; `<word` and `>word` set the status."""
    plain = (f"status={one[1:] or '*'}" if one[0] in "<>" else one for one in row.split())
    return FieldRow(" ".join(plain))
