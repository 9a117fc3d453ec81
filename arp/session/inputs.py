"""What an input means: an answer, a new turn, a cancel, or nothing that the session keeps.

Nothing unvalidated passes: an answer fits the component that it answers, an action is one that the
component offers, the same id twice is one input.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from arp.protocol.catalog import CATALOG
from arp.protocol.component import Component
from arp.protocol.errors import InvalidMessage, ResourceLimit, SessionBusy, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CANCEL, Input
from arp.protocol.patch import Update
from arp.session.effects import Acknowledge, CancelTurn, Effect, ResolveQuestion
from arp.session.session import Question, Session, takes_typed_answers
from arp.surface.answers import answer_value, check_answer, public_answer, understand
from arp.surface.change import PatchChange
from arp.surface.profile import Profile

MAX_QUEUE = 100
"""Turns in line; a person types fewer, a runaway client must not fill the memory."""

_SILENT = frozenset(("focus", "unfocus", "resize"))
_BEGINS_TURN = frozenset(
    ("text", "action", "selection", "form_submit", "file", "gesture", "voice", "navigate")
)


class _Text(Struct, frozen=True):
    text: str


class _Action(Struct, frozen=True):
    action: str
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _Selection(Struct, frozen=True):
    selected: list[str | int | float | bool]
    source: str | None = None


class _Form(Struct, frozen=True):
    fields: JsonObject
    action: str | None = None


class _Voice(Struct, frozen=True):
    transcript: str
    confidence: float | None = None
    language: str | None = None


class _Navigate(Struct, frozen=True):
    route: str
    params: JsonObject | None = None


_SHAPES: dict[str, type[Struct]] = {
    "text": _Text,
    "selection": _Selection,
    "form_submit": _Form,
    "voice": _Voice,
    "navigate": _Navigate,
}
"""`data` of protocol.md 2.2 where its shape is checked here; `action` and `file` below."""


def receive(session: Session, message: Input, profile: Profile) -> list[Effect]:
    """Takes an input.

    Args:
        session: Changed only if the input is accepted.
        message: As it came.
        profile: Of the renderer that it came from: one that shows a question as text answers in
        text.

    Returns:
        What to do when the facts are durable; first the acknowledgement, if the input has an id.

    Raises:
        RemoteError, SessionBusy, ResourceLimit: The input is refused; nothing has changed.
    """
    if message.id is not None and message.id in session.seen:
        return [Acknowledge(message.id, session.seen[message.id])]
    _check_shape(message)
    _check_files(session, message)
    if message.input_type in _SILENT:
        return _acknowledge(message, None)
    if message.input_type == "action" and message.data["action"].startswith("arp."):
        return _reserved(session, message)
    answered = _find_question(session, message, profile)
    if answered is not None:
        component, fitted = answered
        return _answer(session, component, fitted)
    return _new_turn(session, message)


def _check_shape(message: Input) -> None:
    if message.input_type == "action":
        if not isinstance(message.data.get("action"), str) or not message.data["action"]:
            raise InvalidMessage("data.action: expected a name", detail="data.action")
    elif message.input_type == "file" and not isinstance(message.data.get("files"), list):
        raise InvalidMessage(
            "data.files: missing; files come by POST as multipart/form-data", detail="data"
        )
    shape = _SHAPES.get(message.input_type)
    if shape is None:
        return
    try:
        msgspec.convert(message.data, shape)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"data of {message.input_type}: {error}", detail="data") from None


def _check_files(session: Session, message: Input) -> None:
    """Refuses files that did not come with an input of this session: an id is no credential."""
    fields = message.data.get("fields")
    named = [
        *(message.data.get("files") or ()),
        *(fields.values() if isinstance(fields, dict) else ()),
    ]
    for ref in named:
        if isinstance(ref, dict) and ref.get("sha256") not in session.seen.files:
            raise UnknownObject("no such file; files come by POST as multipart/form-data")


def _reserved(session: Session, message: Input) -> list[Effect]:
    action = message.data["action"]
    if action != CANCEL:
        raise InvalidMessage(f"action {action!r}: names that begin with 'arp.' are reserved")
    payload = message.data.get("payload")
    turn_id = payload.get("turn_id") if isinstance(payload, dict) else None
    effects = session.cancel(turn_id if isinstance(turn_id, str) else None)
    return [*_acknowledge(message, turn_id or session.running), *effects]


# -- which component an input answers ----------------------------------------------------


def _find_question(
    session: Session, message: Input, profile: Profile
) -> tuple[Component, Input] | None:
    """Gives the component that an input answers and the input as an answer to it, checked."""
    source = message.source_component
    if source is None and message.input_type == "selection":
        source = message.data.get("source")
    if source is not None:
        component = _component(session, source, message.surface)
        return component, _checked(component, message)
    if message.input_type == "text":
        return _typed(session, message, profile)
    for question in reversed(session.questions.values()):
        component = _component(session, question.component_id, question.surface)
        spec = CATALOG.get(component.type)
        if spec is not None and message.input_type == spec.answered_by:
            named = msgspec.structs.replace(
                message, source_component=component.id, surface=question.surface
            )
            return component, _checked(component, named)
    if message.input_type in ("selection", "form_submit"):
        raise InvalidMessage(
            f"{message.input_type}: name the component that it answers in source_component"
        )
    return None


def _typed(session: Session, message: Input, profile: Profile) -> tuple[Component, Input] | None:
    for question in reversed(session.questions.values()):
        component = _component(session, question.component_id, question.surface)
        if not takes_typed_answers(profile, component.type):
            continue
        understood = understand(component, message.data["text"])
        if understood is None:
            continue
        input_type, data = understood
        named = msgspec.structs.replace(
            message,
            input_type=input_type,
            data=data,
            source_component=component.id,
            surface=question.surface,
        )
        return component, _checked(component, named)
    return None


def _component(session: Session, component_id: str, surface: str) -> Component:
    tree = session.tree(surface)
    if tree is None or component_id not in tree.nodes:
        raise UnknownObject(
            f"no component {component_id!r} on surface {surface!r}", detail=component_id
        )
    return tree.component(component_id)


def _checked(component: Component, message: Input) -> Input:
    data = check_answer(component, message.input_type, message.data)
    return msgspec.structs.replace(message, data=data)


# -- what comes of it --------------------------------------------------------------------


def _answer(session: Session, component: Component, message: Input) -> list[Effect]:
    value = answer_value(component, message.input_type, message.data)
    shown = public_answer(component, value)
    message = _without_secrets(message, shown)
    question = session.questions.get(component.id)
    if component.type == "tabs":
        return _tab(session, component, message)
    if question is None:
        _room(session)
        session.mark(component.id, message.surface, "answered", shown, None)
        return _new_turn(session, message)
    orphan = question.turn_id != session.running
    if orphan:
        _room(session)
    told = None if orphan else _told(message)
    session.close_question(question, "answered", answer=shown, told=told)
    if orphan:
        return _new_turn(session, message)
    _remember(session, message, question.turn_id)
    resolve = ResolveQuestion(question.action_id, value)
    return [*_acknowledge(message, question.turn_id), resolve]


def _without_secrets(message: Input, shown: Json) -> Input:
    """Gives an answer as everyone may see it: the passwords of a form go to the agent alone."""
    if message.input_type != "form_submit":
        return message
    return msgspec.structs.replace(message, data={**message.data, "fields": shown})


def _tab(session: Session, component: Component, message: Input) -> list[Effect]:
    payload = message.data.get("payload")
    tab = payload.get("tab") if isinstance(payload, dict) else payload
    change = PatchChange([Update(component.id, "props.active_tab", tab)])
    extra = {"inputId": message.id} if message.id is not None else {}
    session.commit(None, message.surface, [change], **extra)
    _remember(session, message, None)
    return _acknowledge(message, None)


def _new_turn(session: Session, message: Input) -> list[Effect]:
    _room(session)
    effects: list[Effect] = []
    if session.running is not None and session.rules.policy == "interrupt":
        effects.append(CancelTurn(session.running))
    turn_id = f"t{len(session.screen.turns) + 1}"
    session.in_turn("turn.submitted", turn_id, {"input": _told(message)})
    _remember(session, message, turn_id)
    session.queue.append(turn_id)
    if session.running is not None:
        session.record("queue.changed", {"queued": list(session.queue)}, thread_id="main")
    return [*_acknowledge(message, turn_id), *effects, *session.begin_next()]


def _room(session: Session) -> None:
    if session.running is not None and session.rules.policy == "reject":
        raise SessionBusy("a turn is running; wait for it, or stop it with action arp.cancel")
    if len(session.queue) >= MAX_QUEUE:
        raise ResourceLimit(f"{MAX_QUEUE} turns are in line already; wait for some to end")


def _told(message: Input) -> JsonObject:
    told: JsonObject = {"input_type": message.input_type, "data": message.data}
    if message.source_component is not None:
        told["source_component"] = message.source_component
    if message.surface != "main":
        told["surface"] = message.surface
    if message.id is not None:
        told["id"] = message.id
    return told


def _remember(session: Session, message: Input, turn_id: str | None) -> None:
    if message.id is not None:
        session.seen[message.id] = turn_id


def _acknowledge(message: Input, turn_id: str | None) -> list[Effect]:
    return [Acknowledge(message.id, turn_id)] if message.id is not None else []


def open_questions(session: Session) -> list[Question]:
    """Gives the questions that wait for an answer, oldest first."""
    return list(session.questions.values())
