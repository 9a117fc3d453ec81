"""What is behind an author's `Turn`: what it has pending, asked and counted, and where it runs.

Theory of operation. Text and changes gather as *pending*. They are recorded when the agent next
awaits anything of the turn but more text, or when the writer comes by: neighbouring text is one
fact, however many tokens it came in, and what is changed between two awaits is one commit. A commit
that is refused changes nothing; the refusal is raised where the agent next awaits the turn.

Text that is pending stands before the changes that are: text that follows a change has that
committed first. So the order is the agent's.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from arp.access.principal import User
from arp.live.files import SessionFiles
from arp.live.live_session import LiveSession, QuestionDeadline
from arp.protocol.catalog import put_children, take_children
from arp.protocol.components import Component, as_object
from arp.protocol.errors import ArpError, InvalidComponent, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CloseReason, Command
from arp.protocol.patch import PatchOp
from arp.record.end_cause import EndCause
from arp.record.wording import check_kind, encoded, plain, well_formed
from arp.session.recorded import SAYING
from arp.session.session import Question, QuestionTerms, ToolUse
from arp.surface.change import Change, PatchChange
from arp.turn.pending_changes import PendingChanges
from arp.turn.question_outcome import QuestionOutcome, rfc3339
from arp.turn.services import TurnServices
from arp.turn.surfaces import TurnSurfaces

if TYPE_CHECKING:
    from arp.live.tasks import ServerTask
    from arp.record.recorder import Recorder

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")

MAX_UNWRITTEN = 16 << 10
"""Characters that a turn may send before it waits for the ledger to take them."""

MAX_COMMAND_NAME = 64
"""Characters; those of agent CLIs, with the names of their plugins, have up to 50."""

MAX_CHOICE = 256
"""Characters of a command's argument that is offered; the longest names of models have 100."""

MAX_USAGE_BYTES = 4 << 10
"""As JSON; a few numbers and a name are a hundredth of it."""


class Asking(Struct, frozen=True):
    """How a question is asked."""

    surface: str = "main"
    """Where."""
    name: str = ""
    """What the app calls it, to be called with its answer when the turn is gone."""
    expires_at: float | None = None
    """Until when it may be answered, in seconds since 1970; `None`: until the turn ends."""
    about: ToolUse | None = None
    """The use of a tool that waits for permission."""
    check: Callable[[Json], object] | None = None
    """Raises `InvalidAnswer` for an answer that fits the component, but not who asked."""


class AskedQuestion:
    """A question of a turn that runs, and what comes of it."""

    __slots__ = ("check", "outcome", "question", "timer")

    def __init__(
        self,
        question: Question,
        outcome: asyncio.Future[QuestionOutcome],
        check: Callable[[Json], object] | None,
    ) -> None:
        self.question = question
        self.outcome = outcome
        """It never fails, so that nobody has to look at it."""
        self.check = check
        self.timer: asyncio.TimerHandle | None = None
        """Closes it when its time is over."""


class TurnHost:
    """One turn that runs in a session."""

    def __init__(
        self,
        live: LiveSession,
        turn_id: str,
        files: SessionFiles,
        services: TurnServices,
    ) -> None:
        self.live = live
        self.turn_id = turn_id
        self.files = files
        self.services = services
        self.session = live.session
        self.changed = live.mark
        """To be called after every change: what was recorded is written and delivered."""
        self.task: ServerTask[None] | None = None
        """Runs the agent."""
        self.end_cause: EndCause | None = None
        """Why the turn is ended from outside. The agent may cancel its own task too, as a timeout
        does: then it is `None`."""
        self.is_over = False
        """It has ended; its agent may still clean up."""
        self.pending = PendingChanges()
        """Changes that are not committed."""
        self._texts: list[str] = []
        """Text that is not recorded."""
        self._text_type = SAYING
        """Of all of it."""
        self.frames = 0
        """How many `turn.frame` are open: nothing is committed inside."""
        self.refused: Exception | None = None
        """Why a commit was refused; for the agent's next await."""
        self.surfaces = TurnSurfaces(live, turn_id, services)
        """Those besides `main`."""
        self.usage: JsonObject = {}
        """What the agent recorded by `usage`; never changed in place."""
        self._asked: dict[str, AskedQuestion] = {}
        """Questions of which nothing has come yet, by action id."""
        self._waiters = 0
        """How much of the agent waits for an answer."""
        self._state: JsonObject | None = None
        """What the agent keeps; `None` if it did not ask for it."""
        self._shared_state: JsonObject | None = None
        """What the agent shares with renderers; `None` if it did not ask for it."""
        self._components = 0
        self._tools = 0

    @property
    def user(self) -> User:
        """Who began the turn."""
        return self.live.user_of(self.turn_id)

    @property
    def is_waiting(self) -> bool:
        """Whether the agent waits for an answer."""
        return self._waiters > 0

    # -- what is pending -------------------------------------------------------------------------

    def check_running(self) -> None:
        """As `Session.check_running`."""
        self.session.check_running(self.turn_id)

    def gather(self, surface: str, change: Change) -> None:
        """Add a change to what is pending."""
        self.pending.add(name_of(surface, "surface"), change)
        self.live.before_write(self.flush)

    def change(self, surface: str, op: PatchOp) -> None:
        """Add one op to what is pending, as a copy.

        Raises:
            SurfaceDestroyed: The turn is over.
            TypeError: Its target is no id, or it cannot be written as JSON.
        """
        self.check_running()
        target = getattr(op, "target", "")
        if not isinstance(target, str):
            what = type(target).__name__
            raise TypeError(f"target: expected the id of a component, got {what}")
        self.gather(surface, PatchChange([copied_json(op)]))

    def add_text(self, text: str, type_name: str) -> bool:
        """Add text to what is pending; return whether to wait for `room`."""
        texts, live = self._texts, self.live
        if type_name != self._text_type:
            self.flush_text()
            self._text_type = type_name
        if not texts:
            live.before_write(self.flush)
        texts.append(text)
        live.unwritten += len(text)
        return live.unwritten > MAX_UNWRITTEN

    def flush_text(self) -> None:
        """Record the text that is pending: a fact that is no text follows it."""
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            self.session.log.say(self.turn_id, text, self._text_type)

    def flush(self) -> None:
        """Record what is pending; a refusal is kept for the agent's next await."""
        if self._texts:
            self.flush_text()
        if self.frames:
            return
        if self._shared_state is not None:
            self._save_shared_state(self._shared_state)
        if not self.pending:
            return
        for surface, commit in self.pending.take().items():
            try:
                self.session.commit(self.turn_id, surface, commit.changes)
            except ArpError as error:
                commit.name_call(error)
                self.refused = self.refused or error

    def settle(self) -> None:
        """Commit what is pending, and raise what was refused."""
        if not self.frames:
            self.flush()
            if self.session.has_recorded:
                self.changed()
        error, self.refused = self.refused, None
        if error is not None:
            raise error

    def begin_frame(self) -> None:
        """Commit nothing until the frame ends."""
        self.settle()
        self.frames += 1

    def drop_frame(self) -> None:
        """End a frame that raised: nothing of it is shown."""
        self.pending.take()
        self.frames -= 1

    def end_frame(self) -> None:
        """End a frame, and commit what is pending; raise what was refused."""
        self.frames -= 1
        self.settle()

    def finish(self) -> None:
        """Commit the rest, and record the state; raise what was refused."""
        self.frames = 0
        self.settle()
        self.record_state()

    # -- what the agent keeps and counts ---------------------------------------------------------

    @property
    def state(self) -> JsonObject:
        """What the agent keeps for the session, as it may change it."""
        if self._state is None:
            self._state = copy.deepcopy(self.session.settings.state)
        return self._state

    def record_state(self) -> None:
        """Record what the agent keeps, if the turn changed it. Called again, do nothing.

        Raises:
            ArpError, TypeError, ValueError: It cannot be recorded, and stays what it was.
        """
        try:
            self.save_state()
        finally:
            self._state = None

    def save_state(self) -> None:
        """Record what the agent keeps now, as `record_state`; it may go on changing it."""
        state = self._state
        if state is None:
            return
        try:
            plain_state = plain(state)
        except TypeError as error:
            what = f"turn.state: {error}; keep live objects in turn.cache"
            raise TypeError(what) from None
        except ValueError as error:
            raise ValueError(f"turn.state: {error}") from None
        self.session.update_state(self.turn_id, plain_state)
        self.changed()

    @property
    def shared_state(self) -> JsonObject:
        """What the agent shares with renderers, as it may change it."""
        if self._shared_state is None:
            self._shared_state = copy.deepcopy(self.session.screen.shared_state)
        self.live.before_write(self.flush)
        return self._shared_state

    @shared_state.setter
    def shared_state(self, state: JsonObject) -> None:
        self._shared_state = copy.deepcopy(plain(dict_of(state, "turn.shared_state")))
        self.live.before_write(self.flush)

    def _save_shared_state(self, state: JsonObject) -> None:
        """Record what is shared now; a refusal is kept for the agent's next await, once."""
        try:
            self.session.update_shared_state(self.turn_id, copy.deepcopy(plain(state)))
        except (ArpError, TypeError, ValueError) as error:
            self.refused = self.refused or error
            self._shared_state = None

    def set_commands(self, commands: Iterable[Command]) -> None:
        """As `Turn.set_commands`."""
        self.check_running()
        self.session.set_commands(self.turn_id, checked_commands(commands))
        self.changed()

    def add_usage(self, used: JsonObject) -> None:
        """Add numbers to what the turn took; anything else takes its place.

        Raises:
            ResourceLimit: All of it would be more than `MAX_USAGE_BYTES`; nothing changed.
            TypeError, ValueError: It cannot be written as JSON, or a number is below 0; nothing
                changed.
        """
        used = plain(used)
        below = next((name for name, one in used.items() if _is_number(one) and one < 0), None)
        if below is not None:
            raise ValueError(
                f"usage: {below}: expected what was used, a number from 0, got {used[below]}"
            )
        summed = {name: _sum(self.usage.get(name), one) for name, one in used.items()}
        usage = plain(self.usage | summed)
        size = len(msgspec.json.encode(usage))
        if size > MAX_USAGE_BYTES:
            raise ResourceLimit(f"usage: {size} bytes; at most {MAX_USAGE_BYTES}")
        self.usage = usage

    def recorder(self) -> Recorder:
        """Return what records facts of the turn."""
        # Only now, so that importing `Turn` stays quick; a hub has them loaded before any turn.
        from arp.record.recorder import Recorder
        from arp.record.scope import FactScope

        ids = {"thread_id": self.session.threads.of(self.turn_id), "turn_id": self.turn_id}
        scope = FactScope(self.session, ids, self._before_fact, self.changed)
        return Recorder(scope, self.files.outputs)

    def _before_fact(self) -> None:
        self.flush()
        self.check_running()

    # -- components and tools --------------------------------------------------------------------

    def next_tool(self) -> int:
        """Return the number of the next tool call; 1 is the first."""
        self._tools += 1
        return self._tools

    def named(self, component: Component, where: str) -> Component:
        """Return a copy that shares nothing with the author's, in which everything has an id."""
        if not isinstance(component, Component):
            what = type(component).__name__
            raise InvalidComponent(f"{where}: expected a component, got {what}; ui.text(…) is one")
        copied = copied_json(component)
        try:
            return self._with_ids(copied)
        except (KeyError, TypeError, AttributeError, RecursionError):
            what = f"the children of {copied.type!r:.60} do not fit it"
            raise InvalidComponent(f"{where}: {what}; ui.group(…) makes one that does") from None

    def _with_ids(self, component: Component) -> Component:
        own, children = take_children(component.type, component.props)
        props = component.props
        if children:
            named = [self._with_ids(msgspec.convert(child, Component)) for child in children]
            props = put_children(component.type, own, [as_object(child) for child in named])
        name = component.id
        if not name:
            self._components += 1
            name = f"{self.turn_id}-{self._components}"
        return msgspec.structs.replace(component, id=name, props=props)

    # -- questions -------------------------------------------------------------------------------

    def ask(self, component: Component, asking: Asking) -> AskedQuestion:
        """Show a question.

        Raises:
            ArpError: The component is refused, or what was pending before it; nothing is asked.
        """
        self.settle()
        self.check_running()
        self.save_state()
        named = self.named(component, "turn.ask")
        expires_at, about = asking.expires_at, asking.about
        until = None if expires_at is None or about is not None else rfc3339(expires_at)
        terms = QuestionTerms(asking.name, until)
        surface = name_of(asking.surface, "surface")
        question = self.session.ask(self.turn_id, named, surface, about, terms)
        self.changed()
        loop = asyncio.get_running_loop()
        asked = AskedQuestion(question, loop.create_future(), asking.check)
        self._asked[question.action_id] = asked
        if expires_at is not None:
            expire = partial(self._expire, asked)
            self.live.deadlines[question.action_id] = QuestionDeadline(expires_at, expire)
            asked.timer = loop.call_later(max(0.0, expires_at - time.time()), expire)
        return asked

    async def outcome_of(self, asked: AskedQuestion, *, withdraws: bool) -> QuestionOutcome:
        """Wait for what comes of a question.

        Args:
            asked: The question.
            withdraws: A cancel withdraws it. One that comes when the answer was accepted already
                waits until that is returned: every renderer shows it, so it counts.
        """
        requests = _running_task().cancelling()
        self._waiters += 1
        self.services.on_question()
        try:
            return await asyncio.shield(asked.outcome)
        except asyncio.CancelledError:
            if not withdraws or self.session.running != self.turn_id or self.end_cause is not None:
                raise  # the end of the turn closes the question, or leaves it for the next server
            if self.withdraw(asked):
                raise
        finally:
            self._waiters -= 1
        outcome = await self.live.unless_gone(asyncio.shield(asked.outcome))
        asyncio.get_running_loop().call_soon(_cancel_again, _running_task(), requests)
        return outcome

    async def waiting_for(self, future: asyncio.Future[R]) -> R:
        """Wait for what a user does; the agent is not busy meanwhile.

        Cancel: Safe; the future goes on.
        """
        self._waiters += 1
        self.services.on_question()
        try:
            return await asyncio.shield(future)
        finally:
            self._waiters -= 1

    def withdraw(self, asked: AskedQuestion) -> bool:
        """Close a question without an answer; return whether it was open."""
        return self._close(asked, "withdrawn")

    def _expire(self, asked: AskedQuestion) -> None:
        self._close(asked, "expired")

    def _close(self, asked: AskedQuestion, kind: Literal["withdrawn", "expired"]) -> bool:
        if self.session.running != self.turn_id or not self.session.is_open(asked.question):
            return False
        self.flush()
        ended: Literal["expired", "cancelled"] = "expired" if kind == "expired" else "cancelled"
        self.session.cancel_question(asked.question, ended)
        self.changed()
        self._settle_question(asked, QuestionOutcome(kind))
        return True

    def surface_closed(self, name: str, reason: CloseReason) -> None:
        """Tell the agent that a surface was closed; what was to be shown on it is dropped."""
        self.pending.drop(name)
        self.surfaces.closed(name, reason)

    def resolve(self, action_id: str, outcome: QuestionOutcome) -> None:
        """Hand an answer to whoever waits for it."""
        asked = self._asked.get(action_id)
        if asked is not None:
            self._settle_question(asked, outcome)

    def check_answer(self, action_id: str, value: Json) -> None:
        """Judge an answer before it is accepted.

        Raises:
            InvalidAnswer: Who asked cannot take it.
        """
        asked = self._asked.get(action_id)
        if asked is not None and asked.check is not None:
            asked.check(value)

    def _settle_question(self, asked: AskedQuestion, outcome: QuestionOutcome) -> None:
        action_id = asked.question.action_id
        self._asked.pop(action_id, None)
        self.live.deadlines.pop(action_id, None)
        if asked.timer is not None:
            asked.timer.cancel()
        if not asked.outcome.done():
            asked.outcome.set_result(outcome)

    # -- its end ---------------------------------------------------------------------------------

    @property
    def is_left_open(self) -> bool:
        """Whether the turn is left as it is, with what it asks, for the next process to go on."""
        return self.end_cause is EndCause.SERVER_STOPS

    def stop(self, cause: EndCause) -> None:
        """Ask the agent to stop; of several causes the first one counts."""
        self.end_cause = self.end_cause or cause
        if self.task is not None:
            self.task.stop(self.end_cause)

    def end(self) -> JsonObject | None:
        """Commit what is pending and record the state; return the usage, if there is any.

        The state of a turn that fails or is cancelled is recorded too, unless it cannot be.
        """
        self.flush()
        try:
            self.record_state()
        except Exception as error:  # noqa: BLE001 - the turn ends by something else already
            logger.warning("turn.state of turn %s is not recorded: %s", self.turn_id, error)
        self.is_over = True
        self.surfaces.end()
        for asked in list(self._asked.values()):
            self._settle_question(asked, QuestionOutcome("over"))
        return self.usage or None


def checked_commands(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return a copy of commands that people can type, and that renderers can show.

    Raises:
        TypeError, ValueError: As `Turn.set_commands`.
    """
    checked: list[Command] = []
    if not isinstance(commands, Iterable):
        raise TypeError(f"commands: expected a list of Command, got {type(commands).__name__}")
    for command in commands:
        check_kind(command, Command, "commands")
        one = copied_json(command)
        where = f"command {one.name!r:.80}"
        if not is_typable(one.name, MAX_COMMAND_NAME) or " " in one.name or one.name[0] == "/":
            raise ValueError(
                f"{where}: take 1 to {MAX_COMMAND_NAME} printable characters without spaces, and "
                "no slash in front"
            )
        values = [choice.value for choice in one.choices]
        for value in values:
            if not is_typable(value, MAX_CHOICE) or value != value.strip():
                raise ValueError(
                    f"{where}: choice {value!r:.80}: take 1 to {MAX_CHOICE} printable characters, "
                    "without spaces around"
                )
        if len(set(values)) < len(values):
            raise ValueError(f"{where}: two choices have the same value")
        if sum(choice.current for choice in one.choices) > 1:
            raise ValueError(f"{where}: more than one choice is current")
        checked.append(one)
    if len({one.name for one in checked}) < len(checked):
        raise ValueError("commands: two have the same name")
    return tuple(checked)


def is_typable(text: str, most: int) -> bool:
    """Return whether people can type a text that is at most so long."""
    return 0 < len(text) <= most and text.isprintable()


def dict_of(value: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return a mapping as a dict of its own.

    Raises:
        TypeError: It is none; the message names what has another type.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{what}: expected a dict, got {type(value).__name__}")
    return dict(value)


def text_of(text: str, what: str) -> str:
    """Return a text without what no encoding carries.

    Raises:
        TypeError: It is no text; the message names what has another type.
    """
    try:
        return well_formed(text)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


def name_of(text: str, what: str) -> str:
    """Return a name as a plain text.

    Raises:
        TypeError: It is no text.
        ValueError: It is empty, which names nothing.
    """
    formed = text_of(text, what)
    if not formed:
        raise ValueError(f"{what}: expected a name, got an empty text")
    return formed


def copied_json(value: T) -> T:
    """Return a deep copy as plain values; refuse at once what cannot be written as JSON."""
    return msgspec.json.decode(encoded(value), type=type(value))


def plain_object(value: msgspec.Struct) -> JsonObject:
    """Return a message as plain JSON."""
    plain: JsonObject = msgspec.to_builtins(value)
    return plain


def _sum(before: Json, more: Json) -> Json:
    if _is_number(before) and _is_number(more):
        return before + more
    return more


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _running_task() -> asyncio.Task[Any]:
    """Return the current task. A variable with it would keep its traceback, and so a session."""
    task = asyncio.current_task()
    assert task is not None
    return task


def _cancel_again(task: asyncio.Task[Any], requests: int) -> None:
    """Repeat a cancel that an `ask` did not pass on, unless the timeout that sent it is over.

    Args:
        task: Whose `ask` got the cancel.
        requests: How many cancels the task had before it.
    """
    if task.cancelling() > requests:
        task.uncancel()
        task.cancel()
