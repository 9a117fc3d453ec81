"""Says why a value does not fit its type: what, where in the sender's words, and what would fit."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

import msgspec

from arp.protocol.prop_walk import NoSuchProp, bounds, names_in, nearest, options, type_at

_PLACE = re.compile(r"(.*) - at `\$([^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WRONG_KIND = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_NO_SUCH_WORD = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_KINDS = {"int": "number", "float": "number", "str": "string", "bool": "boolean"}
_SHOWN = 60
"""How many characters of a foreign name or value a message repeats."""


def explain(error: msgspec.ValidationError, root: Any, where: str, cut: str = "") -> str:
    """Translates a refusal of `msgspec.convert(value, root)`.

    Args:
        error: What `convert` raised.
        root: The type that the value did not fit.
        where: How the sender knows the value: `components[0].props`, say.
        cut: The field of `root` that `where` stands for; empty for `root` as a whole.

    Returns:
        For instance `components[0].props.rows[3]: expected array, got number`.
    """
    found = _PLACE.fullmatch(str(error))
    reason, path = found.groups() if found else (str(error), "")
    place = where + (path.removeprefix(f".{cut}") if cut else path)
    annotation = _annotation(root, path)
    if missing := _MISSING.fullmatch(reason):
        return f"{place}.{missing[1]}: missing"
    if unknown := _UNKNOWN.fullmatch(reason):
        hint = nearest(unknown[1], names_in(annotation))
        return f"{place}.{unknown[1]:.{_SHOWN}}: unknown{hint}"
    if kinds := _WRONG_KIND.fullmatch(reason):
        return f"{place}: {_wrong_kind(kinds[1], kinds[2])}"
    if word := _NO_SUCH_WORD.fullmatch(reason):
        return f"{place}: {word[1]:.{_SHOWN}} is not one of {', '.join(_words(annotation))}"
    if reason.startswith("Expected `") and (wanted := dict.fromkeys(_bounds(annotation))):
        return f"{place}: expected {' or '.join(wanted)}"
    return f"{place}: {reason}"


def kind_of(value: Any) -> str:
    """Name the kind of a JSON value the way the wire does; other types by their own name."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {**names, list: "array", dict: "object"}.get(type(value), type(value).__name__)


def _annotation(root: Any, path: str) -> Any:
    steps = tuple(0 if index else name for name, index in _STEP.findall(path))
    try:
        return type_at(root, steps)
    except NoSuchProp:
        return Any


def _wrong_kind(expected: str, got: str) -> str:
    if got == "float" and "int" in expected.split(" | "):
        return "expected whole number, got fraction"
    kinds = list(dict.fromkeys(_KINDS.get(name, name) for name in expected.split(" | ")))
    wanted = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
    return f"expected {wanted}, got {_KINDS.get(got, got)}"


def _words(annotation: Any) -> list[str]:
    return [
        str(word)
        for option in options(annotation)
        if get_origin(option) is Literal
        for word in get_args(option)
    ]


def _bounds(annotation: Any) -> list[str]:
    return [mark.description for mark in bounds(annotation) if mark.description]
