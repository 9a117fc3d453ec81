"""Takes secrets out of what a session is about to record, so that screen and ledger hold the same.

What names things stays as it is, or they would not be found again: ids, surfaces, paths, epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.patch import Append, Insert, PatchOp, Replace, Update
from arp.redact.names import is_surely_secret_name
from arp.redact.redactor import Found, Redactor
from arp.session.projection import stored
from arp.surface.change import Change, RenderChange

_CLEAN = frozenset(
    (
        "action.required",
        "channel.connected",
        "channel.disconnected",
        "channel.resumed",
        "output.redacted",
        "queue.changed",
        "session.created",
        "turn.started",
    )
)
"""Facts that hold nothing that anybody said, or a component that was cleaned before."""

_SAID = frozenset(("correlation", "native_status", "refs", "status_reason", "telemetry"))
"""What goes beside the payload and is no id."""

T = TypeVar("T")


def add_found(found: Found, more: Found) -> None:
    """Count what was found together."""
    for rule, count in more.items():
        found[rule] = found.get(rule, 0) + count


def cleaned_fact(
    redactor: Redactor, type_name: str, payload: JsonObject, ids: dict[str, str], found: Found
) -> JsonObject:
    """Return a payload without secrets, the same one if there are none; cleans `ids` in place.

    Args:
        redactor: What finds them.
        type_name: Of the fact.
        payload: Plain JSON.
        ids: What goes beside it.
        found: Takes what was found.
    """
    if type_name in _CLEAN or not redactor.is_on:
        return payload
    if not _SAID.isdisjoint(ids):
        for name in _SAID & ids.keys():
            ids[name] = _clean(redactor, ids[name], found)
    told = payload.get("input")
    if not isinstance(told, dict) or "data" not in told:
        return _clean(redactor, payload, found)
    rest = {name: value for name, value in payload.items() if name != "input"}
    data = _clean(redactor, told["data"], found)
    same = data is told["data"]
    return {**_clean(redactor, rest, found), "input": told if same else {**told, "data": data}}


def cleaned_changes(
    redactor: Redactor, changes: Sequence[Change], found: Found
) -> Sequence[Change]:
    """Return changes of a surface without secrets, the same ones if there are none.

    Text that is appended is left as it is: see `Growing`.

    Args:
        redactor: What finds them.
        changes: As they were asked for.
        found: Takes what was found.
    """
    if not redactor.is_on:
        return changes
    if redactor.suspects(msgspec.json.encode(stored(changes)).decode()):
        changes = [_cleaned_change(redactor, change, found) for change in changes]
    return changes


def _cleaned_change(redactor: Redactor, change: Change, found: Found) -> Change:
    if isinstance(change, RenderChange):
        components = [cleaned_component(redactor, one, found) for one in change.components]
        return msgspec.structs.replace(change, components=components)
    return msgspec.structs.replace(
        change, ops=[_cleaned_op(redactor, op, found) for op in change.ops]
    )


def cleaned_component(redactor: Redactor, component: Component, found: Found) -> Component:
    """Return a component without secrets in its props, or in what may be shown instead of it."""
    props = _clean(redactor, component.props, found, shown=True)
    fallback = component.fallback
    if fallback is not None:
        fallback = cleaned_component(redactor, fallback, found)
    if props is component.props and fallback is component.fallback:
        return component
    return msgspec.structs.replace(component, props=props, fallback=fallback)


def _cleaned_op(redactor: Redactor, op: PatchOp, found: Found) -> PatchOp:
    match op:
        case Append(value=str()) if not is_surely_secret_name(op.path.rpartition(".")[2]):
            return op
        case Update() | Append():
            name = op.path.rpartition(".")[2]
            cleaned = _clean(redactor, {name: op.value}, found, shown=True)
            return msgspec.structs.replace(op, value=cleaned[name]) if name in cleaned else op
        case Insert() | Replace():
            component = cleaned_component(redactor, op.component, found)
            return msgspec.structs.replace(op, component=component)
        case _:
            return op


def _clean(redactor: Redactor, value: T, found: Found, shown: bool = False) -> T:
    cleaned, more = redactor.clean(value, shown)
    add_found(found, more)
    out: Json = cleaned
    return out  # type: ignore[no-any-return]  # JSON in, JSON of the same kind out
