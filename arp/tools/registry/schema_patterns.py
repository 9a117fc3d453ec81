"""Limits on patterns in untrusted JSON Schemas, because matching a pattern could take forever."""

from __future__ import annotations

import re
import re._parser as patterns  # type: ignore[import-not-found]  # typeshed does not have it
from collections.abc import Iterator
from typing import Any, Final

from arp.protocol.json_value import Json
from arp.tools.errors import InvalidToolMeta

MAX_PATTERN_TEXT: Final = 4_096
"""Maximum length in characters of a text that is matched against a `pattern`."""
_SEVERAL: Final = 8
"""Maximum of a repeat that does not count as long; only long repeats can make a match slow."""
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_REFERS_BACK: Final = ("GROUPREF", "GROUPREF_EXISTS")


def _repeated(argument: Any) -> list[Any]:
    return [argument[2]]


def _looked_at(argument: Any) -> list[Any]:
    return [argument[1]]


def _branches(argument: Any) -> list[Any]:
    return list(argument[1])


def _group(argument: Any) -> list[Any]:
    return [argument[-1]]


def _argument_itself(argument: Any) -> list[Any]:
    return [argument]


def _nothing(argument: Any) -> list[Any]:
    return []


_INNER: Final = {
    **dict.fromkeys(_REPEATS, _repeated),
    "BRANCH": _branches,
    "SUBPATTERN": _group,
    "ASSERT": _looked_at,
    "ASSERT_NOT": _looked_at,
    "ATOMIC_GROUP": _argument_itself,
}
"""Functions that return the nested patterns of each parsed operation's argument."""


def check_patterns(schema: Json, where: str) -> None:
    """Refuse a schema with a pattern that can take forever on a short text.

    Args:
        schema: JSON Schema.
        where: Name of the schema in the error, such as `input_schema`.

    Raises:
        InvalidToolMeta: A pattern has a long repeat or a branch inside a long repeat, has a
            back-reference, or is not valid.
    """
    for pattern in _patterns_in(schema):
        try:
            parsed = patterns.parse(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidToolMeta(f"{where}: pattern {pattern!r:.60}: {error}") from None
        if _is_slow(parsed, inside=False):
            raise InvalidToolMeta(
                f"{where}: pattern {pattern!r:.60} repeats a part that repeats or branches, so a "
                "short text can take forever; write it without"
            )


def try_pattern(validator: Any, pattern: str, instance: Json, schema: Json) -> Iterator[Any]:
    """Yield an error if a text does not match a pattern: the keyword `pattern` of `jsonschema`."""
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str):
        return
    if len(instance) > MAX_PATTERN_TEXT:
        yield ValidationError(f"it has more than {MAX_PATTERN_TEXT} characters, with a pattern")
    elif not re.search(pattern, instance):
        yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")


def _is_slow(parsed: Any, *, inside: bool) -> bool:
    """Return whether a pattern has a back-reference, or a long repeat or branch in a long repeat.

    `inside` says whether the pattern is part of a long repeat.
    """
    for operation, argument in parsed:
        name = str(operation)
        is_long = name in _REPEATS and int(argument[1]) > _SEVERAL
        if name in _REFERS_BACK or (inside and (is_long or name == "BRANCH")):
            return True
        inner = _INNER.get(name, _nothing)(argument)
        if any(_is_slow(one, inside=inside or is_long) for one in inner):
            return True
    return False


def _patterns_in(schema: Json) -> Iterator[str]:
    """Yield each pattern of a schema, including those of property names."""
    stack: list[Json] = [schema]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if isinstance(one.get("pattern"), str):
                yield one["pattern"]
            if isinstance(one.get("patternProperties"), dict):
                yield from one["patternProperties"]
            stack += one.values()
        elif isinstance(one, list):
            stack += one
