"""What is kept of the things that facts tell of, and the rows by which facts change it.

Theory of operation. A thing (a tool call, a job) is a record: a JSON object of what is known of it,
as documents show it. Those that are open stay until they end, so that a long queue never pushes out
what runs; of those that ended, the last few stay. Both are bounded: when one of the two is full,
its oldest record leaves and is counted.

What a fact changes in a record is a row of words, one for each field:

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
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from arp.ledger.fact import ATTRIBUTES, Fact
from arp.ledger.fact_types import OBJECTS
from arp.ledger.models.reading import (
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
    """JsonWindow by id: all that are open and the last that ended, up to a bound each."""

    open: dict[str, R] = field(default_factory=dict)
    closed: dict[str, R] = field(default_factory=dict)
    older: int = 0
    """How many left; one that comes back and leaves again counts again."""

    def get(self, key: str | None) -> R | None:
        """Return a record that is still records."""
        if key is None:
            return None
        found = self.open.get(key)
        return found if found is not None else self.closed.get(key)

    def begin(self, key: str, record: R, most: int) -> None:
        """Add an open record; `most` are records, the oldest leaves when there are more."""
        self.closed.pop(key, None)
        self.open[key] = record
        self._trim(self.open, most)

    def end(self, key: str, most: int) -> None:
        """Close an open record; `most` closed ones are records."""
        self._move(key, self.open, self.closed, most)

    def reopen(self, key: str, most: int) -> None:
        """Open a closed record again; `most` open ones are records."""
        self._move(key, self.closed, self.open, most)

    def _move(self, key: str, source: dict[str, R], target: dict[str, R], most: int) -> None:
        record = source.pop(key, None)
        if record is not None:
            target[key] = record
            self._trim(target, most)

    def _trim(self, records: dict[str, R], most: int) -> None:
        if len(records) > most:
            del records[next(iter(records))]
            self.older += 1

    def entries(self) -> list[R]:
        """Return everything that is records, in the order in which it began."""
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
            window = self.windows[name] = JsonWindow()
        return window

    def read(self, name: str) -> JsonWindow:
        """Return the records of a kind, to be read."""
        return self.windows.get(name) or JsonWindow()

    def older(self, name: str) -> int:
        """Return how many records of a kind left."""
        return self.read(name).older

    def count(self, group: str, name: str, more: int | None = 1) -> None:
        """Count more of something."""
        counts = self.maps.setdefault(group, {})
        counts[name] = added(counts.get(name, 0), more)

    def counted(self, group: str, name: str) -> int:
        """Return how many there were of something."""
        count: int = self.maps.get(group, {}).get(name, 0)
        return count

    def put(self, group: str, name: str, value: Json, most: int) -> None:
        """Keep a value under its name; beyond `most` names, no new ones."""
        known = self.maps.setdefault(group, {})
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

_READERS: Final[dict[str, Callable[..., Json]]] = {
    "text": text,
    "named": lambda payload, *names: text(payload, *names) or "unknown",
    "count": whole,
    "number": number,
    "flag": flag,
    "texts": lambda payload, name: texts(payload, name) or None,
    "values": lambda payload, name: values(payload, name) or None,
    "json": lambda payload, name: brief(payload.get(name)),
    "object": lambda payload, name: brief(part(payload, name)),
    "never": lambda payload, name: None,
}
"""Kind of a field → how it is read from a payload."""

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


class Word(NamedTuple):
    """One word of a row."""

    name: str
    """Of the field of the record."""
    read: Callable[[Fact], Json]
    how: str = ""
    """How it changes the field: empty, `?`, `??` or `+`."""
    attribute: str = ""
    """What it reads, if that is an attribute of the fact."""
    literal: str = ""
    """What it says, if that is the same for all facts."""
    source: str = ""
    """The field of the payload that it reads, if that is a text."""


class FieldRow:
    """What a fact changes in a record: its words.

    Args:
        row: The words.
        first: Fields that whoever makes a record sets besides.

    Raises:
        ValueError: One is no word.
    """

    def __init__(self, row: str, first: Sequence[str] = ()) -> None:
        words = [_word(word) for word in row.split()]
        self.fields = tuple(word.name for word in words)
        self._literals: JsonObject = dict.fromkeys(first)
        self._literals |= {one.name: one.literal for one in words if one.literal}
        # Most of what is kept stands in the fact itself, or is a text of its payload: the former
        # is read in one go, the latter without a call for each.
        of_fact = [word for word in words if word.attribute and not word.how]
        of_fact = of_fact if len(of_fact) > 1 else []
        self._names = [word.name for word in of_fact]
        self._values = attrgetter(*[word.attribute for word in of_fact] or ["type"])
        self._texts = [(word.name, word.source, word.how) for word in words if word.source]
        self._words = [
            (word.name, word.read, word.how)
            for word in words
            if word not in of_fact and not word.source and not word.literal
        ]
        self._has_payload = bool(self._texts or self._words)
        self.is_of_payload = not self._names and not self._literals

    def made(self, fact: Fact) -> JsonObject:
        """Return the fields that a fact tells."""
        record: JsonObject = self._literals.copy()
        for name, value in zip(self._names, self._values(fact), strict=False):
            if value is not None:
                record[name] = value
        if self._has_payload:
            self.change_by_payload(record, fact)
        return record

    def change(self, record: JsonObject, fact: Fact) -> None:
        """Change the fields of a record by what a fact tells."""
        if self._literals:
            record.update(self._literals)
        if self._names:
            for name, value in zip(self._names, self._values(fact), strict=False):
                if value is not None:
                    record[name] = value
                elif name in record:
                    del record[name]
        self.change_by_payload(record, fact)

    def change_by_payload(self, record: JsonObject, fact: Fact) -> None:
        """Change the fields that the payload tells: all of them, if `is_of_payload`."""
        payload = fact.payload
        for name, source, how in self._texts:
            said = payload.get(source)
            if said and isinstance(said, str):
                record[name] = said[:TEXT_CHARACTERS]
            elif not how and name in record:
                del record[name]
        for name, read, how in self._words:
            value = read(fact)
            if value is None:
                if not how and name in record:
                    del record[name]
            elif how == "+":
                if value:
                    record[name] = added(record.get(name, 0), value)
            elif value or how != "?":
                record[name] = value


def _word(written: str) -> Word:
    match = _WORD.fullmatch(written)
    if match is None:
        raise ValueError(f"no word of a row: {written!r}")
    of_fact, name, kind, sources, literal, at, adds, more, how = match.groups()
    if of_fact or at:
        attribute = "timestamp" if at else ATTRIBUTES[name]
        get = attrgetter(attribute)
        if attribute in OBJECTS:
            return Word(name, lambda fact: brief(get(fact)), how)
        return Word(name, get, how, attribute)
    if literal:
        return Word(name, _last_word, literal="" if literal == "*" else literal)
    if adds:
        return Word(name, (lambda fact: whole(fact.payload, more)) if more else lambda _: 1, "+")
    names = sources.split(",") if sources else [name]
    reader = _READERS[kind or _KINDS.get(FIELDS.get(names[0], (str, ""))[0], "text")]
    if len(names) > 1:
        return Word(name, lambda fact: reader(fact.payload, *names), how)
    source = names[0]
    of_text = source if reader is text else ""
    return Word(name, lambda fact: reader(fact.payload, source), how, source=of_text)


def _last_word(fact: Fact) -> str:
    return fact.type.rpartition(".")[2]


# -- kinds of things -------------------------------------------------------------------------------


class EntityKind:
    """A kind of thing: what is kept of it, and how many.

    Args:
        name: Of its window.
        fields: What is kept of one, in the order in which documents have it.
        most: How many open ones, and how many that ended.
        key: The id that joins its facts. Without one each fact tells of one more thing.
        begin: FieldRow of the fact that begins one.
        every: FieldRow of each fact about one.
    """

    def __init__(
        self, name: str, fields: str, most: tuple[int, int], *, key: str = "", begin: str = ""
    ) -> None:
        self.name, self.most = name, most
        self._fields = ("firstSequence", "lastSequence", *fields.split())
        self._key, self._key_of = key, attrgetter(ATTRIBUTES.get(key, "event_id"))
        self._begin = FieldRow(begin, ("firstSequence", "lastSequence", *filter(None, (key,))))

    def of(self, window: JsonWindow, fact: Fact, name: str | None = None) -> JsonObject:
        """Return the record that a fact is about, new if none is records.

        Args:
            window: Where those of the kind are.
            fact: About it.
            name: Its id, where it is not in the fact itself.
        """
        key: str = name or self._key_of(fact) or "unknown"
        record = window.open.get(key) or window.closed.get(key)
        if record is None:
            record = self._begin.made(fact)
            record["firstSequence"], record[self._key] = fact.sequence, key
            window.begin(key, record, self.most[0])
        record["lastSequence"] = fact.sequence
        return record

    def made(self, fact: Fact, **more: Json) -> JsonObject:
        """Return a thing that one fact tells whole, with `more` that no word can say."""
        record = self._begin.made(fact)
        record["firstSequence"] = record["lastSequence"] = fact.sequence
        record.update({name: value for name, value in more.items() if value is not None})
        return record

    def add(self, records: Records, fact: Fact, **more: Json) -> JsonObject:
        """Add what `made` returns; it counts as ended."""
        window, key = records.window(self.name), str(fact.sequence)
        record = window.open[key] = self.made(fact, **more)
        window.end(key, self.most[1])
        return record

    def added(self, records: Records, fact: Fact) -> None:
        """Add a thing that one fact tells whole."""
        self.add(records, fact)

    def fold(self, row: str) -> Callable[[JsonWindow, Fact], JsonObject]:
        """Return how a fact changes the thing that it is about, whose record it gives back.

        Args:
            row: Words. Those behind `if_open` change no record that has ended.
        """
        given, _, guarded = row.partition("if_open")
        ends, reopens = ">" in row, "<" in row
        always, if_open = _with_status(given), _with_status(guarded)
        key_of = self._key_of
        change = always.change_by_payload if always.is_of_payload else always.change

        def folded(window: JsonWindow, fact: Fact) -> JsonObject:
            record = window.open.get(key_of(fact))
            if record is None:
                record = self.of(window, fact)
            else:
                record["lastSequence"] = fact.sequence
            change(record, fact)
            if guarded and record[self._key] in window.open:
                if_open.change(record, fact)
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
        """Return everything of the kind that is records, in the order in which it began."""
        return self.entries(records.read(self.name))

    def entries(self, window: JsonWindow) -> list[JsonObject]:
        """Return the records of a window, in the order in which they began."""
        return [ordered(record, self._fields) for record in window.entries()]

    def document(self, record: JsonObject) -> JsonObject:
        """Return a record as documents have it."""
        return ordered(record, self._fields)


def ordered(record: JsonObject, fields: tuple[str, ...]) -> JsonObject:
    """Return the fields of a record that are known, in this order."""
    return {name: record[name] for name in fields if name in record}


def _with_status(row: str) -> FieldRow:
    plain = (f"status={one[1:] or '*'}" if one[0] in "<>" else one for one in row.split())
    return FieldRow(" ".join(plain))
