"""What is kept of the things that facts tell of, and the rows by which facts change it.

Theory of operation. A thing (a tool call, a job) is a record: a JSON object of what is known of it,
as documents show it. Those that are open stay until they end, so that a long queue never pushes out
what runs; of those that ended, the last few stay. Both are bounded: when one of the two is full,
its oldest record leaves and is counted.

What a fact changes in a record is a row of words, one for each field, in this order:

- `name`: the field of the payload with this name, read by its kind (`payload_fields`); nothing is
  known of it if the payload has none. `name:kind` names another kind, `name(one,other)` reads the
  first of these fields.
- `^name`: the field of the fact itself. `name@`: the time of the fact.
- `name+`: one more; `name+other`: more by what the field `other` of the payload says.
- `name=word`: this word; `name=*`: the last word of the fact's type.
- `<word`: the status; the record opens again. `>word`: the status; the record ends. `>` is `>*`.

A `?` behind a word keeps what was known where the fact says nothing, or nothing but a zero; `??`
keeps it only where the fact says nothing.
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
    """A record with types of its own, where much is decided by what is in it."""

    first_sequence: int = 0
    """Of the fact that began it."""
    last_sequence: int = 0
    """Of the newest fact about it."""


R = TypeVar("R")


class RecordWindow(Struct, Generic[R], omit_defaults=True):
    """Records by id: all that are open and the last that ended, up to a bound each."""

    open: dict[str, R] = field(default_factory=dict)
    closed: dict[str, R] = field(default_factory=dict)
    older: int = 0
    """How many left; one that comes back and leaves again counts again."""

    def get(self, key: str | None) -> R | None:
        """Return a record that is still kept."""
        if key is None:
            return None
        found = self.open.get(key)
        return found if found is not None else self.closed.get(key)

    def begin(self, key: str, record: R, most: int) -> None:
        """Add an open record; `most` are kept, the oldest leaves when there are more."""
        self.closed.pop(key, None)
        self.open[key] = record
        if len(self.open) > most:
            self._drop_oldest(self.open)

    def add_closed(self, key: str, record: R, most: int) -> None:
        """Add a record that has ended as it began."""
        self.closed[key] = record
        if len(self.closed) > most:
            self._drop_oldest(self.closed)

    def end(self, key: str, most: int) -> None:
        """Close an open record; `most` closed ones are kept."""
        self._move(key, self.open, self.closed, most)

    def reopen(self, key: str, most: int) -> None:
        """Open a closed record again; `most` open ones are kept."""
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
        """Return everything that is kept, in the order in which it began."""
        return sorted([*self.closed.values(), *self.open.values()], key=_first_sequence)


def _first_sequence(record: Any) -> Any:
    return record["firstSequence"] if isinstance(record, dict) else record.first_sequence


JsonWindow: TypeAlias = RecordWindow[JsonObject]


class Durations(Struct, rename="camel", omit_defaults=True):
    """How long things of one kind took, by the times that facts carry."""

    count: int = 0
    total_ms: int = 0
    max_ms: int = 0

    def add(self, began: str | None, ended: str) -> None:
        """Take one more, if both ends are known."""
        took = milliseconds(began, ended)
        if took is not None:
            self.count += 1
            self.total_ms = added(self.total_ms, took)
            self.max_ms = max(self.max_ms, took)


class Records(Struct, omit_defaults=True):
    """All that is kept by rows; the names in it are those of `entities`."""

    windows: dict[str, JsonWindow] = {}
    newest: dict[str, JsonObject] = {}
    """What counts is the last fact of a kind."""
    maps: dict[str, dict[str, Json]] = {}
    """Values and counts by name."""
    values: JsonObject = {}
    times: dict[str, Durations] = {}

    def window(self, name: str) -> JsonWindow:
        """Return the records of a kind, to be changed."""
        window = self.windows.get(name)
        if window is None:
            window = self.windows[name] = RecordWindow()
        return window

    def read(self, name: str) -> JsonWindow:
        """Return the records of a kind, to be read."""
        return self.windows.get(name) or RecordWindow()

    def older(self, name: str) -> int:
        """Return how many records of a kind left."""
        return self.read(name).older

    def count(self, group: str, name: str, more: int | None = 1) -> None:
        """Count more of something."""
        counts = self.maps.get(group)
        if counts is None:
            counts = self.maps[group] = {}
        counts[name] = added(counts.get(name, 0), more)

    def counted(self, group: str, name: str) -> int:
        """Return how many there were of something."""
        count: int = self.maps.get(group, {}).get(name, 0)
        return count

    def put(self, group: str, name: str, value: Json, most: int) -> None:
        """Keep a value under its name; beyond `most` names, no new ones."""
        known = self.maps.get(group)
        if known is None:
            known = self.maps[group] = {}
        if name in known or len(known) < most:
            known[name] = value

    def took(self, name: str, began: str | None, ended: str) -> None:
        """Take how long something took."""
        if name not in self.times:
            self.times[name] = Durations()
        self.times[name].add(began, ended)


Rule: TypeAlias = Callable[[Any, Fact], None]
"""Changes a part of the state by a fact."""


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
"""Kind of a field → how it is read from a payload: an expression, whose `{}` are the names."""

_SHORT_TEXT: Final = (
    "said[:TEXT_CHARACTERS] if (said := payload.get({})) and isinstance(said, str) else None"
)
"""As `text` of one name, without a call: most of what is kept are such texts."""

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
"""Type of a field of a payload → its kind; all others are texts."""

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
"""What is behind a word → how the value of its field is kept; `=`: there always is one."""

_NAMES_IN_ROWS: Final = {
    "TEXT_CHARACTERS": TEXT_CHARACTERS,
    **{one.__name__: one for one in (added, brief, flag, number, part, text, texts, values, whole)},
}
"""What the expressions above call."""


class Word(NamedTuple):
    """One word of a row."""

    name: str
    """Of the field of the record."""
    value: str
    """What the field becomes: an expression over `fact` and `payload`."""
    how: str
    """How it is kept: a key of `_STORES`."""


class FieldRow:
    """What a fact changes in a record: its words, in their order.

    Facts are folded by the million. So a row becomes a function, once, at its first use, in which
    each word is a statement; a loop over the words takes twice as long.

    Args:
        row: The words.
        is_first: The record has none of these fields yet.

    Raises:
        ValueError: One is no word.
    """

    def __init__(self, row: str, *, is_first: bool = False) -> None:
        self._row, self._words = row, [_word(word) for word in row.split()]
        if is_first:  # there is nothing to take away
            self._words = [one._replace(how=one.how or "??") for one in self._words]

    @cached_property
    def change(self) -> Callable[[JsonObject, Fact, JsonObject], None]:
        """Return the function of the row: it changes a record by a fact and a payload."""
        lines = [_STORES[how].format(name=name, value=value) for name, value, how in self._words]
        source = "\n    ".join(["def change(record, fact, payload):", *lines, "return None"])
        # All of the source comes from the tables of this package, nothing of it from a fact.
        scope: dict[str, Any] = dict(_NAMES_IN_ROWS)
        exec(compile(source, f"<row: {self._row}>", "exec"), scope)
        change: Callable[[JsonObject, Fact, JsonObject], None] = scope["change"]
        return change

    def made(self, fact: Fact) -> JsonObject:
        """Return the fields that a fact tells."""
        record: JsonObject = {}
        self.change(record, fact, fact.payload)
        return record


def _word(written: str) -> Word:
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


# -- kinds of things -------------------------------------------------------------------------------


class EntityKind:
    """A kind of thing: what is kept of it, and how many.

    Args:
        name: Of its window.
        fields: What is kept of one, in the order in which documents have it.
        most: How many open ones, and how many that ended.
        key: The id that joins its facts. Without one, each fact is about another thing.
        begin: Row of the fact that begins one.
    """

    def __init__(
        self, name: str, fields: str, most: tuple[int, int], *, key: str = "", begin: str = ""
    ) -> None:
        self.name, self.most = name, most
        self._fields = ("firstSequence", "lastSequence", *fields.split())
        self._key, self._key_of = key, attrgetter(ATTRIBUTES.get(key, "event_id"))
        self._begin = FieldRow(begin, is_first=True)

    def of(self, window: JsonWindow, fact: Fact, name: str | None = None) -> JsonObject:
        """Return the record that a fact is about, new if none is kept.

        Args:
            window: Where those of the kind are.
            fact: About it.
            name: Its id, where it is not in the fact itself.
        """
        key: str = name or self._key_of(fact) or "unknown"
        record = window.open.get(key) or window.closed.get(key)
        if record is None:
            return self._begun(window, fact, key)
        record["lastSequence"] = fact.sequence
        return record

    def _begun(self, window: JsonWindow, fact: Fact, key: str) -> JsonObject:
        place = fact.sequence
        record: JsonObject = {"firstSequence": place, "lastSequence": place, self._key: key}
        self._begin.change(record, fact, fact.payload)
        window.begin(key, record, self.most[0])
        return record

    def made(self, fact: Fact, payload: JsonObject | None = None) -> JsonObject:
        """Return a thing that one fact tells whole.

        Args:
            fact: Tells of it.
            payload: What is read as the payload of the fact; `None` = its own.
        """
        place = fact.sequence
        record: JsonObject = {"firstSequence": place, "lastSequence": place}
        self._begin.change(record, fact, fact.payload if payload is None else payload)
        return record

    def add(self, records: Records, record: JsonObject) -> None:
        """Add a thing that `made` returned; it counts as ended."""
        window = records.windows.get(self.name) or records.window(self.name)
        window.add_closed(str(record["firstSequence"]), record, self.most[1])

    def added(self, records: Records, fact: Fact) -> None:
        """Add a thing that one fact tells whole."""
        self.add(records, self.made(fact))

    def fold(self, row: str) -> Callable[[JsonWindow, Fact], JsonObject]:
        """Return how a fact changes the thing that it is about, whose record it gives back.

        Args:
            row: Words. Those behind `if_open` change no record that has ended.
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
            # By the id in the record: one of a damaged model must not pass for a good one.
            if guarded and record[self._key] in window.open:
                if_open.change(record, fact, fact.payload)
            if ends:
                window.end(record[self._key], self.most[1])
            elif reopens:
                window.reopen(record[self._key], self.most[0])
            return record

        return folded

    def rows(self, table: Mapping[str, str]) -> dict[str, Rule]:
        """Return the rules of a table: types, several separated by spaces, and their rows."""
        return {name: self.rule(row) for types, row in table.items() for name in types.split()}

    def rule(self, row: str) -> Rule:
        """Return the rule of a row."""
        fold, place = self.fold(row), self.name

        def rule(records: Records, fact: Fact) -> None:
            fold(records.windows.get(place) or records.window(place), fact)

        return rule

    def shown(self, records: Records) -> list[JsonObject]:
        """Return everything of the kind that is kept, in the order in which it began."""
        return self.entries(records.read(self.name))

    def entries(self, window: JsonWindow) -> list[JsonObject]:
        """Return the records of a window, in the order in which they began."""
        return [ordered(record, self._fields) for record in window.entries()]

    def document(self, record: JsonObject) -> JsonObject:
        """Return a record as documents have it."""
        return ordered(record, self._fields)


def ordered(record: JsonObject, fields: Iterable[str]) -> JsonObject:
    """Return the fields of a record that are known, in this order."""
    return {name: record[name] for name in fields if name in record}


def _with_status(row: str) -> FieldRow:
    plain = (f"status={one[1:] or '*'}" if one[0] in "<>" else one for one in row.split())
    return FieldRow(" ".join(plain))
