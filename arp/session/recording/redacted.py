"""Removes secrets from what a session is about to record, so that screen and ledger are the same.

Names (ids, surfaces, paths, epochs) are never changed: what they name could not be found any more.

Theory of operation. A text in a component may grow by appended pieces (`GrowingTexts`). The end of
a piece may be the beginning of a secret, so it is *held*. It is put before the next piece of the
same text, or shown when the turn ends or asks a question. Between two pieces, only the held end is
kept: whether the next piece continues a secret can be seen from the text before it (`grow`). Any
other change of the text drops its held end. A refused commit restores the held ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Replace, Update, parse_path
from arp.protocol.tree import Node, Tree
from arp.redact.names import is_surely_secret_name
from arp.redact.redactor import Found, Redactor
from arp.redact.stream import GROWN_CONTEXT, flush, grow
from arp.surface.change import Change, PatchChange, RenderChange

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
"""Fact types that may have a secret only in their `input`: they have no other text, or it was
redacted before."""

_ENDS = frozenset(("turn.completed", "turn.failed"))
"""Fact types in which only `usage` may have text from an agent."""

_NOT_IDS = frozenset(("correlation", "native_status", "refs", "status_reason", "telemetry"))
"""Fields beside the payload that are redacted, because they are not ids."""

T = TypeVar("T")


def add_found(found: Found, more: Found) -> None:
    """Add the counts of `more` to `found`."""
    for rule, count in more.items():
        found[rule] = found.get(rule, 0) + count


def cleaned_fact(
    redactor: Redactor, type_name: str, payload: JsonObject, ids: dict[str, str], found: Found
) -> JsonObject:
    """Return a payload without secrets, the same object if it has none; redact `ids` in place.

    Args:
        redactor: Finds the secrets.
        type_name: Type of the fact.
        payload: Payload of the fact, plain JSON.
        ids: Fields of the fact beside the payload.
        found: Counts of findings; the new ones are added.
    """
    submitted = payload.get("input")
    has_input = isinstance(submitted, dict) and "data" in submitted
    is_clean = type_name in _CLEAN or (type_name in _ENDS and "usage" not in payload)
    if not redactor.is_on or (is_clean and not has_input):
        return payload
    if not _NOT_IDS.isdisjoint(ids):
        for name in _NOT_IDS & ids.keys():
            ids[name] = clean_into(redactor, ids[name], found)
    if not has_input:
        return clean_into(redactor, payload, found)
    # Only the data of an input is redacted: its id, surface and component are names.
    assert isinstance(submitted, dict)
    data = clean_into(redactor, submitted["data"], found)
    submitted = submitted if data is submitted["data"] else {**submitted, "data": data}
    rest = {**payload}
    del rest["input"]
    if rest and not is_clean:
        rest = clean_into(redactor, rest, found)
    return {**rest, "input": submitted}


def cleaned_changes(
    redactor: Redactor, changes: Sequence[Change], found: Found
) -> Sequence[Change]:
    """Return changes of a surface without secrets, the same object if there are none.

    Appended text is not redacted here but by `GrowingTexts`.

    Args:
        redactor: Finds the secrets.
        changes: Changes as requested.
        found: Counts of findings; the new ones are added.
    """
    if not redactor.is_on:
        return changes
    # One search in the encoded changes is much cheaper than a walk through every component.
    if redactor.suspects(msgspec.json.encode(list(map(_cleanable, changes))).decode()):
        changes = [_cleaned_change(redactor, change, found) for change in changes]
    return changes


def _cleanable(change: Change) -> Sequence[object]:
    """Return the parts of a change that may contain a secret, without ids and types."""
    if isinstance(change, RenderChange):
        return [(one.props, one.fallback) for one in change.components]
    return change.ops


def _cleaned_change(redactor: Redactor, change: Change, found: Found) -> Change:
    if isinstance(change, RenderChange):
        components = [cleaned_component(redactor, one, found) for one in change.components]
        return msgspec.structs.replace(change, components=components)
    return msgspec.structs.replace(
        change, ops=[_cleaned_op(redactor, op, found) for op in change.ops]
    )


def cleaned_component(redactor: Redactor, component: Component, found: Found) -> Component:
    """Return a component without secrets in its props and in its fallback."""
    props = clean_into(redactor, component.props, found, shown=True)
    fallback = component.fallback
    if fallback is not None:
        fallback = cleaned_component(redactor, fallback, found)
    if props is component.props and fallback is component.fallback:
        return component
    return msgspec.structs.replace(component, props=props, fallback=fallback)


def _cleaned_op(redactor: Redactor, op: PatchOp, found: Found) -> PatchOp:
    match op:
        case Append(value=str()) if not is_surely_secret_name(op.path.rpartition(".")[2]):
            return op  # `GrowingTexts` redacts it: a secret may be split between two appends
        case Update() | Append():
            name = op.path.rpartition(".")[2]
            cleaned = clean_into(redactor, {name: op.value}, found, shown=True)
            return msgspec.structs.replace(op, value=cleaned[name]) if name in cleaned else op
        case Insert() | Replace():
            component = cleaned_component(redactor, op.component, found)
            return msgspec.structs.replace(op, component=component)
        case _:
            return op


def clean_into(redactor: Redactor, value: T, found: Found, shown: bool = False) -> T:
    """Return JSON without secrets, the same value if it has none; add the findings to `found`."""
    cleaned, more = redactor.clean(value, shown)
    if more:
        add_found(found, more)
    out: Json = cleaned
    return out  # type: ignore[no-any-return]  # JSON in, JSON of the same kind out


class TextName(NamedTuple):
    """Location of a text in a component."""

    surface: str
    target: str
    path: str


class HeldText(NamedTuple):
    """The held end of a text."""

    text: str
    turn_id: str | None
    """Turn that appended it."""


class GrowingTexts:
    """Held ends of the growing texts in the components of one session."""

    __slots__ = ("_before", "_held", "_redactor", "_written")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held: dict[TextName, HeldText] = {}
        self._before: dict[TextName, HeldText] = {}
        """Copy of `_held` from before the current commit."""
        self._written: dict[TextName, str] = {}
        """Ends of the texts that the current commit has changed so far."""

    def admit(
        self,
        changes: Sequence[Change],
        surface: str,
        turn_id: str | None,
        tree: Tree | None,
        found: Found,
    ) -> Sequence[Change]:
        """Return changes with only the appended text that may be shown now; hold the rest.

        Args:
            changes: Changes of one commit, in order, already redacted except for appended text.
            surface: Surface that they change.
            turn_id: Turn that makes them.
            tree: Current components of the surface; `None` if it is new.
            found: Counts of findings; the new ones are added.
        """
        self._before = dict(self._held)
        self._written = {}
        if not self._redactor.is_on:
            return changes
        # Earlier changes of this commit are not in the tree yet. Without `shown` and `_written`, an
        # append to a component of the same commit would miss a secret that begins there.
        shown: list[Component] = []
        out: list[Change] = []
        for change in changes:
            if isinstance(change, RenderChange):
                self._forget(surface, [one.id for one in change.components], change.replace)
                shown += change.components
                out.append(change)
                continue
            ops: list[PatchOp] = []
            for op in change.ops:
                if isinstance(op, Append) and isinstance(op.value, str):
                    name = TextName(surface, op.target, op.path)
                    before = self._end_of(name, tree, shown)
                    ops.append(self._grown(op, name, before, turn_id, found))
                    continue
                ops.append(op)
                if isinstance(op, Insert | Replace):
                    shown.append(op.component)
                if isinstance(op, Update | Append):
                    self._overwrite(TextName(surface, op.target, op.path), op)
                elif isinstance(op, Remove | Replace):
                    self._forget(surface, [op.target])
            same = all(map(_is_same, ops, change.ops))
            out.append(change if same else PatchChange(ops))
        return out

    def keep(self) -> None:
        """End the current commit, which was applied; the held texts stay as they are now."""
        self._written = {}

    def take_back(self) -> None:
        """End the current commit, which was refused; restore the held texts from before it."""
        self._held, self._written = self._before, {}

    def flush(
        self, turn_id: str | None, trees: dict[str, Tree], found: Found
    ) -> list[tuple[str, Append]]:
        """Remove the texts held for a turn, and return them as appends with their surfaces.

        Args:
            turn_id: Id of the turn.
            trees: Components of the surfaces, by surface name.
            found: Counts of findings; the new ones are added.
        """
        out: list[tuple[str, Append]] = []
        for name, held in list(self._held.items()):
            if held.turn_id != turn_id:
                continue
            del self._held[name]
            tree = trees.get(name.surface)
            if tree is None or name.target not in tree.nodes:
                continue
            grown = flush(self._redactor, held.text, self._end_of(name, tree, ()))
            add_found(found, grown.found)
            out.append((name.surface, Append(name.target, name.path, grown.out)))
        return out

    def _grown(
        self, op: Append, name: TextName, before: str, turn_id: str | None, found: Found
    ) -> Append:
        """Return an append with the text that may be shown; hold the rest."""
        held = self._held.pop(name, None)
        grown = grow(self._redactor, held.text if held is not None else "", op.value, before)
        if grown.held:
            self._held[name] = HeldText(grown.held, turn_id)
        self._written[name] = (before + grown.out)[-GROWN_CONTEXT:]
        add_found(found, grown.found)
        return op if grown.out == op.value else msgspec.structs.replace(op, value=grown.out)

    def _overwrite(self, name: TextName, op: Update | Append) -> None:
        """Drop the held texts at or below a path that gets a new value."""
        for other in [*self._held, *self._written]:
            if other[:2] == name[:2] and f"{other.path}.".startswith(f"{name.path}."):
                self._held.pop(other, None)
                self._written.pop(other, None)
        if isinstance(op.value, str):
            self._written[name] = op.value[-GROWN_CONTEXT:]

    def forget_surface(self, surface: str) -> None:
        """Drop the held texts of a closed surface."""
        self._forget(surface, (), everything=True)

    def _forget(self, surface: str, targets: Sequence[str], everything: bool = False) -> None:
        """Drop the held texts of components that are replaced or removed."""
        for name in [*self._held, *self._written]:
            if name.surface == surface and (everything or name.target in targets):
                self._held.pop(name, None)
                self._written.pop(name, None)

    def _end_of(self, name: TextName, tree: Tree | None, shown: Sequence[Component]) -> str:
        """Return the current end of a text; an empty string if there is no such text."""
        written = self._written.get(name)
        if written is not None:
            return written
        for component in reversed(shown):
            found = _find(component.id, component.props, name.target)
            if found is not None:
                return _end_at(found, name.path)
        node = tree.nodes.get(name.target) if tree is not None else None
        if node is None:
            return ""
        if name.path == "props.content":
            return end_of(node)
        return _end_at(node.own, name.path)


def end_of(node: Node) -> str:
    """Return at least the last `GROWN_CONTEXT` characters of a node's content.

    The content is not joined: that would make each append as expensive as the whole text.
    """
    tail = "".join(node.tail[-GROWN_CONTEXT:])
    content = node.own.get("content")
    if len(tail) < GROWN_CONTEXT and isinstance(content, str):
        tail = content[-GROWN_CONTEXT:] + tail
    return tail


def _end_at(props: JsonObject, path: str) -> str:
    """Return the end of the text at a path; an empty string if the path is wrong.

    The commit reports a wrong path.
    """
    try:
        segments = parse_path(path)
    except InvalidPatch:
        return ""
    value: Json = props
    for segment in segments:
        if isinstance(value, dict):
            value = value.get(str(segment))
        elif isinstance(value, list) and isinstance(segment, int) and segment < len(value):
            value = value[segment]
        else:
            return ""
    return value[-GROWN_CONTEXT:] if isinstance(value, str) else ""


def _find(component_id: str, props: Json, wanted: str) -> JsonObject | None:
    """Return the props of the wanted component, which is this one or one of its descendants."""
    if component_id == wanted:
        own: JsonObject = props
        return own
    rest: list[Json] = [props]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += value
        elif isinstance(value, dict):
            if value.get("id") == wanted and isinstance(value.get("props"), dict):
                found: JsonObject = value["props"]
                return found
            rest += value.values()
    return None


def _is_same(one: PatchOp, other: PatchOp) -> bool:
    return one is other
