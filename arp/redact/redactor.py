"""Remove secrets from text and JSON before they become facts.

A redactor finds four kinds of secrets: the shapes in `shapes`, patterns of the operator, fields
with the name of a secret, and known values (such as those of the environment). `MARK` replaces each
secret. No rule matches `MARK`, so text that was cleaned before does not change.

Theory of operation. One regular expression (`_begins`) finds every position at which a lead or a
known value can begin. At such a position the leads of the matching shapes are tried. After a lead,
the run of characters that can belong to the secret is read, and the shape decides whether it is a
secret. Most texts contain none of the characters in `has_sign` and are not searched at all.
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
from arp.redact.shapes import SHAPES, SIGNS, UNFINISHED, UNFINISHED_MOST, Shape

MARK: Final = "[redacted]"

KNOWN: Final = "known-secret"
"""Name of the rule for known values."""
FIELD: Final = "secret-field"
"""Name of the rule for fields with the name of a secret."""

_MOST_NESTED: Final = 4
"""Largest number of JSON texts inside each other that are parsed; deeper ones are read as text."""

HELD_FROM: Final = 4
"""Length of the shortest beginning of a known secret that is held at the end of a piece. A shorter
beginning is passed on."""

_UNFINISHED: Final = re.compile(UNFINISHED)

_LONG: Final = 1024
"""Length of a text from which it is worth storing its cleaned form for `knowing`."""

_RARE: Final = "zqxjkvbpygfwmucldrhsnioate"
"""Letters, ordered from the rarest to the most frequent in English."""

Found: TypeAlias = dict[str, int]
"""Number of matches by rule."""


class RedactionResult(NamedTuple):
    """A value, its cleaned form, and the rules that matched."""

    value: Json
    cleaned: Json
    found: Found


class SecretSpan(NamedTuple):
    """Position of a secret, or of a possible secret, in a text."""

    start: int
    end: int
    shape: Shape | None
    """Shape of the secret; `None` for a known value."""
    is_secret: bool
    """Whether it is a secret. If not, the span reaches to the end of the text, and the text that
    follows decides."""

    @property
    def rule(self) -> str:
        """Name of the rule in facts."""
        return self.shape.rule if self.shape is not None else KNOWN


class Redactor:
    """Finds and removes secrets. It keeps no state of a text, so all sessions can share it."""

    __slots__ = (
        "_begins",
        "_bodies",
        "_by_begin",
        "_fields",
        "_known_starts",
        "_leads",
        "_precleaned",
        "_shapes",
        "has_sign",
        "is_on",
        "known",
    )

    def __init__(self, settings: Redaction) -> None:
        own = [_shape_of(pattern) for pattern in settings.patterns]
        self._shapes = [*own, *SHAPES] if settings.enabled else []
        self.is_on = settings.enabled
        """Whether secrets are removed at all."""
        self._bodies = [re.compile(shape.body) for shape in self._shapes]
        self._fields = frozenset(name.lower() for name in settings.fields)
        self.known = usable(settings.secrets) if settings.enabled else []
        """Known values, longest first."""
        self._known_starts = tuple(
            secret[:count] for secret in self.known for count in range(1, HELD_FROM)
        )
        """Beginnings of known values that are shorter than `HELD_FROM` and therefore passed on."""
        self._leads = [re.compile(shape.lead) for shape in self._shapes]
        self._by_begin = _by_begin(self._shapes, self.known)
        self._begins = re.compile(_search_for(self._by_begin, self._shapes))
        signs = SIGNS + "".join(pattern.prefix[-1] for pattern in settings.patterns)
        signs += "".join(_rarest(secret) for secret in self.known)
        self.has_sign: Callable[[str], object] = re.compile(
            f"[{re.escape(signs)}]" if self._shapes else _NOTHING
        ).search
        """Searches a text for a sign. Every lead and every known value contains one; most texts
        contain none. A text without a sign needs no search, unless `unfinished` is true for the
        text before it."""
        self._precleaned: dict[int, RedactionResult] = {}
        """Cleaned values by `id()` of the value, during a `knowing` block."""

    # -- text ------------------------------------------------------------------------------------

    def text(self, text: str) -> tuple[str, Found]:
        """Return a complete text without secrets, and the rules that matched.

        If no rule matched, it is the same object.
        """
        found: Found = {}
        return self._text(text, found), found

    def spans(self, text: str, is_whole: bool) -> Iterator[SecretSpan]:
        """Yield the secrets in a text, in order and without overlaps.

        Args:
            text: A text, or the beginning of a text.
            is_whole: Whether the text is complete. If not, the last span may be undecided.
        """
        start, last_end = 0, -1
        while (match := self._begins.search(text, start)) is not None:
            begin = match.start()
            # A lead inside a word does not count (`sk-` in `risk-`), but directly after a secret it
            # does.
            is_inside = 0 < begin != last_end and text[begin - 1].isalnum()
            span = self._span_at(text, match, is_inside, is_whole)
            if span is None:
                start = begin + 1
                continue
            # A lead may contain a secret itself, for example a token as the user name in a URL.
            lead = begin + 1
            for inner in self.spans(text[lead : span.start], is_whole=True):
                yield inner._replace(start=inner.start + lead, end=inner.end + lead)
            yield span
            start = last_end = span.end

    def _span_at(
        self, text: str, match: re.Match[str], is_inside: bool, is_whole: bool
    ) -> SecretSpan | None:
        """Return the secret with a lead at the position of a match; `None` if there is none.

        Args:
            text: The searched text.
            match: Match of `_begins`.
            is_inside: Whether the match begins inside a word.
            is_whole: Whether the text is complete.
        """
        numbers = self._by_begin[match.group()]
        if not numbers:
            return SecretSpan(match.start(), match.end(), None, True)
        for number in numbers:
            if is_inside and self._shapes[number].is_word:
                continue
            lead = self._leads[number].match(text, match.start())
            span = lead and self._span_after(text, lead, number, is_whole)
            if span:
                return span
        return None

    def _span_after(
        self, text: str, lead: re.Match[str], number: int, is_whole: bool
    ) -> SecretSpan | None:
        """Return the span after a lead if it is a secret, or if following text can make it one."""
        shape, body, begin, end = self._shapes[number], self._bodies[number], lead.end(), len(text)
        stop = _end(body.match(text, begin, begin + shape.window), begin)
        is_open = not is_whole and shape.may_continue(text, stop)
        is_cut = stop - begin == shape.window and stop < end
        # The next character is unknown if more text may follow or the window has cut the run off.
        after = None if is_open or is_cut else text[stop : stop + 1]
        verdict = shape.decide(shape, lead.group(), text[begin:stop], after)
        # At most `window` characters are held. A longer undecided run is not a secret.
        if verdict is None and is_open and stop - begin < shape.window:
            return SecretSpan(begin, end, shape, False)
        if not verdict:
            return None
        return SecretSpan(begin, _end(body.match(text, stop), stop), shape, True)

    def unfinished(self, text: str) -> bool:
        """Return whether a text ends with the beginning of a lead or a known value.

        If so, the text that follows must be searched even if `has_sign` does not find a sign in it.
        """
        start = max(0, len(text) - UNFINISHED_MOST)
        return text.endswith(self._known_starts) or _UNFINISHED.search(text, start) is not None

    def beginning_of_known(self, text: str, start: int) -> int:
        """Return the position of a known value that the end of the text cuts off.

        A value counts if at least `HELD_FROM` of its characters are in the text. Without such a
        value, return the length of the text.
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
        """Return the shape of the secret if a text ends with its lead and `MARK`.

        The text that follows may still belong to that secret. `None` if the text ends otherwise.
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
        """Return the regular expression for the run of a shape."""
        return self._bodies[self._shapes.index(shape)]

    def suspects(self, text: str) -> bool:
        """Return whether a JSON text may contain a secret, without decoding it."""
        for match in self._begins.finditer(text):
            numbers = self._by_begin[match.group()]
            if not numbers or any(self._leads[n].match(text, match.start()) for n in numbers):
                return True
        return False

    # -- JSON ------------------------------------------------------------------------------------

    def clean(self, value: Json, shown: bool = False) -> tuple[Json, Found]:
        """Return JSON without secrets, and the rules that matched.

        If no rule matched, it is the same object. Texts that contain JSON are cleaned as JSON.

        Args:
            value: Plain JSON; a `msgspec.Raw` in it is decoded.
            shown: Whether users see the value. If so, a field is secret only if its name certainly
                means a secret, so that a table column `token` stays visible.
        """
        found: Found = {}
        if not self.is_on:
            return value, found
        # `look_through` cleans for facts. In a value that users see, fewer names mean a secret.
        if self._precleaned and not shown and id(value) in self._precleaned:
            known = self._precleaned[id(value)]
            return known.cleaned, dict(known.found)
        by_name = is_surely_secret_name if shown else self._names_secret
        cleaned = self._value(value, found, by_name, 0)
        return (cleaned if found else value), found

    def look_through(self, value: Json) -> list[RedactionResult]:
        """Clean a value and the long texts in it; pass the result to `knowing`.

        May be called in a thread, so that a large value does not block the event loop.
        """
        if not self.is_on:
            return []
        texts = [
            RedactionResult(text, self._value(text, found, self._names_secret, 0), found)
            for text in _long_texts(value)
            for found in [dict[str, int]()]
        ]
        with self.knowing(texts):
            return [*texts, RedactionResult(value, *self.clean(value))]

    @contextmanager
    def knowing(self, cleaned: Sequence[RedactionResult]) -> Iterator[None]:
        """Make `clean` reuse these results during a block. The values must not change meanwhile."""
        mine = {id(one.value): one for one in cleaned}
        self._precleaned |= mine
        try:
            yield
        finally:
            for key in mine:
                self._precleaned.pop(key, None)

    def _names_secret(self, name: str) -> bool:
        return is_secret_name(name) or name.lower() in self._fields

    def _value(self, value: Json, found: Found, by_name: Callable[[str], bool], depth: int) -> Json:
        if isinstance(value, str):
            if self._precleaned and len(value) >= _LONG and id(value) in self._precleaned:
                known = self._precleaned[id(value)]
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
        if value == MARK or not value.strip("•*"):  # already redacted, or masked by its author
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
        pieces, end = list[str](), 0
        for span in self.spans(text, is_whole=True):
            pieces += (text[end : span.start], MARK)
            end = span.end
            found[span.rule] = found.get(span.rule, 0) + 1
        return "".join([*pieces, text[end:]]) if pieces else text


@cache
def known_shapes() -> Redactor:
    """Return the redactor with default settings, which has no known values."""
    return Redactor(Redaction())


def _long_texts(value: Json) -> Iterator[str]:
    """Yield the long texts in plain JSON."""
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
    """Return the numbers of shapes by the text that their leads begin with.

    A known value is a key without numbers.
    """
    table: dict[str, tuple[int, ...]] = {}
    for number, shape in enumerate(shapes):
        for begin in shape.begins.split():
            table[begin] = (*table.get(begin, ()), number)
    for secret in known:
        table |= {secret: (), _in_json(secret): ()}
    return table


def _search_for(table: dict[str, tuple[int, ...]], shapes: list[Shape]) -> str:
    """Return one regular expression that matches any key of the table.

    If all shapes of a key share one lookahead (`Shape.soon`), the key matches only before text that
    fits the lookahead.
    """
    by_soon = dict[str, list[str]]()
    for text, numbers in table.items():
        several = {shapes[number].soon for number in numbers}
        by_soon.setdefault(several.pop() if len(several) == 1 else "", []).append(text)
    # One alternative for each first character: at most positions in a text no alternative begins
    # with the character there, and the search compares it with each of them.
    by_first = dict[str, list[str]]()
    for soon, texts in by_soon.items():
        for first, rest in _rests(texts).items():
            by_first.setdefault(first, []).append(rest + (f"(?={soon})" if soon else ""))
    return "|".join(re.escape(one) + _either(by_first[one]) for one in sorted(by_first)) or _NOTHING


def _rests(texts: Iterable[str]) -> dict[str, str]:
    """Map first characters to expressions that match the longest rest of the texts.

    The expressions form a trie: each common prefix occurs once, so most positions in a text are
    rejected after one or two characters.
    """
    rests = dict[str, set[str]]()
    for text in filter(None, texts):
        rests.setdefault(text[0], set()).add(text[1:])
    return {first: _rest_of(rests[first]) for first in sorted(rests)}


def _rest_of(texts: set[str]) -> str:
    if len(texts) == 1:
        return re.escape(*texts)
    alternatives = [re.escape(first) + rest for first, rest in _rests(texts).items()]
    return f"(?:{'|'.join(alternatives)})" + ("?" if "" in texts else "")


def _either(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def _in_json(secret: str) -> str:
    return msgspec.json.encode(secret).decode()[1:-1]


def _shape_of(pattern: Pattern) -> Shape:
    body = re.sub(r"([\[\]\\^])", r"\\\1", pattern.characters)
    return Shape(
        pattern.name, pattern.prefix, re.escape(pattern.prefix), f"[{body}]*", pattern.least
    )


def _rarest(secret: str) -> str:
    """Return the rarest of the first four characters of a secret."""
    return min(secret[:4], key=_RARE.find)
