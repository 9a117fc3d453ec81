"""Limits on patterns of untrusted JSON Schemas, whose matching could take forever.

A schema comes from whoever made a tool. Python's `re` tries a pattern for as long as it takes, and
nothing can stop it. So a pattern with a repeat or alternatives inside a repeat is refused, and the
others are tried on texts of bounded length alone.
"""

from __future__ import annotations

import re
import re._parser as patterns  # type: ignore[import-not-found]  # typeshed does not have it
from collections.abc import Iterator
from typing import Any, Final

from arp.protocol.json_value import Json
from arp.tools.errors import InvalidToolMeta

MAX_PATTERN_TEXT: Final = 4_096
"""Characters of a text that a `pattern` is tried on."""
_SEVERAL: Final = 8
"""How often a part may be repeated inside another repeat."""
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
"""For each parsed operation: the patterns inside its argument."""


def check_patterns(schema: Json, where: str) -> None:
    """Refuse a schema with a pattern for which a short text can take forever.

    Args:
        schema: A JSON Schema.
        where: What it is called in the error, as `input_schema`.

    Raises:
        InvalidToolMeta: A pattern repeats what repeats or branches, refers back, or is none.
    """
    for pattern in _patterns_in(schema):
        try:
            parsed = patterns.parse(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidToolMeta(f"{where}: pattern {pattern!r:.60}: {error}") from None
        if _takes_long(parsed, inside=False):
            raise InvalidToolMeta(
                f"{where}: pattern {pattern!r:.60} repeats a part that repeats or branches, so a "
                "short text can take forever; write it without"
            )


def try_pattern(validator: Any, pattern: str, instance: Json, schema: Json) -> Iterator[Any]:
    """Yield why a text does not fit a pattern: the keyword `pattern` of `jsonschema`."""
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, str):
        return
    if len(instance) > MAX_PATTERN_TEXT:
        yield ValidationError(f"it has more than {MAX_PATTERN_TEXT} characters, with a pattern")
    elif not re.search(pattern, instance):
        yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")


def _takes_long(parsed: Any, *, inside: bool) -> bool:
    """Return whether a part of a pattern repeats or branches inside a long repeat."""
    for operation, argument in parsed:
        name = str(operation)
        is_long = name in _REPEATS and int(argument[1]) > _SEVERAL
        if name in _REFERS_BACK or (inside and (is_long or name == "BRANCH")):
            return True
        inner = _INNER.get(name, _nothing)(argument)
        if any(_takes_long(one, inside=inside or is_long) for one in inner):
            return True
    return False


def _patterns_in(schema: Json) -> Iterator[str]:
    """Yield each pattern of a schema, those of property names too."""
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
