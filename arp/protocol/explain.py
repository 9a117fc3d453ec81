"""Turns msgspec's validation errors into sentences with a path that the sender knows."""

from __future__ import annotations

import re

import msgspec

_KINDS = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "null": "null",
    "dict": "object",
}
_AT = re.compile(r"(?P<what>.*?) - at `\$(?P<path>[^`]*)`\Z", re.DOTALL)
_TYPES = re.compile(r"`([^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")


def explain(error: msgspec.ValidationError, where: str) -> str:
    """Says what was wrong and where, in JSON's own words.

    Args:
        error: From `convert` or `decode`.
        where: The name of the value that `$` stands for; `components[0].props`, say.

    Returns:
        For instance `components[0].props.rows[3]: expected array, got integer`.
    """
    text = str(error)
    match = _AT.fullmatch(text)
    what, path = (match["what"], match["path"]) if match else (text, "")
    place = where + path.replace("[...]", "{}")
    if missing := _MISSING.fullmatch(what):
        return f"{place}.{missing['name']}: missing"
    if unknown := _UNKNOWN.fullmatch(what):
        return f"{place}.{unknown['name']}: unknown property"
    return f"{place}: {_TYPES.sub(_in_json_words, what[:1].lower() + what[1:])}"


def _in_json_words(match: re.Match[str]) -> str:
    return " or ".join(_KINDS.get(part, part) for part in match[1].split(" | "))
