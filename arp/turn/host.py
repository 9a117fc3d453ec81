"""The state behind an author's `Turn`: pending output, open questions and counters.

Theory of operation. Text and changes are first *pending*. They are recorded when the agent awaits
any method of the turn that does not add text, or when the writer prepares a write. So neighbouring
text becomes one fact, however many tokens it came in, and the changes between two awaits become one
commit. A refused commit changes nothing; the refusal is raised at the agent's next await of the
turn.

Pending text precedes pending changes: adding text after a change commits that change first. So the
order of the agent is kept.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from arp.access.principal import User
from arp.live.files import SessionFiles
from arp.live.live_session import LiveSession, QuestionDeadline
from arp.protocol.catalog import put_children, split_children
from arp.protocol.components import Component, as_object
from arp.protocol.errors import ArpError, InvalidComponent, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CloseReason, Command
from arp.protocol.patch import PatchOp
from arp.record.end_cause import EndCause
from arp.record.wording import check_kind, plain
from arp.session.asking import ask_question, cancel_question
from arp.session.effects import QuestionOutcome
from arp.session.questions import Question
from arp.session.recording.recorded import OUTPUT_TEXT, REASONING_TEXT
from arp.session.session import NO_OPTIONS, QuestionOptions
from arp.session.session_values import set_commands, update_shared_state, update_state
from arp.surface.change import Change, PatchChange
from arp.turn.author_values import MAX_UNWRITTEN, copied_json, dict_of, name_of
from arp.turn.pending_changes import PendingChanges
from arp.turn.services import TurnServices
from arp.turn.surfaces import TurnSurfaces

if TYPE_CHECKING:
    from arp.live.tasks import ServerTask
    from arp.record.recorder import Recorder

logger = logging.getLogger(__name__)

R = TypeVar("R")

MAX_COMMAND_NAME = 64
"""Most characters of a command's name; names of agent CLIs with plugins have up to 50."""

MAX_CHOICE = 256
"""Most characters of an offered argument of a command; the longest names of models have 100."""

MAX_USAGE_BYTES = 4 << 10
"""Most bytes of a turn's usage as JSON; a few numbers and a name are a hundredth of it."""


class PendingQuestion:
    """Open question of a running turn, with a future for its outcome."""

    __slots__ = ("check", "outcome", "question", "timer")

    def __init__(
        self,
        question: Question,
        outcome: asyncio.Future[QuestionOutcome],
        check: Callable[[Json], object] | None,
    ) -> None:
        self.question = question
        self.outcome = outcome
        """Outcome of the question. It never gets an exception, so it may stay unread."""
        self.check = check
        self.timer: asyncio.TimerHandle | None = None
        """Timer that closes the question at its deadline."""


class TurnHost:
    """A turn that runs in a session."""

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
        self._user = live.session.input_log.users.get(turn_id)
        self.changed = live.mark
        """Schedules a write of what was recorded; must be called after every change."""
        self.task: ServerTask[None] | None = None
        """Task that runs the agent."""
        self.end_cause: EndCause | None = None
        """Reason why the turn is stopped from outside.

        `None` if the agent cancels its own task, for example by a timeout.
        """
        self.is_over = False
        """Whether the turn has ended; its agent may still be cleaning up."""
        self.pending = PendingChanges()
        """Changes that are not committed yet."""
        self._texts: list[str] = []
        """Text that is not recorded yet."""
        self._text_type = OUTPUT_TEXT
        """Type of fact that the pending text becomes."""
        self.frames = 0
        """Number of open `turn.frame` blocks; nothing is committed inside of them."""
        self.refused: Exception | None = None
        """Error of a refused commit, to be raised at the agent's next await."""
        self.surfaces = TurnSurfaces(live, turn_id, services)
        """Surfaces of the turn other than `main`."""
        self.usage: JsonObject = {}
        """Usage that the agent recorded by `usage`; replaced, never changed in place."""
        self._open_questions: dict[str, PendingQuestion] = {}
        """Questions without an outcome, by action id."""
        self._waiters = 0
        """Number of tasks of the agent that wait for a user."""
        self._state: JsonObject | None = None
        """The agent's state; `None` if the agent has not read it."""
        self._shared_state: JsonObject | None = None
        """State that the agent shares with renderers; `None` if the agent has not read it."""
        self._components = 0
        self._tools = 0

    @property
    def user(self) -> User:
        """The user who began the turn.

        If this user is not known, for example after a restart, the `User` has only a name: that of
        the session's owner.
        """
        known = self._user
        return known if isinstance(known, User) else User(self.session.owner)

    @property
    def is_waiting(self) -> bool:
        """Whether the agent waits for an answer."""
        return self._waiters > 0

    # -- pending text and changes ----------------------------------------------------------------

    def check_running(self) -> None:
        """Raise if the turn is over; see `Session.check_running`."""
        self.session.check_running(self.turn_id)

    async def recheck_running(self) -> None:
        """Yield to the event loop once, then raise if the turn is over.

        Raises:
            SurfaceDestroyed: The turn is over.
        """
        # An agent that loops over this error must not block the event loop.
        await asyncio.sleep(0)
        self.check_running()

    def gather(self, surface: str, change: Change) -> None:
        """Add a change to the pending ones."""
        self.pending.add(name_of(surface, "surface"), change)
        self.live.before_write(self.flush)

    def change(self, surface: str, op: PatchOp) -> None:
        """Add a copy of one operation to the pending changes.

        Raises:
            SurfaceDestroyed: The turn is over.
            TypeError: Its target is not an id, or it is not JSON.
        """
        self.check_running()
        target = getattr(op, "target", "")
        if not isinstance(target, str):
            what = type(target).__name__
            raise TypeError(f"target: expected the id of a component, got {what}")
        self.gather(surface, PatchChange([copied_json(op)]))

    def add_text(self, text: str, type_name: str = OUTPUT_TEXT) -> bool:
        """Add pending text; return whether too much is unwritten: then await `services.room`."""
        texts, live = self._texts, self.live
        # Pending text becomes one fact of one type: output and reasoning must not be merged.
        if type_name != self._text_type:
            self.flush_text()
            self._text_type = type_name
        if not texts:
            live.before_write(self.flush)
        texts.append(text)
        live.unwritten += len(text)
        return live.unwritten > MAX_UNWRITTEN

    def add_reasoning(self, text: str) -> None:
        """Add pending text to the reasoning of the turn."""
        self.add_text(text, REASONING_TEXT)

    def flush_text(self) -> None:
        """Record the pending text, so that a fact of another type may follow it."""
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            self.session.log.say(self.turn_id, text, self._text_type)

    def flush(self) -> None:
        """Record everything pending; keep a refusal for the agent's next await."""
        if self._texts:
            self.flush_text()
        # Inside a frame the writer may call this too. A frame is one commit, so it waits.
        if self.frames:
            return
        if self._shared_state is not None:
            self._save_shared_state(self._shared_state)
        if not self.pending:
            return
        for surface, commit in self.pending.pop_all().items():
            try:
                self.session.commit(self.turn_id, surface, commit.changes)
            except ArpError as error:
                commit.name_call(error)
                # The first refusal explains the ones that follow from it.
                self.refused = self.refused or error

    def settle(self) -> None:
        """Commit what is pending, and raise the error of a refused commit."""
        if not self.frames:
            self.flush()
            if self.session.has_recorded:
                self.changed()
        error, self.refused = self.refused, None
        if error is not None:
            raise error

    def begin_frame(self) -> None:
        """Begin a frame: commit nothing until it ends."""
        self.settle()
        self.frames += 1

    def drop_frame(self) -> None:
        """End a frame that raised, without showing its changes."""
        self.pending.pop_all()
        self.frames -= 1

    def end_frame(self) -> None:
        """End a frame: commit its changes and raise the error of a refused commit."""
        self.frames -= 1
        self.settle()

    def finish(self) -> None:
        """Commit the rest and record the state; raise the error of a refused commit."""
        self.frames = 0
        self.settle()
        self.record_state()

    # -- state and usage -------------------------------------------------------------------------

    @property
    def state(self) -> JsonObject:
        """The agent's state for the session; the agent may change it in place."""
        if self._state is None:
            self._state = copy.deepcopy(self.session.settings.state)
        return self._state

    def record_state(self) -> None:
        """Record the agent's state if the turn changed it. A second call does nothing.

        Raises:
            ArpError, TypeError, ValueError: The state cannot be recorded and keeps its old value.
        """
        try:
            self.save_state()
        finally:
            self._state = None

    def save_state(self) -> None:
        """Record the agent's state as it is now; the agent may change it afterwards."""
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
        update_state(self.session, self.turn_id, plain_state)
        self.changed()

    @property
    def shared_state(self) -> JsonObject:
        """State that the agent shares with renderers; the agent may change it in place."""
        if self._shared_state is None:
            self._shared_state = copy.deepcopy(self.session.screen.shared_state)
        # The agent may change the returned dict in place, so the next write records it.
        self.live.before_write(self.flush)
        return self._shared_state

    @shared_state.setter
    def shared_state(self, state: JsonObject) -> None:
        self._shared_state = copy.deepcopy(plain(dict_of(state, "turn.shared_state")))
        self.live.before_write(self.flush)

    def _save_shared_state(self, state: JsonObject) -> None:
        """Record the shared state; keep a refusal, once, for the agent's next await."""
        try:
            update_shared_state(self.session, self.turn_id, copy.deepcopy(plain(state)))
        except (ArpError, TypeError, ValueError) as error:
            self.refused = self.refused or error
            # Otherwise every later flush would be refused again for the same value.
            self._shared_state = None

    def set_commands(self, commands: Iterable[Command]) -> None:
        """Set the commands that renderers offer; see `Turn.set_commands`."""
        self.check_running()
        set_commands(self.session, self.turn_id, checked_commands(commands))
        self.changed()

    def add_usage(self, used: JsonObject) -> None:
        """Add numbers to the usage of the turn; other values replace the previous ones.

        Raises:
            ResourceLimit: The usage would exceed `MAX_USAGE_BYTES`; nothing changed.
            TypeError, ValueError: It is not JSON, or a number is below 0; nothing changed.
        """
        used = plain(used)
        below = next((name for name, one in used.items() if _is_number(one) and one < 0), None)
        if below is not None:
            raise ValueError(
                f"usage: {below}: expected what was used, a number from 0, got {used[below]}"
            )
        summed = {name: _add_values(self.usage.get(name), one) for name, one in used.items()}
        usage = plain(self.usage | summed)
        size = len(msgspec.json.encode(usage))
        if size > MAX_USAGE_BYTES:
            raise ResourceLimit(f"usage: {size} bytes; at most {MAX_USAGE_BYTES}")
        self.usage = usage

    def recorder(self) -> Recorder:
        """Return a recorder of facts of this turn."""
        # Imported here so that importing `Turn` stays quick; a hub loads both before any turn.
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
        """Return the number of the next tool call, counted from 1."""
        self._tools += 1
        return self._tools

    def named(self, component: Component, where: str) -> Component:
        """Return an independent copy of a component; every part of the copy has an id."""
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
        own, children = split_children(component.type, component.props)
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

    def ask(
        self,
        component: Component,
        options: QuestionOptions = NO_OPTIONS,
        surface: str = "main",
        check: Callable[[Json], object] | None = None,
    ) -> PendingQuestion:
        """Show a question.

        Args:
            component: The question.
            options: Recorded options of the question.
            surface: Surface that shows the question.
            check: Additional validation of the answer; raises `InvalidAnswer`.

        Raises:
            ArpError: The component or a pending change is refused; no question is asked.
        """
        self.settle()
        self.check_running()
        # The state must be as new as the question: a late answer is handled with this state by
        # another process.
        self.save_state()
        named = self.named(component, "turn.ask")
        surface = name_of(surface, "surface")
        question = ask_question(self.session, self.turn_id, named, surface, options)
        self.changed()
        loop = asyncio.get_running_loop()
        asked = PendingQuestion(question, loop.create_future(), check)
        self._open_questions[question.action_id] = asked
        if options.expires_at is not None:
            at = datetime.fromisoformat(options.expires_at).timestamp()
            expire = partial(self._expire, asked)
            self.live.deadlines[question.action_id] = QuestionDeadline(at, expire)
            asked.timer = loop.call_later(max(0.0, at - time.time()), expire)
        return asked

    async def outcome_of(self, asked: PendingQuestion, *, withdraws: bool) -> QuestionOutcome:
        """Wait for the outcome of a question.

        Args:
            asked: The question.
            withdraws: Whether a cancel withdraws the question. If its answer was already accepted,
                the outcome is returned and the cancel takes effect at the next await: every
                renderer shows the answer, so it counts.
        """
        requests = _running_task().cancelling()
        self._waiters += 1
        self.services.on_question()
        try:
            return await asyncio.shield(asked.outcome)
        except asyncio.CancelledError:
            if not withdraws or self.session.running != self.turn_id or self.end_cause is not None:
                # The end of the turn closes the question, or keeps it open for the next process.
                raise
            if self.withdraw(asked):
                raise
        finally:
            self._waiters -= 1
        # The answer was accepted but has not arrived here: it is delivered after its write.
        outcome = await self.live.unless_gone(asyncio.shield(asked.outcome))
        asyncio.get_running_loop().call_soon(_cancel_again, _running_task(), requests)
        return outcome

    async def waiting_for(self, future: asyncio.Future[R]) -> R:
        """Wait for an action of a user; meanwhile the agent does not count as busy.

        Cancel: Safe; the future is not cancelled.
        """
        self._waiters += 1
        self.services.on_question()
        try:
            return await asyncio.shield(future)
        finally:
            self._waiters -= 1

    def withdraw(self, asked: PendingQuestion) -> bool:
        """Close a question without an answer; return whether it was open."""
        return self._close(asked, "withdrawn")

    def _expire(self, asked: PendingQuestion) -> None:
        self._close(asked, "expired")

    def _close(self, asked: PendingQuestion, kind: Literal["withdrawn", "expired"]) -> bool:
        """Close an open question without an answer; return whether it was open."""
        # An answer that was accepted first wins over the deadline and over the withdrawal.
        if self.session.running != self.turn_id or not self.session.questions.is_open(
            asked.question
        ):
            return False
        # Text that was written before the question closes is shown before that.
        self.flush()
        ended: Literal["expired", "cancelled"] = "expired" if kind == "expired" else "cancelled"
        cancel_question(self.session, asked.question, ended)
        self.changed()
        self._set_outcome(asked, QuestionOutcome(kind))
        return True

    def surface_closed(self, name: str, reason: CloseReason) -> None:
        """Notify the agent of a closed surface and drop pending changes of that surface."""
        self.pending.drop(name)
        self.surfaces.closed(name, reason)

    def resolve(self, action_id: str, outcome: QuestionOutcome) -> None:
        """Pass an outcome to the task that waits for the question."""
        asked = self._open_questions.get(action_id)
        if asked is not None:
            self._set_outcome(asked, outcome)

    def check_answer(self, action_id: str, value: Json) -> None:
        """Validate an answer before it is accepted.

        Raises:
            InvalidAnswer: The check of the question rejects it.
        """
        asked = self._open_questions.get(action_id)
        if asked is not None and asked.check is not None:
            asked.check(value)

    def _set_outcome(self, asked: PendingQuestion, outcome: QuestionOutcome) -> None:
        action_id = asked.question.action_id
        self._open_questions.pop(action_id, None)
        self.live.deadlines.pop(action_id, None)
        if asked.timer is not None:
            asked.timer.cancel()
        if not asked.outcome.done():
            asked.outcome.set_result(outcome)

    # -- the end of the turn ---------------------------------------------------------------------

    @property
    def is_left_open(self) -> bool:
        """Whether the turn and its questions stay open, for another process to continue."""
        return self.end_cause is not None and self.end_cause.leaves_open

    def stop(self, cause: EndCause) -> None:
        """Ask the agent to stop; the first cause counts."""
        self.end_cause = self.end_cause or cause
        if self.task is not None:
            self.task.stop(self.end_cause)

    def end(self) -> JsonObject | None:
        """Commit pending output, record the state, and return the turn's usage.

        The state is recorded also if the turn failed or was cancelled. A state that cannot be
        recorded is logged and dropped.

        Returns:
            The usage; `None` if no usage was recorded.
        """
        self.flush()
        try:
            self.record_state()
        # The turn ends with its own result or error; this one must not replace it.
        except Exception as error:  # noqa: BLE001 - see above
            logger.warning("turn.state of turn %s is not recorded: %s", self.turn_id, error)
        self.is_over = True
        self.surfaces.end()
        for asked in list(self._open_questions.values()):
            self._set_outcome(asked, QuestionOutcome("over"))
        return self.usage or None


def checked_commands(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Return copies of commands that users can type and renderers can show.

    Raises:
        TypeError, ValueError: See `Turn.set_commands`.
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
    """Return whether a text can be typed and has at most `most` characters."""
    return 0 < len(text) <= most and text.isprintable()


def _add_values(before: Json, more: Json) -> Json:
    if _is_number(before) and _is_number(more):
        return before + more
    return more


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _running_task() -> asyncio.Task[Any]:
    """Return the current task.

    A local variable in `outcome_of` would keep the task's traceback alive, and so the session.
    """
    task = asyncio.current_task()
    assert task is not None
    return task


def _cancel_again(task: asyncio.Task[Any], requests: int) -> None:
    """Repeat a cancel that `outcome_of` held back, unless the timeout that sent it is over.

    Args:
        task: Task that received the cancel.
        requests: Number of cancel requests of the task before it.
    """
    if task.cancelling() > requests:
        task.uncancel()
        task.cancel()
