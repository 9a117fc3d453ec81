"""Late answers: another screen has already answered the question.

Theory of operation. An answer that names its question is refused if that question is closed. A
typed line, or an action of the draft protocol, names no question: it answers the newest open
question that accepts it. If two screens answer at the same time, the question is closed when the
second answer arrives. That answer must not begin a new turn, and must not answer another question
that its user has not seen. So the server looks at the questions that the sender's screen shows for
certain, and refuses the answer if the first one that accepts it is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Input
from arp.session.input.receive import (
    ReadTyped,
    answers_unnamed,
    component_of_data,
    is_reserved,
    shaped,
)
from arp.session.questions import Question
from arp.session.session import Session
from arp.surface.answers import check_answer

_STATE_PROPS = ("state", "answer")
"""Props that the close of a question changes. Without them a component counts as open."""


class _Answerable(Struct, frozen=True):
    """A question that is shown as open on the sender's screen."""

    question: Question
    is_closed: bool


def check_in_time(session: Session, message: Input, read_typed: ReadTyped, shown: int) -> None:
    """Refuse an answer that names no question if the question it means was closed meanwhile.

    Args:
        session: The session; not changed.
        message: Any input.
        read_typed: Parser of typed answers for the sending renderer.
        shown: Sequence number of the last fact that the sender's screen shows for certain.

    Raises:
        InvalidAnswer: The question that the renderer shows is closed; the message says how.
        InvalidMessage: The data has another shape than the input type requires.
    """
    # Nearly always: no question was closed that the sender may still see.
    closed = session.questions.closed
    if not closed or closed[-1].sequence <= shown:
        return
    message = shaped(message)
    if message.source_component or component_of_data(message) or message.edits is not None:
        return
    # These answer nothing: an action of the protocol, and an input that took effect before, which
    # `receive` acknowledges again.
    if is_reserved(message) or message.id in session.input_log:
        return
    for candidate in _on_screen(session, shown):
        component = _component(session, candidate.question)
        if component is None:
            continue
        answer = _as_answer(component, message, read_typed)
        if answer is None:
            continue
        # The component has the state in which its question was closed (answered, declined,
        # expired), so this raises with the message for that state.
        if candidate.is_closed:
            check_answer(component, *answer)
        return


def _on_screen(session: Session, shown: int) -> Iterator[_Answerable]:
    """Yield the questions that a lagging screen shows as open, newest first."""
    questions = session.questions
    closed = [_Answerable(one.question, True) for one in questions.closed if one.sequence > shown]
    still_open = [_Answerable(one, False) for one in questions.values()]
    found = [one for one in (*closed, *still_open) if one.question.asked_at <= shown]
    yield from sorted(found, key=lambda one: one.question.asked_at, reverse=True)


def _component(session: Session, question: Question) -> Component | None:
    tree = session.tree(question.surface)
    if tree is None or question.component_id not in tree.nodes:
        return None
    return tree.component(question.component_id)


def _as_answer(
    component: Component, message: Input, read_typed: ReadTyped
) -> tuple[str, JsonObject] | None:
    """Return the answer that an input gives to a component, as if its question were still open.

    Returns:
        Type and data of the answer; `None` if the input does not fit the component.
    """
    props = {name: value for name, value in component.props.items() if name not in _STATE_PROPS}
    was_open = msgspec.structs.replace(component, props=props)
    if message.input_type == "text":
        return read_typed(was_open, message.data["text"])
    fits = answers_unnamed(was_open, message.input_type, message.data)
    return (message.input_type, message.data) if fits else None
