"""Questions of turns: they are asked, answered, declined, cancelled and asked again.

Theory of operation. A question is a component with a state, and two facts: `action.required` opens
it, `action.resolved` closes it. First the component changes, which may be refused; then the fact is
recorded. `Questions` has the open ones, and decides what the closing fact says about the turn.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import msgspec

from arp.protocol.catalog import asks
from arp.protocol.components import Component, as_object
from arp.protocol.errors import ArpError, InvalidComponent
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.patch import PatchOp, Update
from arp.session.approval import Grant
from arp.session.questions import Question
from arp.session.session import NO_OPTIONS, QuestionOptions, Session
from arp.surface.change import PatchChange, RenderChange
from arp.surface.degrade import answerable


def ask_question(
    session: Session,
    turn_id: str,
    component: Component,
    surface: str = "main",
    options: QuestionOptions = NO_OPTIONS,
) -> Question:
    """Show a component that waits for an answer.

    A question with the same id that an earlier turn left open expires.

    Args:
        session: The session.
        turn_id: The turn that asks.
        component: The question.
        surface: Surface that shows the question.
        options: Recorded options of the question.

    Raises:
        ArpError: The component is refused, or this turn has an open question with the same id;
            nothing has changed.
    """
    if component.type == "table" and not asks("table", component.props):
        raise InvalidComponent(
            'a table asks for rows with selectable: "one" or "many"', detail=component.id
        )
    session.show_held(turn_id)
    before = session.questions.replaced_by(turn_id, surface, component.id)
    props = {**component.props, "state": "open"}
    asked = session.log.clean_component(msgspec.structs.replace(answerable(component), props=props))
    session.commit(turn_id, surface, [RenderChange([asked])])
    # Only now: a refused component must leave the earlier question open.
    if before is not None:
        _close_question(session, before, {"decision": "expired"})
    action_id = f"{turn_id}.{component.id}.{session.log.sequence + 1}"
    payload = {"component": as_object(asked), "surface": surface}
    if options.name:
        payload["name"] = options.name
    ids = {"action_id": action_id}
    if (request := options.request) is not None:
        session.questions.note_permission(turn_id)
        payload |= request.payload(session.log.clean_value)
        ids |= request.ids
    if options.expires_at is not None:
        payload["expiresAt"] = options.expires_at
    session.in_turn("action.required", turn_id, payload, **ids)
    return session.questions[surface, component.id]


def answer_question(
    session: Session,
    question: Question,
    answer: Json,
    submitted: JsonObject | None,
    grant: Grant | None = None,
) -> None:
    """Close a question with its answer, for every renderer.

    Args:
        session: The session.
        question: An open question.
        answer: The answer in the form that every renderer may see.
        submitted: The input with the answer; `None` if that input begins a turn of its own.
        grant: Permission for the rest of the session that the answer gives.

    Raises:
        ResourceLimit: The answer does not fit the component; the question stays open.
    """
    mark_input(
        session, question.component_id, question.surface, "answered", answer, question.turn_id
    )
    input_of = {"answer": answer, "input": submitted} if submitted is not None else {}
    if grant is not None:
        input_of["grant"] = {"tool": grant.tool, "rule": grant.rule}
    _close_question(session, question, {"decision": "answered", **input_of})


def decline_question(session: Session, question: Question, submitted: JsonObject | None) -> None:
    """Close a question that the user declines, for every renderer.

    Args:
        session: The session.
        question: An open question.
        submitted: The input that declines; `None` if that input begins a turn of its own.
    """
    _mark_closed(session, question, "declined")
    input_of: JsonObject = {"input": submitted} if submitted is not None else {}
    _close_question(session, question, {"decision": "declined", **input_of})


def cancel_question(
    session: Session, question: Question, outcome: Literal["cancelled", "expired"] = "cancelled"
) -> None:
    """Close a question for every renderer without an answer."""
    session.questions.note_unanswered(question)
    _mark_closed(session, question, outcome)
    _close_question(session, question, {"decision": outcome})


def replace_question(session: Session, question: Question) -> None:
    """Close a question for every renderer, because the running turn asks it again.

    If it was the last open question of its turn, that turn is shown as completed: the running
    turn continues its work.
    """
    _mark_closed(session, question, "expired")
    _close_question(session, question, {"decision": "expired"}, is_continued=True)


def _mark_closed(session: Session, question: Question, state: str) -> None:
    """Show a question as closed without an answer."""
    # The question must close even if the component has no room left for its new state.
    with suppress(ArpError):
        mark_input(session, question.component_id, question.surface, state, None, question.turn_id)


def _close_question(
    session: Session, question: Question, payload: JsonObject, is_continued: bool = False
) -> None:
    """Record the end of a question, and of its turn if the turn is only shown as waiting."""
    turn_id = question.turn_id
    closing = session.questions.closing(
        question, payload, session.turns.running, session.status_of(turn_id), is_continued
    )
    # Read before the fact is recorded, which removes it.
    attempt = session.attempts.get(turn_id) if "ends" in closing else None
    session.in_turn("action.resolved", turn_id, closing, action_id=question.action_id)
    reason = None if closing.get("ends") == "completed" else "cancelled"
    thread = session.threads.of(turn_id)
    session.record_step(session.attempts.end_facts(attempt, turn_id, thread, reason))


def mark_input(
    session: Session, component_id: str, surface: str, state: str, answer: Json, turn_id: str | None
) -> None:
    """Set an input component's `state`, and its `answer` if there is one.

    Nothing changes if the agent has replaced the question by a component of another kind.
    """
    tree = session.tree(surface)
    node = tree.nodes.get(component_id) if tree is not None else None
    if node is None or not asks(node.type, node.own):
        return
    ops: list[PatchOp] = [Update(component_id, "props.state", state)]
    if answer is not None:
        # The findings are reported with `action.resolved`, which contains the same answer.
        hidden, _ = session.log.redactor.clean(answer)
        ops.append(Update(component_id, "props.answer", hidden))
    session.commit(turn_id, surface, [PatchChange(ops)])
