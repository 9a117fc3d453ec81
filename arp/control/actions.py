"""Answers to the questions of turns, by the id of the action."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Literal

from msgspec import Meta, Struct

from arp.control.context import ControlContext
from arp.control.method import Id, SessionParams, method
from arp.ledger.fact import Fact, decode
from arp.live.live_session import LiveSession
from arp.protocol.catalog import CATALOG
from arp.protocol.components import Component
from arp.protocol.errors import InvalidMessage, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Input, InputType
from arp.session.effects import Acknowledge
from arp.session.inputs import receive
from arp.session.questions import Question
from arp.store.store import facts
from arp.surface.answers import (
    ANSWER,
    MAX_DIGEST,
    MAX_REASON,
    answer_value,
    check_answer,
    public_answer,
)
from arp.surface.draft_answer import understand_draft


class Respond(SessionParams, frozen=True, kw_only=True):
    """Answers a pending action."""

    action_id: Id
    response: Json
    """Confirm: true or false. Choices: the value, or a list of values. Form: its fields by name.
    Text input: the text. A custom component: an object with `action`."""
    scope: Literal["once", "session"] | None = None
    """With true, of a permission: how far it goes."""
    reason: Annotated[str, Meta(max_length=MAX_REASON)] | None = None
    """With false, of a permission: why not."""
    updated_input: JsonObject | None = None
    """With true, of a permission that offers it: the input that is approved instead."""
    digest: Annotated[str, Meta(max_length=MAX_DIGEST)] | None = None
    """Of a permission: the digest of the input that was read, as the fact has it."""


class ActionState(Struct, frozen=True, rename="camel"):
    """The state of an action."""

    session_id: str
    action_id: str
    turn_id: str
    """The turn that continues with the answer: a new one if the turn that asked is over."""
    decision: Literal["answered"]
    sequence: int
    """The session's newest fact at the time of the answer."""
    repeated: bool = False
    """It had the same answer before: the call changed nothing."""


class Actions:
    """Pending actions of sessions that belong to one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/action/respond")
    async def respond(self, request: Respond) -> ActionState:
        """Answer an action once; the answer is durable when this returns.

        Raises:
            UnknownObject: No such action, or it is over without this answer: cancelled, expired,
                answered differently. Nothing has changed.
            InvalidAnswer: The answer does not fit; the action stays open.

        Source: control-plane.md 2. An action without an answer is never approved.
        """
        live = await self._context.to_change(request.session_id)
        live.expire_questions()
        question = _open(live, request.action_id)
        if question is None:
            return await self._over(live, request)
        tree = live.session.tree(question.surface)
        assert tree is not None
        component = tree.component(question.component_id)
        input_type, data = as_input(component, request.response)
        data = _with_terms(component, data, request)
        return await self._answer(live, question, input_type, data)

    async def answer(
        self, session_id: str, action_id: str, input_type: InputType, data: JsonObject
    ) -> ActionState:
        """Answer an open action with an input as a screen sends it, which may also decline.

        Raises:
            UnknownObject: The action is not open. Nothing has changed.
            InvalidAnswer: The answer does not fit; the action stays open.
        """
        live = await self._context.to_change(session_id)
        live.expire_questions()
        question = _open(live, action_id)
        if question is None:
            raise UnknownObject(f"no open action {action_id!r:.80}", detail=action_id)
        return await self._answer(live, question, input_type, data)

    async def _answer(
        self, live: LiveSession, question: Question, input_type: InputType, data: JsonObject
    ) -> ActionState:
        message = Input(
            input_type=input_type,
            data=data,
            source_component=question.component_id,
            surface=question.surface,
            id=f"action:{question.action_id}"[:256],
        )
        count = live.session.turn_count
        effects = receive(live.session, message, understand_draft)
        live.began(self._context.principal.known_as, count)
        self._context.carry_out(live, effects)
        next_turn = next((one.turn_id for one in effects if isinstance(one, Acknowledge)), None)
        state = _state(live, question.action_id, next_turn or question.turn_id)
        await live.written()
        return state

    async def _over(self, live: LiveSession, request: Respond) -> ActionState:
        """Return the state of an action that has the same answer; else say why it takes none."""
        required, resolved = await self._recorded(live, request.action_id)
        if required is None or required.turn_id is None:
            raise UnknownObject(
                f"no action {request.action_id!r:.80} in this session", detail=request.action_id
            )
        payload = resolved.payload if resolved is not None else {}
        decision = payload.get("decision", "over")
        if decision != "answered":
            raise UnknownObject(
                f"action {request.action_id} is {decision}; it takes no answer any more",
                detail=request.action_id,
            )
        if "answer" in payload and not _is_same(required, payload, request, live):
            raise UnknownObject(
                f"action {request.action_id} is answered already, otherwise",
                detail=request.action_id,
            )
        return _state(live, request.action_id, required.turn_id, repeated=True)

    async def _recorded(self, live: LiveSession, action_id: str) -> tuple[Fact | None, Fact | None]:
        """Return the facts that began and ended an action; its id has the sequence of the first."""
        number = action_id.rpartition(".")[2]
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return None, None
        await live.written()
        store, last, mark = self._context.hub.store, live.stored, action_id.encode()
        required: Fact | None = None
        async with aclosing(facts(store, live.id, int(number) - 1, last)) as found:
            async for _, body in found:
                fact = decode(body) if mark in body else None
                is_of = fact is not None and fact.action_id == action_id
                if required is None:
                    if not is_of:
                        return None, None
                    required = fact
                elif is_of and fact is not None and fact.type == "action.resolved":
                    return required, fact
        return required, None


def as_input(component: Component, response: Json) -> tuple[InputType, JsonObject]:
    """Return the input that a plain answer to a component means.

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
        case None, {"action": str()} if spec is None:
            return "action", response
        case None, _ if spec is None:
            return "action", {"action": ANSWER, "payload": response}
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


def _with_terms(component: Component, data: JsonObject, request: Respond) -> JsonObject:
    """Return the data of an answer with what a permission may say beside it.

    Raises:
        InvalidMessage: The question is of a type that takes nothing besides.
    """
    terms = {
        "scope": request.scope,
        "reason": request.reason,
        "updated_input": request.updated_input,
        "digest": request.digest,
    }
    payload = {name: value for name, value in terms.items() if value is not None}
    if payload and component.type != "confirm":
        raise InvalidMessage(
            f"{next(iter(payload))}: only with the answer to a permission, not to a "
            f"{component.type}",
            detail=next(iter(payload)),
        )
    return {**data, "payload": payload} if payload else data


def _is_same(required: Fact, resolved: JsonObject, request: Respond, live: LiveSession) -> bool:
    """Return whether an answer is the one that a fact has."""
    stored = required.payload["component"]
    props = {name: value for name, value in stored.get("props", {}).items() if name != "state"}
    component = Component(stored["id"], stored["type"], props)
    input_type, data = as_input(component, request.response)
    checked = check_answer(component, input_type, _with_terms(component, data, request))
    answer = public_answer(component, answer_value(component, input_type, checked))
    if resolved["answer"] != answer:
        return False
    if component.type != "confirm":
        return True
    recorded = resolved["input"]["data"].get("payload", {}) if "input" in resolved else {}
    cleaned, _ = live.session.redactor.clean(checked)
    return _decided(recorded) == _decided(cleaned.get("payload", {}))


def _decided(payload: JsonObject) -> JsonObject:
    """Return what of an answer to a permission makes a difference."""
    return {
        "scope": payload.get("scope", "once"),
        "input": payload.get("updated_input"),
        "reason": payload.get("reason"),
    }


def _state(
    live: LiveSession, action_id: str, turn_id: str, *, repeated: bool = False
) -> ActionState:
    session = live.session
    return ActionState(session.id, action_id, turn_id, "answered", session.sequence, repeated)
