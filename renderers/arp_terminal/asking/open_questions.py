"""Which questions are open on a screen, and which of them to ask now."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from arp.protocol.catalog import asks
from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import FINAL_STATUSES, Permission
from arp.protocol.screen import Screen
from arp_terminal.drawing.permission import input_of
from arp_terminal.drawing.questions import is_open

_QUESTION_TYPES = frozenset(("form", "confirm", "choices", "text-input"))


class Question(Struct, frozen=True):
    """An input component that still accepts an answer."""

    component: Component
    offered: bool
    """Its turn is over: the agent does not wait for the answer."""


def next_question(screen: Screen, passed: Collection[str]) -> Question | None:
    """Return the question to ask now.

    The oldest one of a turn that is not over; else the oldest one of a turn that a restart of the
    server cut off, which still waits; else the last one of the newest turn.

    Args:
        screen: What shows.
        passed: Ids of questions that are not to be asked (again).
    """
    newest = next(reversed(screen.turns), None)
    left: Question | None = None
    last: Question | None = None
    for turn_id, turn in screen.turns.items():
        over = turn.final or turn.status in FINAL_STATUSES
        waits = turn.status == "waiting"
        if over and not waits and turn_id != newest:
            continue
        for component in _questions(screen, turn_id):
            if component.id in passed or not is_open(component.props):
                continue
            if not over:
                return Question(component, offered=False)
            last = Question(component, offered=True)
            if waits and left is None:
                left = last
    return left or last


def permission_of(screen: Screen, component_id: str) -> tuple[Permission, str] | None:
    """Return the permission that a component asks for, and the input to be approved as JSON.

    What asks for permission, the server says; no component of an agent can pass for it.
    """
    for turn in screen.turns.values():
        permission = turn.permissions.get(component_id)
        if permission is not None:
            return permission, input_of(turn, permission)
    return None


def find(screen: Screen, component_id: str) -> Component | None:
    """Return a component as it is now, `None` if it is gone."""
    tree = screen.surfaces["main"]
    return tree.component(component_id) if component_id in tree.nodes else None


def is_question(type_name: str, props: JsonObject) -> bool:
    """Return whether a component asks something: a table does if its rows can be selected."""
    return type_name in _QUESTION_TYPES or (type_name == "table" and asks(type_name, props))


def is_open_question(component: Component) -> bool:
    """Return whether a component is a question that still accepts an answer."""
    return is_question(component.type, component.props) and is_open(component.props)


def _questions(screen: Screen, turn_id: str) -> Iterator[Component]:
    """Return the input components of a turn, nested ones too, in order."""
    tree = screen.surfaces["main"]
    waiting = list(reversed(tree.outputs.get(turn_id, [])))
    while waiting:
        node = tree.nodes[waiting.pop()]
        if is_question(node.type, node.own):
            yield tree.component(node.id)
        waiting.extend(reversed(node.children))
