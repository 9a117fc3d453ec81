"""Decides what an input does: answer a question, begin a turn, cancel a turn, or nothing.

Theory of operation. `receive` checks an input in a fixed order:

1. Shape. The data must have the shape of its `input_type`.
2. Repetition. An id that took effect before is acknowledged again and does nothing.
3. Files. The input may name only files that belong to this session.
4. Edits of a queued turn, inputs that only describe the renderer, and the protocol's own actions
   (`arp.cancel`, …).
5. Answers. If the input names a component, it must be a valid answer to that component. Otherwise
   it answers the newest open question that accepts it.
6. Everything else begins a new turn, which is queued while another turn runs.

An input that is refused changes nothing: every check comes before the first fact is recorded.
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
from arp.session.approval import NO_TERMS, ApprovalAnswer, Grant
from arp.session.asking import answer_question, cancel_question, decline_question, mark_input
from arp.session.effects import (
    Acknowledge,
    Effect,
    QuestionOutcome,
    ResolveQuestion,
    StopTurn,
)
from arp.session.questions import Question
from arp.session.recording.recorded import RecordedFact
from arp.session.session import Session
from arp.session.surfaces import close_surface
from arp.session.tracking.input_log import GivenAnswer, files_named
from arp.session.turn_end import cancel_turn
from arp.session.turn_queue import begin_next, edit_queued, enqueue, promote
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
"""Description of a renderer that has not described itself."""


class InputSender(Struct, frozen=True):
    """Who sent an input."""

    renderer: RendererInfo = UNKNOWN
    """Description of the sending renderer, for the agent of a new turn."""
    user: object = None
    """The user, as the driver knows them; `None` if it knows only the owner of the session. The
    session keeps the value until the turn is over; it is in no fact."""


NO_SENDER = InputSender()

MAX_QUEUE = 100
"""Maximum number of queued turns. A person queues fewer; a runaway client must not fill memory."""

BEGINNING = ("text", "voice", "file", "gesture", "navigate")
"""Input types that may begin a turn by themselves; the other types answer a component."""

SESSION_START: Final = "session start"
"""Origin of the turn that greets the user when a session begins."""

EVENT: Final = cast("InputType", "event")
"""Input type of a turn that a program began without text. Renderers may not send it, so it is not
an input type of the wire; they show no input for such a turn."""

NO_IDS: Mapping[str, str] = MappingProxyType({})

ReadTyped: TypeAlias = Callable[[Component, str], tuple[str, JsonObject] | None]
"""Parser of a typed line as the answer to a question. Returns an input type and its data, or `None`
if the line is not an answer. The result depends on how the renderer shows the question."""

CheckAnswer: TypeAlias = Callable[[Question, Json], None]
"""Additional check of an answer's value. Raises `InvalidAnswer` if the code that asked cannot use
the value; the question then stays open."""


class NewTurnOptions(Struct, frozen=True):
    """Options of a new turn, besides its input."""

    turn_id: str | None = None
    """Id of the turn; `None` means the next free id."""
    ids: Mapping[str, str] = NO_IDS
    """Additional correlation ids of its first fact, by field name."""
    edits: str | None = None
    """Id of the turn that this turn is a new version of."""
    traceparent: str | None = None
    """External span that requests the turn, in W3C Trace Context format."""
    thread: str | None = None
    """Thread of the turn; `None` means the first thread."""
    origin: str | None = None
    """Name of the program that began the turn; `None` means that a user typed it."""
    answers: GivenAnswer | None = None
    """Answer that began the turn; `None` if it answers no recorded question."""


NO_PARTICULARS = NewTurnOptions()

SILENT = frozenset(("focus", "unfocus", "resize"))
"""Input types that describe the renderer and do not change the session."""


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
"""Shape of `data` by input type (protocol.md 2.2), except for rules of the answered component."""


PUSH_ID: Final = "push:"
"""Prefix of the input ids of pushed turns, which no user typed; renderers may not send such ids."""


def receive(
    session: Session,
    message: Input,
    read_typed: ReadTyped,
    sender: InputSender = NO_SENDER,
    traceparent: str | None = None,
    check: CheckAnswer | None = None,
) -> list[Effect]:
    """Apply an input from a renderer.

    Args:
        session: Changed only if the input is accepted.
        message: The input as the renderer sent it.
        read_typed: Parser of typed answers for the sending renderer. A renderer that shows a
            question as text answers it in text; so does a renderer that sent no `hello`.
        sender: Who sent it.
        traceparent: External span that requests a turn, in W3C Trace Context format.
        check: Additional check of an answer that fits its component; `None` means no check.

    Returns:
        Effects to carry out once the facts are durable. The acknowledgement comes first if the
        input has an id.

    Raises:
        RemoteError, SessionBusy, ResourceLimit: The input is refused; nothing has changed.
    """
    # Everything below indexes `message.data` without a check, so the shape comes first. A peer
    # must not be able to raise a KeyError in here.
    message = _resolve_inlined_source(session, shaped(message))
    if message.id is not None and message.id.startswith(PUSH_ID):
        # A renderer that guesses the id of a push could otherwise use it up; the push would then
        # count as a repetition and its turn would never begin.
        raise InvalidMessage(
            f"input.id: ids that begin with {PUSH_ID} are those of turns that programs begin",
            detail="input.id",
        )
    if message.id is not None and message.id in session.input_log:
        # Before `check_open`: a repeated input is acknowledged even when the log is sealed.
        return [Acknowledge(message.id, session.input_log[message.id])]
    if message.input_type not in SILENT:
        session.log.check_open()
    _check_files(session, message)
    if message.edits is not None:
        return _edit_queued(session, message)
    if message.input_type in SILENT:
        return acknowledge(message, None)
    if is_reserved(message):
        return _apply_reserved_action(session, message)
    answered = _find_question(session, message, read_typed)
    if answered is not None:
        component, answer = answered
        return _apply_answer(session, component, answer, sender, check)
    return new_turn(session, message, sender, NewTurnOptions(traceparent=traceparent))


def submit(
    session: Session,
    message: Input,
    options: NewTurnOptions = NO_PARTICULARS,
    sender: InputSender = NO_SENDER,
) -> list[Effect]:
    """Begin a turn. The input is never treated as an answer, even if questions are open.

    Args:
        session: Changed only if the input is accepted.
        message: The input. If its `id` took effect before, it does nothing.
        options: Options of the turn. No other turn may have its id.
        sender: Who sent it.

    Returns:
        Effects to carry out once the facts are durable, as `receive` returns them.

    Raises:
        RemoteError, SessionBusy, ResourceLimit: The input is refused; nothing has changed.
    """
    if message.id is not None and message.id in session.input_log:
        return [Acknowledge(message.id, session.input_log[message.id])]
    session.log.check_open()
    check_beginning(session, message)
    if options.thread is not None:
        session.threads.check(options.thread)
    return new_turn(session, message, sender, options)


def push(
    session: Session,
    text: str,
    data: JsonObject,
    origin: str,
    push_id: str | None = None,
    sender: InputSender = NO_SENDER,
) -> tuple[str, list[Effect]]:
    """Queue a turn for a program. It neither interrupts a turn nor resumes a paused queue.

    Args:
        session: Changed only if the turn is accepted.
        text: Text of the input, as if a user had typed it. If it is empty, no screen shows an
            input.
        data: Additional data for the agent.
        origin: Name of the program.
        push_id: Id of this push. A push with an id that took effect before does nothing. With the
            prefix `PUSH_ID` it must be a valid input id.
        sender: Who counts as the sender.

    Returns:
        The id of the turn, and the effects to carry out once the facts are durable.

    Raises:
        RemoteError, ResourceLimit: The turn is refused; nothing has changed.
    """
    name = PUSH_ID + push_id if push_id is not None else None
    if name is not None and (known := session.input_log.get(name)) is not None:
        return known, []
    session.log.check_open()
    payload = {**data, "text": text} if text else data
    message = Input(input_type="text" if text else EVENT, data=payload, id=name)
    _check_files(session, message)
    _check_room(session)
    particulars = NewTurnOptions(origin=origin)
    turn_id = next_turn_id(session)
    submitted = turn_submitted(session, turn_id, message, sender, particulars)
    return turn_id, enqueue(session, turn_id, submitted, resume=False)


def check_beginning(session: Session, message: Input) -> None:
    """Check that an input may begin a turn.

    Raises:
        RemoteError: It may not; the message gives the reason.
    """
    if message.input_type not in BEGINNING:
        raise InvalidMessage(
            f"input_type {message.input_type:.40} begins no turn; there are {', '.join(BEGINNING)}",
            detail="input.input_type",
        )
    _check_shape(message.data, _SHAPES.get(message.input_type))
    _check_files(session, message)


def _edit_queued(session: Session, message: Input) -> list[Effect]:
    """Replace the input of a queued turn; its position in the queue does not change."""
    turn_id = message.edits or ""
    check_beginning(session, message)
    if turn_id not in session.turns.queue:
        raise UnknownObject(f"no turn {turn_id!r:.80} is queued", detail=turn_id)
    edit_queued(session, turn_id, _stored_input(message))
    session.input_log.typed[turn_id] = message.data
    return acknowledge(message, turn_id)


def shaped(message: Input) -> Input:
    """Return an input with data in the shape of its type.

    In the draft protocol the data of a form is the fields themselves; they are moved to `fields`.

    Raises:
        InvalidMessage: The data has another shape.
    """
    data = message.data
    if message.input_type == "form_submit" and "fields" not in data and data.keys() - {"action"}:
        message = msgspec.structs.replace(message, data={"fields": data})
    _check_shape(message.data, _SHAPES.get(message.input_type))
    return message


def _resolve_inlined_source(session: Session, message: Input) -> Input:
    """Return an input that names the real surface and the real id of its component.

    A renderer without the feature `overlays` shows the components of popups and overlays on `main`,
    with ids of the form `popup/component` (`arp/view/inlined.py`).
    """
    source = message.source_component
    if message.input_type == "selection" and not source:
        source = message.data.get("source")
    surface, slash, own = (source or "").partition("/")
    # The prefix is trusted only if it names a popup or an overlay: components on `main` may have
    # ids with a slash of their own.
    if not slash or message.surface != "main" or not session.is_transient(surface):
        return message
    data = {**message.data, "source": own} if "source" in message.data else message.data
    return msgspec.structs.replace(message, surface=surface, source_component=own, data=data)


def _check_shape(data: JsonObject, shape: type[Struct] | None) -> None:
    if shape is None:
        return
    try:
        msgspec.convert(data, shape)
    except msgspec.ValidationError:
        hint = "; files come by POST as multipart/form-data" if shape is _FilesInput else ""
        raise InvalidMessage(explain(data, shape, "data") + hint, detail="data") from None


def _check_files(session: Session, message: Input) -> None:
    """Refuse files that do not belong to this session.

    A file's hash is not a credential: without this check, knowing the hash would be enough to read
    the file of another session.
    """
    if "files" in message.data:
        _check_shape(message.data, _FilesInput)
    if not session.input_log.files.keys() >= set(files_named(message.data)):
        raise UnknownObject("no such file; files come by POST as multipart/form-data")


def is_reserved(message: Input) -> bool:
    """Return whether an input is one of the protocol's own actions, such as `arp.cancel`."""
    return message.input_type == "action" and str(message.data["action"]).startswith("arp.")


def _apply_reserved_action(session: Session, message: Input) -> list[Effect]:
    action = message.data["action"]
    payload = message.data.get("payload")
    named = payload.get("turn_id") if isinstance(payload, dict) else None
    id_field = {"inputId": message.id} if message.id is not None else {}
    if action == PROMOTE:
        return _promote_turn(session, message, named, id_field)
    if action == CLOSE:
        return _close_surface(session, message)
    if action == CONTINUE:
        session.record("run.status", id_field, status="queued")
        # The resume itself is in no fact. On replay, the start of the next turn shows it.
        session.turns.resume()
        return [*acknowledge(message, None), *begin_next(session)]
    if action != CANCEL:
        raise InvalidMessage(f"action {action:.60}: names that begin with arp. are reserved")
    turn_id = named if isinstance(named, str) else session.turns.running
    if turn_id is not None and (turn_id == session.turns.running or turn_id in session.turns.queue):
        session.in_turn("run.status", turn_id, id_field, status="cancelling")
        return [*acknowledge(message, turn_id), *cancel_turn(session, turn_id)]
    if turn_id is not None and (questions := session.questions.of_turn(turn_id)):
        # A crash ended this turn while it waited, and its questions are still open. Without this
        # branch a user could not cancel it, and it would be shown as waiting for ever.
        session.in_turn("run.status", turn_id, id_field, status="cancelling")
        for question in questions:
            cancel_question(session, question)
        return acknowledge(message, turn_id)
    # Nothing to cancel. The id is recorded all the same: a repetition after a restart must not
    # cancel a turn that began in the meantime.
    if message.id is not None:
        session.record("run.status", id_field, status="idle")
    return acknowledge(message, None)


def _close_surface(session: Session, message: Input) -> list[Effect]:
    """Close a surface at the user's request; accept the request if it is closed already."""
    name = message.surface
    if name not in session.screen.surfaces and name in session.screen.closings:
        return acknowledge(message, None)
    if name == "main" or name not in session.screen.surfaces:
        raise UnknownObject(f"no surface {name!r} can be closed", detail=name)
    effects = close_surface(session, name, "user", message.id)
    return [*acknowledge(message, None), *effects]


def _promote_turn(
    session: Session, message: Input, named: Json, id_field: JsonObject
) -> list[Effect]:
    if not isinstance(named, str) or named not in session.turns.queue:
        raise UnknownObject(f"no turn {named!r:.80} is queued", detail=f"{named!s:.80}")
    promote(session, named)
    session.in_turn("run.status", named, id_field, status="queued")
    return acknowledge(message, named)


# -- finding the component that an input answers ---------------------------------------------------


def _find_question(
    session: Session, message: Input, read_typed: ReadTyped
) -> tuple[Component, Input] | None:
    """Return the component that an input answers, and the input as a valid answer to it.

    Returns:
        `None` if the input answers no component.
    """
    # The draft's client sends an empty source for "no component".
    if source := message.source_component or component_of_data(message):
        component = _component(session, source, message.surface)
        return component, _validate_answer(component, message)
    if message.input_type == "text":
        return _find_typed_answer(session, message, read_typed) if session.questions else None
    for component, named in _open_questions(session, message):
        if not answers_unnamed(component, message.input_type, message.data):
            continue
        if message.data.get("action") == "confirm" and component.type == "confirm":
            _check_unambiguous(session, named)
        return component, _validate_answer(component, named)
    # Without this error, an answer to a question that is gone would begin a turn of its own.
    if message.input_type in ("selection", "form_submit"):
        raise InvalidMessage(
            f"{message.input_type}: name the component that it answers in source_component"
        )
    return None


def component_of_data(message: Input) -> str | None:
    """Return the id of the component that a selection names in its data (draft protocol)."""
    source = message.data.get("source") if message.input_type == "selection" else None
    return source if isinstance(source, str) else None


def answers_unnamed(component: Component, input_type: InputType, data: JsonObject) -> bool:
    """Return whether an input that names no component could answer this open component."""
    spec = CATALOG.get(component.type)
    if spec is not None and input_type == spec.answered_by:
        return True
    is_no = is_decline(component, input_type, data)
    return is_no or offers_action(component, input_type, data)


def _find_typed_answer(
    session: Session, message: Input, read_typed: ReadTyped
) -> tuple[Component, Input] | None:
    """Return the newest open question that a typed line answers, and the line as its answer."""
    for component, named in _open_questions(session, message):
        parsed = read_typed(component, message.data["text"])
        if parsed is None:
            continue
        input_type, data = parsed
        if data.get("action") == "confirm":
            _check_unambiguous(session, named)
        answer = msgspec.structs.replace(named, input_type=input_type, data=data)
        return component, _validate_answer(component, answer)
    return None


def _check_unambiguous(session: Session, named: Input) -> None:
    """Refuse a yes without a question's name if it may be meant for another permission.

    The user may have seen an older question when they said yes. The newest one would then run a
    tool that they have not read about.

    Raises:
        InvalidAnswer: The turn has asked for several permissions; the questions stay open.
    """
    question = session.questions[named.surface, named.source_component or ""]
    if session.questions.is_unclear(question):
        raise InvalidAnswer(
            "there was more than one question for permission; name the one that you allow in "
            "source_component",
            detail="source_component",
        )


def _open_questions(session: Session, message: Input) -> Iterator[tuple[Component, Input]]:
    """Yield the open questions, newest first, each with a copy of the input that names it."""
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


def _validate_answer(component: Component, message: Input) -> Input:
    input_type, data = as_asked(component, message.input_type, message.data)
    data = check_answer(component, input_type, data)
    return msgspec.structs.replace(message, input_type=input_type, data=data)


# -- applying an input -----------------------------------------------------------------------------


def _apply_answer(
    session: Session,
    component: Component,
    message: Input,
    sender: InputSender,
    check: CheckAnswer | None,
) -> list[Effect]:
    """Apply a valid answer to a component.

    A selected tab is shown to every renderer. Any other answer resolves the question if the running
    turn has asked it; otherwise the answer begins a new turn.
    """
    if component.type == "tabs":
        return _select_tab(session, component, message)
    question = session.questions.get((message.surface, component.id))
    if is_decline(component, message.input_type, message.data):
        return _decline(session, component, message, sender, question)
    value = answer_value(component, message.input_type, message.data)
    message = _without_secrets(component, message, value)
    public = public_answer(component, value)
    if component.type == "confirm":
        terms = question.terms if question is not None else None
        (terms or NO_TERMS).check(ApprovalAnswer.of(message.data))
    if question is not None and check is not None:
        check(question, value)
    if question is not None and question.turn_id == session.turns.running:
        answer_question(
            session, question, public, _stored_input(message), _grant(question, message)
        )
        # The answer to a permission also has a scope, a digest and a changed input, so the agent
        # gets all of its data. A plain value would drop the changed input.
        outcome = QuestionOutcome("answered", message.data if question.terms else value)
        resolve = ResolveQuestion(question.action_id, outcome)
        return [*acknowledge(message, question.turn_id), resolve]
    # The turn that asked is over, so the answer begins a new one. The check for room comes before
    # the question is closed: a refused answer must leave the question open.
    _check_accepts_turn(session)
    if question is not None:
        answer_question(session, question, public, None)
    elif component.type in CATALOG and closes(component, message.input_type):
        mark_input(session, component.id, message.surface, "answered", public, None)
    thread, answers = _thread_of(session, component, message.surface, question), None
    if question is not None:
        answers = GivenAnswer(question.action_id, question.name, public)
    particulars = NewTurnOptions(thread=thread, answers=answers)
    return new_turn(session, message, sender, particulars, value)


def _decline(
    session: Session,
    component: Component,
    message: Input,
    sender: InputSender,
    question: Question | None,
) -> list[Effect]:
    """Close a question that the user declines, and pass the refusal to the agent."""
    if question is not None and question.turn_id == session.turns.running:
        decline_question(session, question, _stored_input(message))
        resolve = ResolveQuestion(question.action_id, QuestionOutcome("declined"))
        return [*acknowledge(message, question.turn_id), resolve]
    _check_accepts_turn(session)
    answers: GivenAnswer | None = None
    if question is not None:
        decline_question(session, question, None)
        answers = GivenAnswer(question.action_id, question.name, None, declined=True)
    else:
        mark_input(session, component.id, message.surface, "declined", None, None)
    thread = _thread_of(session, component, message.surface, question)
    return new_turn(session, message, sender, NewTurnOptions(thread=thread, answers=answers))


def _thread_of(
    session: Session, component: Component, surface: str, question: Question | None
) -> str:
    """Return the thread of the turn that showed the answered component."""
    if question is not None:
        return session.threads.of(question.turn_id)
    tree = session.tree(surface)
    return session.threads.of(tree.nodes[component.id].root.turn if tree is not None else None)


def _grant(question: Question, message: Input) -> Grant | None:
    """Return the permission for the rest of the session that an answer gives."""
    if question.terms is None or message.input_type != "action":
        return None
    return question.terms.grant_of(ApprovalAnswer.of(message.data))


def _without_secrets(component: Component, message: Input, value: Json) -> Input:
    """Return an answer without passwords, which may be stored; `ask` returns them to the agent."""
    if component.type != "form":
        return message
    data = {**message.data, "fields": public_answer(component, value)}
    return msgspec.structs.replace(message, data=data)


def _select_tab(session: Session, component: Component, message: Input) -> list[Effect]:
    """Select another tab for every renderer; no turn begins."""
    tab = message.data["payload"]["tab"]
    id_field = {"inputId": message.id} if message.id is not None else {}
    change = PatchChange([Update(component.id, "props.active_tab", tab)])
    session.commit(None, message.surface, [change], **id_field)
    return acknowledge(message, None)


def new_turn(
    session: Session,
    message: Input,
    sender: InputSender,
    particulars: NewTurnOptions = NO_PARTICULARS,
    answer: Json = None,
) -> list[Effect]:
    """Begin or queue a turn with a valid input, and resume the queue if it is paused.

    Args:
        session: Changed only if there is room for the turn.
        message: The input.
        sender: Who sent it.
        particulars: Options of the turn, besides its input.
        answer: Value of the answer that began the turn, with its secrets; `particulars.answers` has
            it without them. `None` if the turn answers nothing.
    """
    _check_accepts_turn(session)
    running = session.turns.running
    turn_id = particulars.turn_id or next_turn_id(session)
    submitted = turn_submitted(session, turn_id, message, sender, particulars)
    if particulars.answers is not None:
        session.input_log.given[turn_id] = answer
    effects = acknowledge(message, turn_id)
    # An answer does not interrupt: the running turn may be the one that waits for it.
    is_answer = particulars.answers is not None
    if running is not None and session.rules.policy == "interrupt" and not is_answer:
        effects.append(StopTurn(running))
    return [*effects, *enqueue(session, turn_id, submitted, resume=True)]


def is_only_greeted(session: Session) -> bool:
    """Return whether the greeting is the only turn, and the user has not answered it."""
    if session.screen.count != 1:
        return False
    (first,) = session.screen.turns.values()
    return [echo.origin for echo in first.inputs] == [SESSION_START]


def next_turn_id(session: Session) -> str:
    """Return the next free id of a turn."""
    return f"t{session.turn_count + 1}"


def turn_submitted(
    session: Session,
    turn_id: str,
    message: Input,
    sender: InputSender,
    particulars: NewTurnOptions,
) -> RecordedFact:
    """Return the first fact of a new turn.

    The caller has validated the input and records the fact next.
    """
    submitted: JsonObject = {"input": _stored_input(message)}
    if particulars.edits is not None:
        submitted["edits"] = particulars.edits
    if particulars.origin is not None:
        submitted["origin"] = particulars.origin
    if particulars.answers is not None:
        submitted["answers"] = msgspec.to_builtins(particulars.answers)
    if sender.renderer != UNKNOWN:
        submitted["renderer"] = msgspec.to_builtins(sender.renderer)
    if particulars.thread is not None:
        session.threads.join(turn_id, particulars.thread)
    outside = particulars.traceparent
    if outside is not None and read_traceparent(outside) is not None:
        session.input_log.traceparents[turn_id] = outside
    else:
        outside = None
    thread = session.threads.of(turn_id)
    ids: dict[str, Json] = {**particulars.ids, "thread_id": thread, "turn_id": turn_id}
    # The fact names the trace if tracing is on, or if the turn has an external span.
    if session.rules.traced or outside is not None:
        ids |= turn_ids(session.head.session_id, session.head.epoch, turn_id, outside)
    session.input_log.typed[turn_id] = message.data
    if sender.user is not None:
        session.input_log.users[turn_id] = sender.user
    return RecordedFact("turn.submitted", submitted, ids, turn_id=turn_id)


def _check_accepts_turn(session: Session) -> None:
    if session.turns.running is not None and session.rules.policy == "reject":
        raise SessionBusy("a turn is running; wait for it, or stop it with action arp.cancel")
    _check_room(session)


def _check_room(session: Session) -> None:
    if len(session.turns.queue) >= MAX_QUEUE:
        raise ResourceLimit(f"{MAX_QUEUE} turns are queued already; wait for some to end")


def _stored_input(message: Input) -> JsonObject:
    """Return an input as facts store it, without empty and default fields."""
    fields: JsonObject = {"input_type": message.input_type, "data": message.data}
    if message.source_component:
        fields["source_component"] = message.source_component
    if message.surface != "main":
        fields["surface"] = message.surface
    if message.id is not None:
        fields["id"] = message.id
    return fields


def input_of(fields: JsonObject, input_id: str | None = None) -> Input:
    """Return a stored input under another id, so that it can be recorded again."""
    return Input(
        input_type=fields["input_type"],
        data=fields["data"],
        source_component=fields.get("source_component"),
        surface=fields.get("surface", "main"),
        id=input_id,
    )


def acknowledge(message: Input, turn_id: str | None) -> list[Effect]:
    """Return the acknowledgement of an input; an empty list if the input has no id."""
    return [Acknowledge(message.id, turn_id)] if message.id is not None else []
