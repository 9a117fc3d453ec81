"""Answers to what a turn asks, by the stable id of the action."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from arp.control.asked import Id, OfSession
from arp.control.desk import Desk
from arp.hub.live import LiveSession
from arp.ledger.fact import Fact, decode
from arp.protocol.catalog import CATALOG
from arp.protocol.component import Component
from arp.protocol.errors import InvalidMessage, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Input, InputType
from arp.session.effects import Acknowledge
from arp.session.inputs import receive
from arp.session.session import Question
from arp.surface.answers import answer_value, check_answer, public_answer
from arp.surface.draft_answer import understand_draft

READ_FACTS = 1000
"""Facts looked through at once for what became of an action."""


class Respond(OfSession, frozen=True, kw_only=True):
    """Answers a pending action."""

    action_id: Id
    response: Json
    """Confirm: true or false. Choices: the value, or a list of values. Form: its fields by name.
    Text input: the text. A custom component: an object with `action`."""


class ActionState(Struct, frozen=True, rename="camel"):
    """What became of an action."""

    session_id: str
    action_id: str
    turn_id: str
    """The turn that goes on with the answer: a new one if the turn that asked is over."""
    decision: Literal["answered"]
    sequence: int
    """The session's newest fact when this was said."""
    repeated: bool = False
    """It was answered so before: the call changed nothing."""


class Actions:
    """Pending actions of sessions that belong to one principal."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, asked: Respond) -> ActionState:
        """Answers an action once; the answer is durable when this returns.

        Raises:
            UnknownObject: No such action, or it is over without this answer: cancelled, expired,
                answered otherwise. Nothing has changed.
            InvalidAnswer: The answer does not fit; the action stays open.

        Source: ledger.md 5, respond_action. What nobody answered is never approved.
        """
        live = await self._desk.to_change(asked.session_id)
        question = _open(live, asked.action_id)
        if question is None:
            return await self._over(live, asked)
        tree = live.session.tree(question.surface)
        assert tree is not None
        component = tree.component(question.component_id)
        input_type, data = as_input(component, asked.response)
        message = Input(
            input_type=input_type,
            data=data,
            source_component=question.component_id,
            surface=question.surface,
            id=f"action:{question.action_id}"[:256],
        )
        count = live.session.turn_count
        effects = receive(live.session, message, understand_draft)
        live.began(self._desk.principal.known_as, count)
        self._desk.carry_out(live, effects)
        goes_on = next((one.turn_id for one in effects if isinstance(one, Acknowledge)), None)
        state = _state(live, question.action_id, goes_on or question.turn_id)
        await live.written()
        return state

    async def _over(self, live: LiveSession, asked: Respond) -> ActionState:
        """Says that an action was answered so before, or why it takes no answer."""
        required, resolved = await self._recorded(live, asked.action_id)
        if required is None or required.turn_id is None:
            raise UnknownObject(
                f"no action {asked.action_id!r:.80} in this session", detail=asked.action_id
            )
        payload = resolved.payload if resolved is not None else {}
        decision = payload.get("decision", "over")
        if decision != "answered":
            raise UnknownObject(
                f"action {asked.action_id} is {decision}; it takes no answer any more",
                detail=asked.action_id,
            )
        if "answer" in payload and payload["answer"] != _public(required, asked.response):
            raise UnknownObject(
                f"action {asked.action_id} is answered already, otherwise", detail=asked.action_id
            )
        return _state(live, asked.action_id, required.turn_id, repeated=True)

    async def _recorded(self, live: LiveSession, action_id: str) -> tuple[Fact | None, Fact | None]:
        """Reads what began an action and what ended it; the id says where it began."""
        number = action_id.rpartition(".")[2]
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return None, None
        await live.written()
        after, mark = int(number) - 1, action_id.encode()
        required: Fact | None = None
        while chunk := await self._desk.hub.store.read(live.id, after, READ_FACTS):
            for _, body in chunk:
                fact = decode(body) if mark in body else None
                is_of = fact is not None and fact.action_id == action_id
                if required is None:
                    if not is_of:
                        return None, None
                    required = fact
                elif is_of and fact is not None and fact.type == "action.resolved":
                    return required, fact
            after = chunk[-1][0]
        return required, None


def as_input(component: Component, response: Json) -> tuple[InputType, JsonObject]:
    """Gives the input that a plain answer to a component stands for.

    Raises:
        InvalidMessage: It is not the kind of value that the component takes.
    """
    spec = CATALOG.get(component.type)
    answered_by = spec.answered_by if spec is not None else None
    match answered_by, response:
        case "action", bool():
            return "action", {"action": "confirm" if response else "deny"}
        case "selection", list():
            return "selection", {"selected": response}
        case "selection", str() | int() | float():
            return "selection", {"selected": [response]}
        case "form_submit", dict():
            return "form_submit", {"fields": response}
        case "text", str():
            return "text", {"text": response}
        case None, dict():
            return "action", response
    raise InvalidMessage(
        f"response: expected {_EXPECTED.get(answered_by or '', 'object')} for a {component.type}",
        detail="response",
    )


_EXPECTED = {
    "action": "true or false",
    "selection": "a value or an array of values",
    "form_submit": "an object of fields",
    "text": "string",
}


def _open(live: LiveSession, action_id: str) -> Question | None:
    questions = live.session.questions.values()
    return next((one for one in questions if one.action_id == action_id), None)


def _public(required: Fact, response: Json) -> Json:
    """Gives an answer as the fact of it would hold it."""
    stored = required.payload["component"]
    props = {name: value for name, value in stored.get("props", {}).items() if name != "state"}
    component = Component(stored["id"], stored["type"], props)
    input_type, data = as_input(component, response)
    checked = check_answer(component, input_type, data)
    return public_answer(component, answer_value(component, input_type, checked))


def _state(
    live: LiveSession, action_id: str, turn_id: str, *, repeated: bool = False
) -> ActionState:
    session = live.session
    return ActionState(
        session.head.session_id, action_id, turn_id, "answered", session.sequence, repeated
    )
