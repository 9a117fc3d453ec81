"""Answers to pending actions: the questions and permissions that a turn waits for."""

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
from arp.session.input.receive import InputSender, receive
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
    """Parameters of `agentSession/action/respond`."""

    action_id: Id
    response: Json
    """The answer. Confirm: true or false. Choices: the value, or a list of values. Form: its fields
    by name. Text input: the text. A custom component: an object with `action`."""
    scope: Literal["once", "session"] | None = None
    """Scope of an approval: this call, or all such calls of the session."""
    reason: Annotated[str, Meta(max_length=MAX_REASON)] | None = None
    """Reason why a permission is denied."""
    updated_input: JsonObject | None = None
    """Input that is approved instead, if the permission allows changes."""
    digest: Annotated[str, Meta(max_length=MAX_DIGEST)] | None = None
    """Digest of the input that the caller has read, from the fact `action.required`."""


class ActionState(Struct, frozen=True, rename="camel"):
    """State of an action after an answer."""

    session_id: str
    action_id: str
    turn_id: str
    """Turn that receives the answer: a new turn if the turn that asked has ended."""
    decision: Literal["answered"]
    sequence: int
    """Sequence number of the session's newest fact at the time of the answer."""
    repeated: bool = False
    """Whether the action already had this answer; then the call changed nothing."""


class Actions:
    """Pending actions in the sessions of one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/action/respond")
    async def respond(self, request: Respond) -> ActionState:
        """Answer an action once; the answer is durable when this returns.

        Raises:
            UnknownObject: There is no such action, or it was cancelled, has expired or has another
                answer. Nothing has changed.
            InvalidAnswer: The answer does not fit; the action stays open.

        Source: control-plane.md 2. An action without an answer is never approved.
        """
        live = await self._context.to_change(request.session_id)
        live.expire_questions()
        question = _open_question(live, request.action_id)
        if question is None:
            return await self._closed_action(live, request)
        tree = live.session.tree(question.surface)
        assert tree is not None
        component = tree.component(question.component_id)
        input_type, data = as_input(component, request.response)
        data = _with_terms(component, data, request)
        return await self._answer(live, question, input_type, data)

    async def answer(
        self, session_id: str, action_id: str, input_type: InputType, data: JsonObject
    ) -> ActionState:
        """Answer or decline an open action, with the input that a renderer would send.

        Raises:
            UnknownObject: The action is not open. Nothing has changed.
            InvalidAnswer: The answer does not fit; the action stays open.
        """
        live = await self._context.to_change(session_id)
        live.expire_questions()
        question = _open_question(live, action_id)
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
        sender = InputSender(user=self._context.principal.known_as)
        effects = receive(live.session, message, understand_draft, sender)
        self._context.carry_out(live, effects)
        next_turn = next((one.turn_id for one in effects if isinstance(one, Acknowledge)), None)
        state = _state(live, question.action_id, next_turn or question.turn_id)
        await live.written()
        return state

    async def _closed_action(self, live: LiveSession, request: Respond) -> ActionState:
        """Return the state of a closed action if it already has the requested answer.

        Raises:
            UnknownObject: There is no such action, or it was closed differently.
        """
        required, resolved = await self._recorded(live, request.action_id)
        if required is None or required.turn_id is None:
            raise UnknownObject(
                f"no action {request.action_id!r:.80} in this session", detail=request.action_id
            )
        payload = resolved.payload if resolved is not None else {}
        decision = payload.get("decision", "over")
        if decision != "answered":
            raise UnknownObject(
                f"action {request.action_id} is {decision}; it accepts no answer any more",
                detail=request.action_id,
            )
        if "answer" in payload and not _is_same(required, payload, request, live):
            raise UnknownObject(
                f"action {request.action_id} already has another answer",
                detail=request.action_id,
            )
        return _state(live, request.action_id, required.turn_id, repeated=True)

    async def _recorded(self, live: LiveSession, action_id: str) -> tuple[Fact | None, Fact | None]:
        """Return the facts that opened and closed an action; `None` if there is no such fact.

        An action id ends with the sequence number of the fact that opened it.
        """
        number = action_id.rpartition(".")[2]
        # The id comes from a client: a longer number would not fit into the store's integers.
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return None, None
        await live.written()
        store, last, mark = self._context.hub.store, live.stored, action_id.encode()
        required: Fact | None = None
        async with aclosing(facts(store, live.id, int(number) - 1, last)) as found:
            async for _, body in found:
                # Most facts are about other things; they are skipped without being decoded.
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
    """Return type and data of the input for a plain answer to a component.

    Raises:
        InvalidMessage: The component expects another kind of value.
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


def _open_question(live: LiveSession, action_id: str) -> Question | None:
    questions = live.session.questions.values()
    return next((one for one in questions if one.action_id == action_id), None)


def _with_terms(component: Component, data: JsonObject, request: Respond) -> JsonObject:
    """Return the data of an answer, with the terms of a permission as its `payload`.

    Raises:
        InvalidMessage: The request has terms, but the question is not a permission.
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
    """Return whether a request has the same answer as a recorded one."""
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
    # The recorded answer was redacted, so the new one is redacted before they are compared.
    recorded = resolved["input"]["data"].get("payload", {}) if "input" in resolved else {}
    cleaned, _ = live.session.redactor.clean(checked)
    return _approval_terms(recorded) == _approval_terms(cleaned.get("payload", {}))


def _approval_terms(payload: JsonObject) -> JsonObject:
    """Return the terms of an answer to a permission, to compare two answers."""
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
