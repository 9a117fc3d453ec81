"""Texts and values of an agent's own code, in a form that every encoding can carry."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from numbers import Integral, Real

import msgspec

from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import Json, check_plain_json
from arp.protocol.safe_text import well_formed as well_formed

PREVIEW_CHARACTERS = 2_000
"""Characters of an output that the ledger keeps; a screen shows no more of one at once."""


def encoded(value: object) -> bytes:
    """Return a value as JSON with well-formed texts.

    A subclass of `str`, `int` or `float`, and a number of another library, count as the value that
    they hold, and an `Enum` as its value. NaN and infinities become `null`, because JSON does not
    have them.

    Raises:
        TypeError: JSON cannot express the value.
        ValueError: It is nested too deeply, or contains itself.
    """
    try:
        try:
            return msgspec.json.encode(value, enc_hook=_encode_scalar)
        except UnicodeEncodeError:
            built = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_scalar)
            return msgspec.json.encode(_well_formed(built))
    except RecursionError:
        raise ValueError("nested too deep to be written as JSON, or it contains itself") from None


def json_text(value: Json) -> str:
    """Return a value as JSON text.

    A text that is JSON already is returned unchanged. A value that JSON cannot express becomes its
    `repr`.
    """
    if isinstance(value, str) and _is_json(text := well_formed(value)):
        return text
    try:
        return encoded(value).decode()
    except (TypeError, ValueError):
        return encoded(repr_text(value)).decode()


def repr_text(value: object) -> str:
    """Return the `repr` of a value, or the name of its type if `repr` raises."""
    try:
        return well_formed(repr(value))
    except Exception:  # noqa: BLE001 - `repr` runs foreign code, which may raise anything
        return f"<{type(value).__name__}>"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def plain(value: Json) -> Json:
    """Return a deep copy as plain JSON: exact types, and no part is shared with the value.

    Raises:
        TypeError: JSON cannot express the value.
        ValueError: It is nested too deeply, or has an integer of more than 64 bits.
    """
    copied: Json = msgspec.json.decode(encoded(value))
    try:
        check_plain_json(copied, "value")
    except InvalidMessage as error:
        raise ValueError(error.message) from None
    return copied


def check_kind(value: object, kind: type, name: str) -> None:
    """Raise if an argument is of another class.

    Args:
        value: The argument.
        kind: Required class.
        name: Name of the argument, for the message.

    Raises:
        TypeError: The message names both classes.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")


def _encode_scalar(value: object) -> str | int | float:
    """Return a value that msgspec can encode for a scalar that it does not know."""
    if issubclass(type(value), str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _well_formed(value: Json) -> Json:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(name): _well_formed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_well_formed(inner) for inner in value]
    return value


def refuse_unknown(
    where: str, given: Iterable[str], known: Collection[str], why: str = " is unknown"
) -> None:
    """Raise for a named argument that a call does not have.

    Args:
        where: The call, as authors write it.
        given: Names of the given arguments.
        known: Names of the valid arguments.
        why: Text about an argument that resembles no valid one.

    Raises:
        TypeError: The message names the nearest valid argument.
    """
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(unknown[0], known, 1)
    hint = f" is unknown; did you mean {near[0]}?" if near else why
    raise TypeError(f"{where}: {unknown[0] if near else ', '.join(unknown)}{hint}")
