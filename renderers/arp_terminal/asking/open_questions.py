"""The open questions of a screen, and the order of asking them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from arp.protocol.catalog import asks
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import FINAL_STATUSES, Permission
from arp_terminal.drawing.permission import input_of
from arp_terminal.drawing.questions import is_open

_QUESTION_TYPES = frozenset(("form", "confirm", "choices", "text-input"))


class Question(Struct, frozen=True):
    """An input component that still accepts an answer."""

    component: Component
    offered: bool
    """Whether its turn is over, so that the agent continues without an answer."""


def open_questions(screen: Screen, passed: Collection[str]) -> list[Question]:
    """Return the questions to ask, in this order.

    First come the questions of turns that are not over, oldest first; then those of turns that a
    restart of the server cut off, which still wait. If there are none, the last question of the
    newest turn is offered; the agent continues without an answer.

    Args:
        screen: The current screen.
        passed: Ids of questions that are not to be asked (again).
    """
    newest = next(reversed(screen.turns), None)
    awaited: list[Question] = []
    cut_off: list[Question] = []
    offered: list[Question] = []
    for turn_id, turn in screen.turns.items():
        is_over = turn.final or turn.status in FINAL_STATUSES
        is_waiting = turn.status == "waiting"
        if is_over and not is_waiting and turn_id != newest:
            continue
        found = [
            Question(component, offered=is_over)
            for component in _questions(screen, turn_id)
            if component.id not in passed and is_open(component.props)
        ]
        if not is_over:
            awaited += found
        elif is_waiting:
            cut_off += found
        else:
            offered = found[-1:]
    return [*awaited, *cut_off] or offered


def permission_of(screen: Screen, component_id: str) -> tuple[Permission, str] | None:
    """Return the permission that a component asks for, and the input to be approved as JSON.

    Only the server sends permissions, so no component of an agent can pretend to ask for one.
    """
    for turn in screen.turns.values():
        permission = turn.permissions.get(component_id)
        if permission is not None:
            return permission, input_of(turn, permission)
    return None


def find(screen: Screen, component_id: str) -> Component | None:
    """Return the current state of a component; `None` if it is gone."""
    tree = screen.surfaces["main"]
    return tree.component(component_id) if component_id in tree.nodes else None


def is_question(type_name: str, props: JsonObject) -> bool:
    """Return whether a component asks a question; a table does if its rows can be selected."""
    return type_name in _QUESTION_TYPES or (type_name == "table" and asks(type_name, props))


def is_open_question(component: Component) -> bool:
    """Return whether a component is an open question."""
    return is_question(component.type, component.props) and is_open(component.props)


def _questions(screen: Screen, turn_id: str) -> Iterator[Component]:
    """Return the input components of a turn in order, including nested ones."""
    tree = screen.surfaces["main"]
    waiting = list(reversed(tree.outputs.get(turn_id, [])))
    while waiting:
        node = tree.nodes[waiting.pop()]
        if is_question(node.type, node.own):
            yield tree.component(node.id)
        waiting.extend(reversed(node.children))
