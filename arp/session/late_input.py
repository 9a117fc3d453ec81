"""An answer that comes too late: another screen has answered the question first.

Theory of operation. An answer that names its question is refused by the state of that question. A
typed line, and an action of the draft, name none: they answer the newest question that fits. When
two screens answer at the same time, the question of the later one is closed when its answer comes.
Its answer must not become a new turn, and must not answer another question, which its user has not
seen. So the server compares with what the renderer of that answer shows for certain.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Input
from arp.session.inputs import (
    ReadTyped,
    answers_unnamed,
    component_of_data,
    is_reserved,
    shaped,
)
from arp.session.session import Question, Session
from arp.surface.answers import check_answer

_OPEN = ("state", "answer")


class _Answerable(Struct, frozen=True):
    """A question that is open on the screen from which an answer comes."""

    question: Question
    is_closed: bool


def check_in_time(session: Session, message: Input, read_typed: ReadTyped, shown: int) -> None:
    """Refuse an answer without a name if its question was closed meanwhile.

    Args:
        session: Not changed.
        message: Any input.
        read_typed: As in `receive`.
        shown: Sequence of the last fact that the sender's screen shows for certain.

    Raises:
        InvalidAnswer: The question that the renderer shows is closed; the message says how.
        InvalidMessage: The data of the input has another shape.
    """
    if not session.closed or session.closed[-1].sequence <= shown:
        return
    message = shaped(message)
    if message.source_component or component_of_data(message) or message.edits is not None:
        return
    if is_reserved(message) or message.id in session.input_log:
        return
    for candidate in _on_screen(session, shown):
        component = _component(session, candidate.question)
        if component is None:
            continue
        meant = _meant(component, message, read_typed)
        if meant is None:
            continue
        if candidate.is_closed:
            check_answer(component, *meant)
        return


def _on_screen(session: Session, shown: int) -> Iterator[_Answerable]:
    """Return the questions that are open on a screen which is behind, newest first."""
    closed = [_Answerable(one.question, True) for one in session.closed if one.sequence > shown]
    still_open = [_Answerable(one, False) for one in session.questions.values()]
    found = [one for one in (*closed, *still_open) if one.question.asked_at <= shown]
    yield from sorted(found, key=lambda one: one.question.asked_at, reverse=True)


def _component(session: Session, question: Question) -> Component | None:
    tree = session.tree(question.surface)
    if tree is None or question.component_id not in tree.nodes:
        return None
    return tree.component(question.component_id)


def _meant(
    component: Component, message: Input, read_typed: ReadTyped
) -> tuple[str, JsonObject] | None:
    """Return an input as an answer to a question while that was open; `None`: it is none."""
    props = {name: value for name, value in component.props.items() if name not in _OPEN}
    was_open = msgspec.structs.replace(component, props=props)
    if message.input_type == "text":
        return read_typed(was_open, message.data["text"])
    fits = answers_unnamed(was_open, message.input_type, message.data)
    return (message.input_type, message.data) if fits else None
