"""What an input means: an answer, a new turn, a cancel, or nothing that the session keeps.

Nothing unvalidated passes: an answer fits the component that it answers, an action is one that the
component offers, the same id twice is one input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct

from arp.ledger.tracing import read_traceparent, turn_ids
from arp.protocol.catalog import CATALOG
from arp.protocol.components import Component
from arp.protocol.errors import (
    InvalidAnswer,
    InvalidMessage,
    ResourceLimit,
    SessionBusy,
    UnknownObject,
)
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    CANCEL,
    CLOSE,
    CONTINUE,
    PROMOTE,
    FileRef,
    Input,
    InputType,
    RendererInfo,
    Viewport,
)
from arp.protocol.patch import Update
from arp.protocol.validate import explain
from arp.session.effects import Acknowledge, Effect, ResolveQuestion, StopTurn
from arp.session.input_log import GivenAnswer, files_named
from arp.session.session import Question, Session
from arp.session.session_settings import Grant, PermissionTerms
from arp.session.surfaces import close_surface
from arp.surface.answers import (
    answer_value,
    as_asked,
    check_answer,
    closes,
    is_decline,
    offers_action,
    public_answer,
)
from arp.surface.change import PatchChange

UNKNOWN = RendererInfo()
"""A renderer that said nothing of itself."""

MAX_QUEUE = 100
"""Queued turns; a person types fewer, a runaway client must not fill the memory."""

BEGINNING = ("text", "voice", "file", "gesture", "navigate")
"""What may begin a turn by itself; the other types answer a component."""

SESSION_START: Final = "session start"
"""The origin of the turn that greets who begins a session."""

EVENT: Final = cast("InputType", "event")
"""Of a turn that nobody typed and that has no text. No renderer may send it, so it is not among the
types of the wire; renderers show nothing of it."""

NO_IDS: Mapping[str, str] = MappingProxyType({})

ReadTyped: TypeAlias = Callable[[Component, str], tuple[str, JsonObject] | None]
"""Reads a typed line as the answer to a question: an input type and its data, or `None` where the
line is no answer. It depends on how the renderer shows the question."""

CheckAnswer: TypeAlias = Callable[[Question, Json], None]
"""Judges the value of an answer: raises `InvalidAnswer` where who asked cannot take it, and the
question stays open."""


class Particulars(Struct, frozen=True):
    """What is recorded of a turn that begins, besides its input."""

    turn_id: str | None = None
    """What it is called; `None` gives it a name."""
    ids: Mapping[str, str] = NO_IDS
    """Further correlations of its first fact, by field name."""
    edits: str | None = None
    """The turn in whose place it stands."""
    traceparent: str | None = None
    """The span outside that asks for it."""
    thread: str | None = None
    """The thread that it belongs to; `None` is the first."""
    origin: str | None = None
    """The program that began it; `None`: somebody typed it."""
    answers: GivenAnswer | None = None
    """The question that it answers; `None`: it answers none, or one that nobody asked."""


NO_PARTICULARS = Particulars()

SILENT = frozenset(("focus", "unfocus", "resize"))
"""Say something of a renderer, and change nothing of a session."""


class _TextInput(Struct, frozen=True):
    text: str


class _Action(Struct, frozen=True):
    action: Annotated[str, Meta(min_length=1, max_length=128, description="the name of an action")]


class _Selection(Struct, frozen=True):
    selected: list[str | int | float | bool]
    source: str | None = None


class _Form(Struct, frozen=True):
    fields: JsonObject
    action: str | None = None


class _FilesInput(Struct, frozen=True):
    files: list[FileRef]
    text: str | None = None


class _Gesture(Struct, frozen=True):
    gesture: str
    meta: JsonObject | None = None


class _Voice(Struct, frozen=True):
    transcript: str
    confidence: float | None = None
    language: str | None = None


class _Navigate(Struct, frozen=True):
    route: str
    params: JsonObject | None = None


_SHAPES: dict[str, type[Struct]] = {
    "text": _TextInput,
    "action": _Action,
    "selection": _Selection,
    "form_submit": _Form,
    "file": _FilesInput,
    "gesture": _Gesture,
    "voice": _Voice,
    "navigate": _Navigate,
    "resize": Viewport,
}
"""`data` of protocol.md 2.2, as far as it does not depend on the component that it answers."""


PUSH_ID: Final = "push:"
"""What the ids of turns begin with that nobody typed; renderers may not send such an id."""


def receive(
    session: Session,
    message: Input,
    read_typed: ReadTyped,
    renderer: RendererInfo = UNKNOWN,
    traceparent: str | None = None,
    check: CheckAnswer | None = None,
) -> list[Effect]:
    """Take an input.

    Args:
        session: Changed only if the input is accepted.
        message: As it came.
        read_typed: Of the renderer that it came from: one that shows a question as text answers in
            text, and so does one without `hello`.
        renderer: What that renderer said of itself, for the agent of a turn that begins.
        traceparent: The span outside that asks for a turn, as W3C Trace Context writes it.
        check: Judges an answer that fits its component; `None`: nobody does.

    Returns:
        What to do when the facts are durable; first the acknowledgement, if the input has an id.

    Raises:
        RemoteError, SessionBusy, ResourceLimit: The input is refused; nothing has changed.
    """
    message = _at_home(session, shaped(message))  # whoever goes on counts on its shape
    if message.id is not None and message.id.startswith(PUSH_ID):
        # Else a renderer that guesses the id of a push could take its place: it would not begin.
        raise InvalidMessage(
            f"input.id: ids that begin with {PUSH_ID} are those of turns that programs begin",
            detail="input.id",
        )
    if message.id is not None and message.id in session.input_log:
        return [Acknowledge(message.id, session.input_log[message.id])]
    if message.input_type not in SILENT:
        session.log.check_open()
    _check_files(session, message)
    if message.edits is not None:
        return _edit_queued(session, message)
    if message.input_type in SILENT:
        return acknowledge(message, None)
    if is_reserved(message):
        return _reserved(session, message)
    answered = _find_question(session, message, read_typed)
    if answered is not None:
        component, fitted = answered
        return _answer(session, component, fitted, renderer, check)
    return new_turn(session, message, renderer, Particulars(traceparent=traceparent))


def submit(
    session: Session,
    message: Input,
    turn_id: str | None = None,
    traceparent: str | None = None,
    thread: str | None = None,
    **ids: str,
) -> list[Effect]:
    """Begin a turn, whatever questions are open: nothing is taken for an answer.

    Args:
        session: Changed only if the input is accepted.
        message: As it came. With an `id` that came before, nothing happens again.
        turn_id: What the turn is to be called, a name that no turn has; `None` gives it one.
        traceparent: As in `receive`.
        thread: The thread that it belongs to; `None` is the first.
        ids: Further correlations of the turn's first fact, by field name.

    Returns:
        As `receive`.

    Raises:
        RemoteError, SessionBusy, ResourceLimit: The input is refused; nothing has changed.
    """
    if message.id is not None and message.id in session.input_log:
        return [Acknowledge(message.id, session.input_log[message.id])]
    session.log.check_open()
    check_beginning(session, message)
    if thread is not None:
        session.threads.check(thread)
    particulars = Particulars(turn_id, ids, traceparent=traceparent, thread=thread)
    return new_turn(session, message, UNKNOWN, particulars)


def push(
    session: Session, text: str, data: JsonObject, origin: str, push_id: str | None = None
) -> tuple[str, list[Effect]]:
    """Queue a turn that nobody typed. It neither interrupts a turn nor resumes a paused queue.

    Args:
        session: Changed only if the turn is accepted.
        text: As if somebody had typed it; empty: there is none, and no screen shows an input.
        data: Whatever else the agent is to know.
        origin: What the program calls itself.
        push_id: With one that came before, nothing happens again. Behind `PUSH_ID` it has to be
            an id as renderers send them.

    Returns:
        The id of the turn, and what to do when the facts are durable.

    Raises:
        RemoteError, ResourceLimit: It is refused; nothing has changed.
    """
    name = PUSH_ID + push_id if push_id is not None else None
    if name is not None and (known := session.input_log.get(name)) is not None:
        return known, []
    session.log.check_open()
    payload = {**data, "text": text} if text else data
    message = Input(input_type="text" if text else EVENT, data=payload, id=name)
    _check_files(session, message)
    _check_room(session)
    particulars = Particulars(origin=origin)
    turn_id, submitted, ids = first_fact(session, message, UNKNOWN, particulars)
    return turn_id, session.enqueue(turn_id, submitted, ids, resume=False)


def check_beginning(session: Session, message: Input) -> None:
    """Guarantees that an input may begin a turn.

    Raises:
        RemoteError: It may not; the message says why.
    """
    if message.input_type not in BEGINNING:
        raise InvalidMessage(
            f"input_type {message.input_type:.40} begins no turn; there are {', '.join(BEGINNING)}",
            detail="input.input_type",
        )
    _check_shape(message)
    _check_files(session, message)


def _edit_queued(session: Session, message: Input) -> list[Effect]:
    """Replace the input of a queued turn, which keeps its place."""
    turn_id = message.edits or ""
    check_beginning(session, message)
    if turn_id not in session.queue:
        raise UnknownObject(f"no turn {turn_id!r:.80} is queued", detail=turn_id)
    session.edit_queued(turn_id, _told(message))
    session.input_log.typed[turn_id] = message.data
    return acknowledge(message, turn_id)


def shaped(message: Input) -> Input:
    """Return an input whose data has the shape of its type.

    The draft has the fields of a form as the data itself; then they are put where they belong.

    Raises:
        InvalidMessage: Its data has another shape.
    """
    data = message.data
    if message.input_type == "form_submit" and "fields" not in data and data.keys() - {"action"}:
        message = msgspec.structs.replace(message, data={"fields": data})
    _check_shape(message)
    return message


def _at_home(session: Session, message: Input) -> Input:
    """Return an input with the surface to which its component belongs.

    A renderer without overlays shows the components of a popup on `main`, under the name of the
    popup and their own (`arp/view/inlined.py`).
    """
    source = message.source_component
    if message.input_type == "selection" and not source:
        source = message.data.get("source")
    surface, slash, own = (source or "").partition("/")
    if not slash or message.surface != "main" or not session.screen.info(surface).is_transient:
        return message
    data = {**message.data, "source": own} if "source" in message.data else message.data
    return msgspec.structs.replace(message, surface=surface, source_component=own, data=data)


def _check_shape(message: Input) -> None:
    shape = _SHAPES.get(message.input_type)
    if shape is not None:
        _check_shape_of(message.data, shape)


def _check_shape_of(data: JsonObject, shape: type[Struct]) -> None:
    try:
        msgspec.convert(data, shape)
    except msgspec.ValidationError:
        hint = "; files come by POST as multipart/form-data" if shape is _FilesInput else ""
        raise InvalidMessage(explain(data, shape, "data") + hint, detail="data") from None


def _check_files(session: Session, message: Input) -> None:
    """Refuse files that did not come with an input of this session: an id is no credential."""
    if "files" in message.data:
        _check_shape_of(message.data, _FilesInput)
    if not session.input_log.files.keys() >= set(files_named(message.data)):
        raise UnknownObject("no such file; files come by POST as multipart/form-data")


def is_reserved(message: Input) -> bool:
    """Return whether an input is one of the protocol's own actions, such as `arp.cancel`."""
    return message.input_type == "action" and str(message.data["action"]).startswith("arp.")


def _reserved(session: Session, message: Input) -> list[Effect]:
    action = message.data["action"]
    payload = message.data.get("payload")
    named = payload.get("turn_id") if isinstance(payload, dict) else None
    intent = {"inputId": message.id} if message.id is not None else {}
    if action == PROMOTE:
        return _promote(session, message, named, intent)
    if action == CLOSE:
        return _close(session, message)
    if action == CONTINUE:
        session.record("run.status", intent, status="queued")
        return [*acknowledge(message, None), *session.resume_queue()]
    if action != CANCEL:
        raise InvalidMessage(f"action {action:.60}: names that begin with arp. are reserved")
    turn_id = named if isinstance(named, str) else session.running
    if turn_id is not None and (turn_id == session.running or turn_id in session.queue):
        session.in_turn("run.status", turn_id, intent, status="cancelling")
        return [*acknowledge(message, turn_id), *session.cancel(turn_id)]
    if turn_id is not None and session.asks(turn_id):  # it was cut off while it waited
        session.in_turn("run.status", turn_id, intent, status="cancelling")
        for question in [one for one in session.questions.values() if one.turn_id == turn_id]:
            session.cancel_question(question)
        return acknowledge(message, turn_id)
    if message.id is not None:
        session.record("run.status", intent, status="idle")
    return acknowledge(message, None)


def _close(session: Session, message: Input) -> list[Effect]:
    """Close the surface that a user wants closed; one that is closed already stays so."""
    name = message.surface
    if name not in session.screen.surfaces and name in session.screen.closings:
        return acknowledge(message, None)
    if name == "main" or name not in session.screen.surfaces:
        raise UnknownObject(f"no surface {name!r} can be closed", detail=name)
    effects = close_surface(session, name, "user", message.id)
    return [*acknowledge(message, None), *effects]


def _promote(session: Session, message: Input, named: Json, intent: JsonObject) -> list[Effect]:
    if not isinstance(named, str) or named not in session.queue:
        raise UnknownObject(f"no turn {named!r:.80} is queued", detail=f"{named!s:.80}")
    session.promote(named)
    session.in_turn("run.status", named, intent, status="queued")
    return acknowledge(message, named)


# -- which component an input answers --------------------------------------------------------------


def _find_question(
    session: Session, message: Input, read_typed: ReadTyped
) -> tuple[Component, Input] | None:
    """Return the component that an input answers and the input as an answer to it, checked."""
    # An empty source, as the draft's client sends it, is none.
    if source := message.source_component or component_of_data(message):
        component = _component(session, source, message.surface)
        return component, _checked(component, message)
    if message.input_type == "text":
        return _typed(session, message, read_typed)
    for component, named in _open(session, message):
        if not answers_unnamed(component, message.input_type, message.data):
            continue
        if message.data.get("action") == "confirm" and component.type == "confirm":
            _check_clear(session, named)
        return component, _checked(component, named)
    if message.input_type in ("selection", "form_submit"):
        raise InvalidMessage(
            f"{message.input_type}: name the component that it answers in source_component"
        )
    return None


def component_of_data(message: Input) -> str | None:
    """Return the component that a selection names in its data, as the draft does."""
    source = message.data.get("source") if message.input_type == "selection" else None
    return source if isinstance(source, str) else None


def answers_unnamed(component: Component, input_type: InputType, data: JsonObject) -> bool:
    """Return whether an input that names no component is an answer to this one, if it is open."""
    spec = CATALOG.get(component.type)
    if spec is not None and input_type == spec.answered_by:
        return True
    is_no = is_decline(component, input_type, data)
    return is_no or offers_action(component, input_type, data)


def _typed(
    session: Session, message: Input, read_typed: ReadTyped
) -> tuple[Component, Input] | None:
    for component, named in _open(session, message):
        understood = read_typed(component, message.data["text"])
        if understood is None:
            continue
        input_type, data = understood
        if data.get("action") == "confirm":
            _check_clear(session, named)
        answer = msgspec.structs.replace(named, input_type=input_type, data=data)
        return component, _checked(component, answer)
    return None


def _check_clear(session: Session, named: Input) -> None:
    """Refuse a yes that names no question where it may be meant for another one.

    Raises:
        InvalidAnswer: It may; the questions stay open.
    """
    question = session.questions[named.surface, named.source_component or ""]
    if question.terms is not None and question.turn_id == session.unclear_turn:
        raise InvalidAnswer(
            "there was more than one question for permission; name the one that you allow in "
            "source_component",
            detail="source_component",
        )


def _open(session: Session, message: Input) -> Iterator[tuple[Component, Input]]:
    """Return the open questions, newest first, each with the input as if it named it."""
    for question in reversed(session.questions.values()):
        tree = session.tree(question.surface)
        if tree is not None and question.component_id in tree.nodes:
            named = msgspec.structs.replace(
                message, source_component=question.component_id, surface=question.surface
            )
            yield tree.component(question.component_id), named


def _component(session: Session, component_id: str, surface: str) -> Component:
    tree = session.tree(surface)
    if tree is None or component_id not in tree.nodes:
        raise UnknownObject(
            f"no component {component_id!r} on surface {surface!r}", detail=component_id
        )
    return tree.component(component_id)


def _checked(component: Component, message: Input) -> Input:
    input_type, data = as_asked(component, message.input_type, message.data)
    data = check_answer(component, input_type, data)
    return msgspec.structs.replace(message, input_type=input_type, data=data)


# -- what comes of it ------------------------------------------------------------------------------


def _answer(
    session: Session,
    component: Component,
    message: Input,
    renderer: RendererInfo,
    check: CheckAnswer | None,
) -> list[Effect]:
    if component.type == "tabs":
        return _tab(session, component, message)
    question = session.questions.get((message.surface, component.id))
    if is_decline(component, message.input_type, message.data):
        return _decline(session, component, message, renderer, question)
    value = answer_value(component, message.input_type, message.data)
    message = _without_secrets(component, message, value)
    public = public_answer(component, value)
    if component.type == "confirm":
        _check_terms(question.terms if question is not None else None, message.data)
    if question is not None and check is not None:
        check(question, value)
    if question is not None and question.turn_id == session.running:
        session.answer_question(question, public, _told(message), _granted(question, message))
        # Of a permission more than yes or no counts.
        resolve = ResolveQuestion(question.action_id, message.data if question.terms else value)
        return [*acknowledge(message, question.turn_id), resolve]
    _room(session)
    if question is not None:
        session.answer_question(question, public, None)
    elif component.type in CATALOG and closes(component, message.input_type):
        session.mark(component.id, message.surface, "answered", public, None)
    thread, answers = _thread_of(session, component, message.surface, question), None
    if question is not None:
        answers = GivenAnswer(question.action_id, question.name, public)
    particulars = Particulars(thread=thread, answers=answers)
    return new_turn(session, message, renderer, particulars, value)


def _decline(
    session: Session,
    component: Component,
    message: Input,
    renderer: RendererInfo,
    question: Question | None,
) -> list[Effect]:
    """Close a question that somebody does not want to answer, and tell who asked."""
    if question is not None and question.turn_id == session.running:
        session.decline_question(question, _told(message))
        resolve = ResolveQuestion(question.action_id, None, is_declined=True)
        return [*acknowledge(message, question.turn_id), resolve]
    _room(session)
    answers: GivenAnswer | None = None
    if question is not None:
        session.decline_question(question, None)
        answers = GivenAnswer(question.action_id, question.name, None, declined=True)
    else:
        session.mark(component.id, message.surface, "declined", None, None)
    thread = _thread_of(session, component, message.surface, question)
    return new_turn(session, message, renderer, Particulars(thread=thread, answers=answers))


def _thread_of(
    session: Session, component: Component, surface: str, question: Question | None
) -> str:
    """Return the thread of the turn that showed what an input answers."""
    if question is not None:
        return session.threads.of(question.turn_id)
    tree = session.tree(surface)
    return session.threads.of(tree.nodes[component.id].root.turn if tree is not None else None)


def _granted(question: Question, message: Input) -> Grant | None:
    """Return what an answer allows from now on: only a yes, and only if it says so."""
    payload = message.data.get("payload")
    is_yes = message.input_type == "action" and message.data.get("action") == "confirm"
    if is_yes and isinstance(payload, dict) and payload.get("scope") == "session":
        return question.terms.grant if question.terms is not None else None
    return None


def _check_terms(terms: PermissionTerms | None, data: JsonObject) -> None:
    """Refuse what an answer says beside its yes or no and the question did not offer.

    Raises:
        InvalidAnswer: It is about another input, allows more than was shown, or has an input of its
            own where the tool takes none.
    """
    payload: JsonObject = data.get("payload", {})
    terms = terms or PermissionTerms()
    if "digest" in payload and payload["digest"] != terms.digest:
        raise InvalidAnswer(
            "payload.digest: the question is about another input than the one that was answered; "
            "read the question again",
            detail="payload.digest",
        )
    if "updated_input" in payload and not terms.editable:
        raise InvalidAnswer(
            "payload.updated_input: the question offers no change of the input",
            detail="payload.updated_input",
        )
    is_yes = data["action"] == "confirm"
    if is_yes and payload.get("scope") == "session" and terms.digest and terms.grant is None:
        raise InvalidAnswer(
            "payload.scope: the question offers once only, no permission for the session",
            detail="payload.scope",
        )


def _without_secrets(component: Component, message: Input, value: Json) -> Input:
    """Return an answer as the conversation may keep it; only `ask` hands a password over."""
    if component.type != "form":
        return message
    data = {**message.data, "fields": public_answer(component, value)}
    return msgspec.structs.replace(message, data=data)


def _tab(session: Session, component: Component, message: Input) -> list[Effect]:
    """Turn to another tab, for every renderer; no turn begins."""
    tab = message.data["payload"]["tab"]
    intent = {"inputId": message.id} if message.id is not None else {}
    change = PatchChange([Update(component.id, "props.active_tab", tab)])
    session.commit(None, message.surface, [change], **intent)
    return acknowledge(message, None)


def new_turn(
    session: Session,
    message: Input,
    renderer: RendererInfo,
    particulars: Particulars = NO_PARTICULARS,
    answer: Json = None,
) -> list[Effect]:
    """Begin a turn with an input that was checked, or queue it, and resume the queue.

    Args:
        session: As in `receive`.
        message: The input.
        renderer: As in `receive`.
        particulars: What is recorded of the turn besides its input.
        answer: The answer that it brings, as it was given: the ledger may have less of it.
    """
    _room(session)
    turn_id, submitted, ids = first_fact(session, message, renderer, particulars)
    if particulars.answers is not None:
        session.input_log.given[turn_id] = answer
    effects = acknowledge(message, turn_id)
    is_answer = particulars.answers is not None  # the running turn may be the one that wants it
    if session.running is not None and session.rules.policy == "interrupt" and not is_answer:
        effects.append(StopTurn(session.running))
    return [*effects, *session.enqueue(turn_id, submitted, ids, resume=True)]


def is_only_greeted(session: Session) -> bool:
    """Return whether the only turn of a session is the greeting, and nobody has answered it."""
    if session.screen.count != 1:
        return False
    (first,) = session.screen.turns.values()
    return [echo.origin for echo in first.inputs] == [SESSION_START]


def first_fact(
    session: Session, message: Input, renderer: RendererInfo, particulars: Particulars
) -> tuple[str, JsonObject, dict[str, Json]]:
    """Return the name of a turn that is now to begin with an input that was checked.

    With it, payload and ids of its first fact, which is recorded next.
    """
    turn_id = particulars.turn_id or f"t{session.turn_count + 1}"
    submitted: JsonObject = {"input": _told(message)}
    if particulars.edits is not None:
        submitted["edits"] = particulars.edits
    if particulars.origin is not None:
        submitted["origin"] = particulars.origin
    if particulars.answers is not None:
        submitted["answers"] = msgspec.to_builtins(particulars.answers)
    if renderer != UNKNOWN:
        submitted["renderer"] = msgspec.to_builtins(renderer)
    session.threads.join(turn_id, particulars.thread)
    if (
        particulars.traceparent is not None
        and read_traceparent(particulars.traceparent) is not None
    ):
        session.input_log.traceparents[turn_id] = particulars.traceparent
    ids = {**particulars.ids, **_trace(session, turn_id)}
    session.input_log.typed[turn_id] = message.data
    return turn_id, submitted, ids


def _trace(session: Session, turn_id: str) -> dict[str, Json]:
    """Return the ids of the turn's trace, if somebody outside has one or traces are wanted."""
    traceparent = session.input_log.traceparents.get(turn_id)
    if not session.rules.traced and traceparent is None:
        return {}
    return turn_ids(session.head.session_id, session.head.epoch, turn_id, traceparent)


def _room(session: Session) -> None:
    if session.running is not None and session.rules.policy == "reject":
        raise SessionBusy("a turn is running; wait for it, or stop it with action arp.cancel")
    _check_room(session)


def _check_room(session: Session) -> None:
    if len(session.queue) >= MAX_QUEUE:
        raise ResourceLimit(f"{MAX_QUEUE} turns are queued already; wait for some to end")


def _told(message: Input) -> JsonObject:
    fields: JsonObject = {"input_type": message.input_type, "data": message.data}
    if message.source_component:
        fields["source_component"] = message.source_component
    if message.surface != "main":
        fields["surface"] = message.surface
    if message.id is not None:
        fields["id"] = message.id
    return fields


def input_of(fields: JsonObject, input_id: str | None = None) -> Input:
    """Return an input as a fact has it, to be recorded again under another id."""
    return Input(
        input_type=fields["input_type"],
        data=fields["data"],
        source_component=fields.get("source_component"),
        surface=fields.get("surface", "main"),
        id=input_id,
    )


def acknowledge(message: Input, turn_id: str | None) -> list[Effect]:
    """Return the acknowledgement of an input, if it has an id."""
    return [Acknowledge(message.id, turn_id)] if message.id is not None else []
