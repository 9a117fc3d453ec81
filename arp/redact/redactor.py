"""Removes secrets from text and JSON before they become facts.

It finds the patterns of `shapes`, the operator's own patterns, fields with the name of a secret,
and secrets that are known by value (of the environment). `MARK` replaces each; no rule matches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import msgspec

from arp.protocol.json_value import Json
from arp.redact.names import (
    is_plain_value,
    is_secret_name,
    is_surely_secret_name,
    usable,
)
from arp.redact.settings import Pattern, Redaction
from arp.redact.shapes import SHAPES, SIGNS, UNFINISHED, Shape

MARK: Final = "[redacted]"

KNOWN: Final = "known-secret"
"""The rule of a secret that is known by value."""
FIELD: Final = "secret-field"
"""The rule of a field with the name of a secret."""

_MOST_NESTED: Final = 4
"""How deep texts that are JSON contain each other; deeper ones are read as text."""

HELD_FROM: Final = 4
"""From how many characters of a known secret on they are held; fewer are passed on."""

_UNFINISHED: Final = re.compile(UNFINISHED)

_LONG: Final = 1024
"""From how many characters on it pays to look up whether a text was cleaned before."""

_RARE: Final = "zqxjkvbpygfwmucldrhsnioate"
"""Letters, the rarest of English first."""

Found: TypeAlias = dict[str, int]
"""How often each rule matched."""


class Cleaned(NamedTuple):
    """A value, its cleaned form, and what was found in it."""

    value: Json
    cleaned: Json
    found: Found


class SecretSpan(NamedTuple):
    """The place of a secret in a text, or of what may become one."""

    start: int
    end: int
    shape: Shape | None
    """`None`: it is known by value."""
    is_secret: bool
    """`False`: the text that follows decides, and the span reaches to the end of the text."""

    @property
    def rule(self) -> str:
        """The name of the rule in facts."""
        return self.shape.rule if self.shape is not None else KNOWN


class Redactor:
    """Finds secrets as its settings say. It keeps no state of texts; one serves all sessions."""

    __slots__ = (
        "_begins",
        "_bodies",
        "_by_begin",
        "_fields",
        "_leads",
        "_looked_through",
        "_shapes",
        "has_sign",
        "is_on",
        "known",
    )

    def __init__(self, settings: Redaction) -> None:
        own = [_shape_of(pattern) for pattern in settings.patterns]
        self._shapes = [*own, *SHAPES] if settings.enabled else []
        self.is_on = settings.enabled
        """Whether it looks for secrets at all."""
        self._bodies = [re.compile(shape.body) for shape in self._shapes]
        self._fields = frozenset(name.lower() for name in settings.fields)
        self.known = usable(settings.secrets) if settings.enabled else []
        """Secrets that are known by value, longest first."""
        self._leads = [re.compile(shape.lead) for shape in self._shapes]
        self._by_begin = _by_begin(self._shapes, self.known)
        self._begins = re.compile(_search_for(self._by_begin, self._shapes))
        signs = SIGNS + "".join(pattern.prefix[-1] for pattern in settings.patterns)
        signs += "".join(_rarest(secret) for secret in self.known)
        self.has_sign: Callable[[str], object] = re.compile(
            f"[{re.escape(signs)}]" if self._shapes else _NOTHING
        ).search
        """Whether a text may have a part of a lead or of a known secret. Most texts have no such
        sign: they need no search, unless the text before them ends inside of one."""
        self._looked_through: dict[int, Cleaned] = {}
        """Cleaned values by the id of the value, while `knowing` lasts."""

    # -- text ------------------------------------------------------------------------------------

    def text(self, text: str) -> tuple[str, Found]:
        """Return a whole text without secrets, and what was found; the same text if nothing was."""
        found: Found = {}
        return self._text(text, found), found

    def spans(self, text: str, is_whole: bool) -> Iterator[SecretSpan]:
        """Find secrets, in order, none inside another.

        Args:
            text: A text, or the beginning of one.
            is_whole: Nothing follows; else the last span may be one that is not decided.
        """
        start, behind = 0, -1
        while (match := self._begins.search(text, start)) is not None:
            place = match.start()
            is_inside = 0 < place != behind and text[place - 1].isalnum()
            span = self._at(text, match, is_inside, is_whole)
            if span is None:
                start = place + 1
                continue
            lead = place + 1
            for inner in self.spans(text[lead : span.start], is_whole=True):
                yield inner._replace(start=inner.start + lead, end=inner.end + lead)
            yield span
            start = behind = span.end

    def _at(
        self, text: str, match: re.Match[str], is_inside: bool, is_whole: bool
    ) -> SecretSpan | None:
        """Return the secret whose lead begins at a place, maybe inside a word, if there is one."""
        numbers = self._by_begin[match.group()]
        if not numbers:
            return SecretSpan(match.start(), match.end(), None, True)
        for number in numbers:
            if is_inside and self._shapes[number].is_word:
                continue
            lead = self._leads[number].match(text, match.start())
            span = lead and self._judged(text, lead, number, is_whole)
            if span:
                return span
        return None

    def _judged(
        self, text: str, lead: re.Match[str], number: int, is_whole: bool
    ) -> SecretSpan | None:
        """Return the span after a lead, if it is a secret or may become one."""
        shape, body, begin, end = self._shapes[number], self._bodies[number], lead.end(), len(text)
        stop = _end(body.match(text, begin, begin + shape.window), begin)
        is_open = not is_whole and shape.may_go_on(text, stop)
        is_cut = stop - begin == shape.window and stop < end
        after = None if is_open or is_cut else text[stop : stop + 1]
        verdict = shape.decide(shape, lead.group(), text[begin:stop], after)
        if verdict is None and is_open and stop - begin < shape.window:
            return SecretSpan(begin, end, shape, False)
        if not verdict:
            return None
        return SecretSpan(begin, _end(body.match(text, stop), stop), shape, True)

    def unfinished(self, text: str) -> bool:
        """Return whether a text ends with the beginning of a lead or of a known secret.

        Then the text that follows must be searched, even without a sign in it.
        """
        return _UNFINISHED.search(text) is not None or any(
            text.endswith(tuple(secret[:count] for count in range(1, HELD_FROM)))
            for secret in self.known
        )

    def beginning_of_known(self, text: str, start: int) -> int:
        """Return where a known secret begins that the end of the text cuts; else the length.

        Fewer than `HELD_FROM` characters of a secret do not count.
        """
        first = len(text)
        for secret in self.known:
            probe = secret[:HELD_FROM]
            place = text.find(probe, max(start, len(text) - len(secret) + 1))
            while place >= 0:
                if secret.startswith(text[place:]):
                    first = min(first, place)
                    break
                place = text.find(probe, place + 1)
        return first

    def shape_before(self, text: str) -> Shape | None:
        """Return the shape of the secret whose lead and mark end a text; `None` without one.

        The text that follows may still belong to that secret.
        """
        if not text.endswith(MARK):
            return None
        head, start = text[: -len(MARK)], 0
        while (match := self._begins.search(head, start)) is not None:
            for number in self._by_begin[match.group()]:
                lead = self._leads[number].match(head, match.start())
                if lead is not None and lead.end() == len(head):
                    return self._shapes[number]
            start = match.start() + 1
        return None

    def body_of(self, shape: Shape) -> re.Pattern[str]:
        """Return the expression for the characters of a shape."""
        return self._bodies[self._shapes.index(shape)]

    def suspects(self, text: str) -> bool:
        """Return whether JSON text may contain a secret, without decoding it."""
        for match in self._begins.finditer(text):
            numbers = self._by_begin[match.group()]
            if not numbers or any(self._leads[n].match(text, match.start()) for n in numbers):
                return True
        return False

    # -- JSON ------------------------------------------------------------------------------------

    def clean(self, value: Json, shown: bool = False) -> tuple[Json, Found]:
        """Return JSON without secrets, and what was found; the same value if nothing was.

        Texts that are JSON themselves are cleaned as JSON.

        Args:
            value: Plain JSON; `msgspec.Raw` in it is read.
            shown: Whether it is shown to people: then only a certain name makes a field secret, so
                that a column `token` stays.
        """
        found: Found = {}
        if not self.is_on:
            return value, found
        if self._looked_through and not shown and id(value) in self._looked_through:
            known = self._looked_through[id(value)]
            return known.cleaned, dict(known.found)
        by_name = is_surely_secret_name if shown else self._names_secret
        cleaned = self._value(value, found, by_name, 0)
        return (cleaned if found else value), found

    def look_through(self, value: Json) -> list[Cleaned]:
        """Return the results of `clean` for a value and the long texts in it, for `knowing`.

        May be called in a thread.
        """
        if not self.is_on:
            return []
        texts = [
            Cleaned(text, self._value(text, found, self._names_secret, 0), found)
            for text in _long_texts(value)
            for found in [dict[str, int]()]
        ]
        with self.knowing(texts):
            return [*texts, Cleaned(value, *self.clean(value))]

    @contextmanager
    def knowing(self, cleaned: Sequence[Cleaned]) -> Iterator[None]:
        """Let `clean` return these results for the same values, which must not change meanwhile."""
        mine = {id(one.value): one for one in cleaned}
        self._looked_through |= mine
        try:
            yield
        finally:
            for name in mine:
                self._looked_through.pop(name, None)

    def _names_secret(self, name: str) -> bool:
        return is_secret_name(name) or name.lower() in self._fields

    def _value(self, value: Json, found: Found, by_name: Callable[[str], bool], depth: int) -> Json:
        if isinstance(value, str):
            if self._looked_through and len(value) >= _LONG and id(value) in self._looked_through:
                known = self._looked_through[id(value)]
                _add(found, known.found)
                return known.cleaned
            if value[:1] in ("{", "[") and depth < _MOST_NESTED:
                return self._json_text(value, found, by_name, depth + 1)
            return self._text(value, found)
        if isinstance(value, dict):
            return self._object(value, found, by_name, depth)
        if isinstance(value, (list, tuple)):
            return [self._value(item, found, by_name, depth) for item in value]
        if isinstance(value, msgspec.Raw):
            plain = self._value(msgspec.json.decode(value), found, by_name, depth)
            return plain if found else value
        return value

    def _object(
        self, value: dict[str, Json], found: Found, by_name: Callable[[str], bool], depth: int
    ) -> dict[str, Json]:
        out: dict[str, Json] = {}
        for name, item in value.items():
            if isinstance(item, str) and by_name(name) and not is_plain_value(item):
                out[self._text(name, found)] = self._field(item, found)
            elif isinstance(item, list) and by_name(name) and _all_text(item):
                out[self._text(name, found)] = [self._field(one, found) for one in item]
            else:
                out[self._text(name, found)] = self._value(item, found, by_name, depth)
        return out

    @staticmethod
    def _field(value: str, found: Found) -> str:
        if value == MARK or not value.strip("•*"):
            return value
        found[FIELD] = found.get(FIELD, 0) + 1
        return MARK

    def _json_text(
        self, text: str, found: Found, by_name: Callable[[str], bool], depth: int
    ) -> str:
        inside: Found = {}
        try:
            cleaned = self._value(msgspec.json.decode(text), inside, by_name, depth)
        except (ValueError, RecursionError):
            return self._text(text, found)
        if not inside:
            return text
        _add(found, inside)
        return msgspec.json.encode(cleaned).decode()

    def _text(self, text: str, found: Found) -> str:
        if self.has_sign(text) is None:
            return text
        pieces, place = list[str](), 0
        for span in self.spans(text, is_whole=True):
            pieces += (text[place : span.start], MARK)
            place = span.end
            found[span.rule] = found.get(span.rule, 0) + 1
        return "".join([*pieces, text[place:]]) if pieces else text


@cache
def known_shapes() -> Redactor:
    """Return the redactor of the default settings; it knows no secret by value."""
    return Redactor(Redaction())


def _long_texts(value: Json) -> Iterator[str]:
    """Return the long texts in plain JSON."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            if len(one) >= _LONG:
                yield one
        elif isinstance(one, dict):
            rest.extend(one.values())
        elif isinstance(one, list):
            rest.extend(one)


def _end(match: re.Match[str] | None, default: int) -> int:
    return match.end() if match is not None else default


def _add(found: Found, more: Found) -> None:
    for rule, count in more.items():
        found[rule] = found.get(rule, 0) + count


def _all_text(items: list[Json]) -> bool:
    return all(isinstance(item, str) for item in items)


_NOTHING: Final = "(?!)"


def _by_begin(shapes: list[Shape], known: list[str]) -> dict[str, tuple[int, ...]]:
    """Return what to look for → numbers of shapes that begin so; none for a known secret."""
    table: dict[str, tuple[int, ...]] = {}
    for number, shape in enumerate(shapes):
        for begin in shape.begins.split():
            table[begin] = (*table.get(begin, ()), number)
    for secret in known:
        table |= {secret: (), _in_json(secret): ()}
    return table


def _search_for(table: dict[str, tuple[int, ...]], shapes: list[Shape]) -> str:
    """Return one expression of all that is to be looked for, with what must stand behind it."""
    behind = dict[str, list[str]]()
    for text, numbers in table.items():
        several = {shapes[number].soon for number in numbers}
        behind.setdefault(several.pop() if len(several) == 1 else "", []).append(text)
    # One way for each first letter: at most places of a text no way begins with its letter, and
    # the search compares that letter with each way.
    ways = dict[str, list[str]]()
    for soon, texts in behind.items():
        for first, rest in _rests(texts).items():
            ways.setdefault(first, []).append(rest + (f"(?={soon})" if soon else ""))
    return "|".join(re.escape(first) + _either(ways[first]) for first in sorted(ways)) or _NOTHING


def _rests(texts: Iterable[str]) -> dict[str, str]:
    """Return first letters with expressions that match the longest rest of some plain texts.

    A beginning that several texts share is in the expression once.
    """
    rests = dict[str, set[str]]()
    for text in filter(None, texts):
        rests.setdefault(text[0], set()).add(text[1:])
    return {first: _rest_of(rests[first]) for first in sorted(rests)}


def _rest_of(texts: set[str]) -> str:
    if len(texts) == 1:
        return re.escape(*texts)
    ways = [re.escape(first) + rest for first, rest in _rests(texts).items()]
    return f"(?:{'|'.join(ways)})" + ("?" if "" in texts else "")


def _either(ways: list[str]) -> str:
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _in_json(secret: str) -> str:
    return msgspec.json.encode(secret).decode()[1:-1]


def _shape_of(pattern: Pattern) -> Shape:
    body = re.sub(r"([\[\]\\^])", r"\\\1", pattern.characters)
    return Shape(
        pattern.name, pattern.prefix, re.escape(pattern.prefix), f"[{body}]*", pattern.least
    )


def _rarest(secret: str) -> str:
    """Return the one of its first four characters that stands least in ordinary text."""
    return min(secret[:4], key=_RARE.find)
