"""Runs agents: one task a turn, and whatever happens in it, the turn ends exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from arp.hub.removal import SessionKeeper
from arp.hub.surface_timers import SurfaceTimers
from arp.live.files import SessionFiles
from arp.live.live_session import LiveSession
from arp.live.loop_watch import LoopWatch, is_authors
from arp.live.settings import HubSettings
from arp.live.spans import Spans
from arp.live.tasks import CURRENT_TURN, ServerTask, TurnName, start_task
from arp.live.writer import Writer
from arp.protocol.capabilities import AppInfo
from arp.protocol.errors import (
    AgentFailed,
    ErrorCode,
    ErrorPayload,
    InvalidComponent,
    ResourceLimit,
)
from arp.protocol.json_value import Json
from arp.protocol.messages import Command, ErrorMessage, Input
from arp.record.end_cause import EndCause
from arp.session.effects import Effect, ResolveQuestion, SurfaceClosed
from arp.session.input_log import GivenAnswer
from arp.session.inputs import SESSION_START
from arp.session.recovery import Interrupted
from arp.session.session import Question
from arp.surface.answer_type import AnswerType
from arp.turn.feedback import Feedback
from arp.turn.host import TurnHost
from arp.turn.question_outcome import DECLINED, QuestionOutcome
from arp.turn.services import TurnServices
from arp.turn.tool import ToolProvider
from arp.turn.turn import Turn
from arp.turn.user_settings import UserSettings

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Turn], Coroutine[Any, Any, object]]
"""An agent: `async def agent(turn: Turn) -> None`. What it returns is said or shown."""

CarryOut: TypeAlias = Callable[[LiveSession, Sequence[Effect]], None]


FAILED = "The agent failed. The server's log has the reason."
"""What renderers get of most exceptions of an agent, unless they see tracebacks too."""

DEAF_S = 1.0
"""How long an agent has to end once the server stops; then its turn is closed over its head."""

MAX_DETAILS = 16_000
"""Characters of a traceback that are shown, the newest; deep ones repeat themselves."""
MAX_KEPT_DETAILS, MAX_DEBUGGED = 20, 100
"""Tracebacks of one session that are kept, and sessions; under `--debug` only."""


class AnswerHandler(Struct, frozen=True):
    """What takes the answer to a question of a turn that is gone: `@app.on_answer`."""

    handler: Callable[[Turn, Any], Coroutine[Any, Any, object]]
    kind: AnswerType[Any] | None = None
    """What the answer is made into; `None`: it is given as `Turn.ask` returns it."""

    def begin(self, turn: Turn, answer: GivenAnswer) -> Coroutine[Any, Any, object]:
        """Begin to take an answer.

        Raises:
            InvalidAnswer: It does not fit `kind`, which has changed since it was accepted.
        """
        if answer.declined:
            return self.handler(turn, DECLINED)
        value = answer.value if self.kind is None else self.kind.read(answer.value)
        return self.handler(turn, value)


class DebugDetails(Struct, frozen=True, rename="camel"):
    """What went wrong in the code of an agent; only under `--debug`, and never in the ledger."""

    turn_id: str
    error: str
    details: str
    """The traceback, or what to write instead."""


class HubApp(Struct, frozen=True):
    """What an app brings to a hub."""

    handlers: Mapping[str, Handler]
    """The agents by name."""
    commands: Callable[[], tuple[Command, ...]] = tuple
    """What a user may give by a slash; sent in each `hello`."""
    about: Callable[[], AppInfo] = AppInfo
    """What the app calls itself, and its agents; sent in each `hello`."""
    tools: ToolProvider | None = None
    """What agents call by `turn.use`."""
    debug: bool = False
    """Whether those who are connected see tracebacks."""
    command_handlers: Mapping[str, Handler] = MappingProxyType({})
    """What runs in the place of an agent, by the command that the turn's text begins with."""
    answer_handlers: Mapping[str, AnswerHandler] = MappingProxyType({})
    """What takes the answers to questions of turns that are gone, by the names of the questions."""
    app_state: Callable[[], object] = lambda: None
    """Returns what the app's lifespan yielded."""
    session_start: Handler | None = None
    """What runs when a renderer has begun a session."""
    user_settings: UserSettings | None = None
    """What users set for a session."""
    feedback_handlers: Sequence[Callable[[Feedback], Any]] = ()
    """Called with what users think of a turn."""
    origin_handlers: Mapping[str, Handler] = MappingProxyType({})
    """What runs in place of an agent in turns that a program began, by what it calls itself."""
    keepers: Callable[[], Sequence[SessionKeeper]] = tuple
    """Returns all that keep something of sessions outside of the ledger."""


class HubCalls(Struct, frozen=True):
    """What a runner asks of its hub."""

    carry_out: CarryOut
    """Does what a session asks for when a turn has ended."""
    fault: Callable[[LiveSession], None]
    """Lets a session go whose turn cannot be ended in memory."""
    transfer: Callable[[LiveSession, str, str, bool], Awaitable[None]]
    """Gives a surface to another session."""


class Runner:
    """Starts, cancels and ends the turns of every session."""

    def __init__(
        self,
        app: HubApp,
        writer: Writer,
        files_of: Callable[[LiveSession], SessionFiles],
        settings: HubSettings,
        calls: HubCalls,
    ) -> None:
        """See the class.

        Args:
            app: Its agents and tools.
            writer: Tells when there is room for more text.
            files_of: Gives the files of a session.
            settings: How long agents may go on.
            calls: What it asks of the hub.
        """
        self._calmed = asyncio.Event()
        """Set when an agent has ended or waits for an answer, or when nobody is waited for."""
        self.services = TurnServices(
            Spans(),
            writer.room,
            self._calmed.set,
            calls.carry_out,
            SurfaceTimers(calls.carry_out).keep,
            calls.transfer,
            settings.serial_max_age_s,
            settings.record_model_messages,
            app.app_state,
            app.about,
        )
        self.tasks: dict[ServerTask[None], TurnHost] = {}
        """Agents that work, also those that clean up behind the end of their turn."""
        self._files_of = files_of
        self._turns: dict[LiveSession, TurnHost] = {}
        """The newest turn of each session of which an agent works."""
        self._app = app
        self._settings = settings
        self._carry_out = calls.carry_out
        self._fault = calls.fault
        self._watch = LoopWatch(settings.blocked_loop_s, lambda: bool(self.tasks))
        self._parking = False
        self._hurries = False
        self._debug: dict[str, deque[DebugDetails]] = {}
        """What went wrong, by session; under `--debug` only."""

    def start(self, live: LiveSession, turn_id: str) -> None:
        """Run the agent of the session's workflow for a turn."""
        if self._parking:
            return
        host = TurnHost(live, turn_id, self._files_of(live), self.services)
        owner = TurnName(live.session.head.workflow, live.id, turn_id)
        if self._app.debug:
            loop = asyncio.get_running_loop()

            def show(what: str, details: str) -> None:
                loop.call_soon_threadsafe(self._show_details, live, turn_id, what, details)

            owner.show_details = show
        task = host.task = start_task(self._run(host, owner), f"arp-{turn_id}", owner)
        self._turns[live] = self.tasks[task] = host
        self._watch.wake()
        task.add_done_callback(self._done)

    def debug_details(self, session_id: str) -> list[DebugDetails]:
        """Return what went wrong in the code of a session's agents; only under `--debug`."""
        return list(self._debug.get(session_id, ()))

    def forget_debug(self, session_id: str) -> None:
        """Forget what went wrong in a session that is deleted."""
        self._debug.pop(session_id, None)

    def _show_details(self, live: LiveSession, turn_id: str, what: str, details: str) -> None:
        """Show details to whoever is connected, and keep them for those who look later."""
        payload = show_details(live, turn_id, what, details)
        kept = self._debug.setdefault(live.id, deque(maxlen=MAX_KEPT_DETAILS))
        kept.append(DebugDetails(turn_id, payload.error, payload.debug or ""))
        while len(self._debug) > MAX_DEBUGGED:
            del self._debug[next(iter(self._debug))]

    def _done(self, task: asyncio.Task[None]) -> None:
        assert isinstance(task, ServerTask)
        host = self.tasks.pop(task)
        if self._turns.get(host.live) is host:
            del self._turns[host.live]
        self._calmed.set()
        if task.cancelled():  # before its first step, so that no code of ours ran in it
            self._stopped(host)

    def resolve(self, live: LiveSession, resolved: ResolveQuestion) -> None:
        """Hand an answer to the agent that waits for it."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            kind: Literal["declined", "answered", "withdrawn"] = "answered"
            if resolved.is_declined or resolved.is_withdrawn:
                kind = "declined" if resolved.is_declined else "withdrawn"
            host.resolve(resolved.action_id, QuestionOutcome(kind, resolved.value))

    def surface_closed(self, live: LiveSession, closed: SurfaceClosed) -> None:
        """Tell the agent that works in a session that a surface was closed."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            host.surface_closed(closed.surface, closed.reason)

    def surface_input(self, live: LiveSession, message: Input) -> None:
        """Tell the agent that works in a session that a user focused or resized a surface."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            host.surfaces.received(message.surface, message.input_type, message.data)

    def check_answer(self, live: LiveSession, question: Question, value: Json) -> None:
        """Judge an answer that fits its component: whoever asked may want more of it.

        Raises:
            InvalidAnswer: It is refused, and the question stays open.
        """
        host = self._turns.get(live)
        if host is not None and not host.is_over and host.turn_id == question.turn_id:
            host.check_answer(question.action_id, value)
            return
        handler = self._app.answer_handlers.get(question.name)
        if handler is not None and handler.kind is not None:
            handler.kind.check(value)

    def cancel(self, live: LiveSession, turn_id: str) -> None:
        """Stop a turn: its agent gets `CancelledError` once, and may clean up for a while."""
        host = self._turns.get(live)
        if host is None or host.is_over or host.turn_id != turn_id:
            if live.session.running == turn_id and live.session.status_of(turn_id) is not None:
                # Nobody works in it who could end it.
                self._end(live, turn_id, "cancelled")
        elif host.end_cause is None:
            host.stop(EndCause.CANCELLED)
            grace_s = self._settings.cancel_grace_s
            asyncio.get_running_loop().call_later(grace_s, self._force, host)

    def _force(self, host: TurnHost) -> None:
        if host.session.running == host.turn_id:
            logger.warning(
                "turn %s goes on after its cancel; it is closed over its head", host.turn_id
            )
            self._end(host.live, host.turn_id, "cancelled")

    async def _run(self, host: TurnHost, owner: TurnName) -> None:
        CURRENT_TURN.set(owner)
        task, workflow = asyncio.current_task(), host.session.head.workflow
        status: Literal["completed", "failed", "cancelled"] = "failed"
        failed: AgentFailed | None = None
        try:
            with self.services.spans.of_turn(host.session, host.turn_id):
                await self._work(workflow, host)
            status = "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            if host.end_cause is None:
                logger.warning("%s ended by a CancelledError that nobody asked for", owner)
        except AgentFailed as error:
            # The agent itself says what people are to know.
            if self._app.debug and error.__cause__ is not None:
                owner.show_details(error.message, traceback_of(error.__cause__))
            failed = error.with_traceback(None)  # whose frames would keep the session
            failed.__cause__ = failed.__context__ = None
            logger.info("agent %r gave up turn %s", workflow, host.turn_id)
        except BaseException as error:
            if isinstance(error, GeneratorExit) and _running_task() is not task:
                raise  # no agent raised it: the loop is gone, and Python closes what was left in it
            # Whatever an author's code raises, KeyboardInterrupt and SystemExit included, ends its
            # turn and nothing else.
            logger.exception("agent %r failed in turn %s", workflow, host.turn_id)
            failed = AgentFailed(_failure_of(error))
            if self._app.debug:
                owner.show_details(failed.message, traceback_of(error))
        if status == "cancelled" or (task is not None and task.cancelling()):
            self._stopped(host)
        else:
            self._end(host.live, host.turn_id, status, failed)

    async def _work(self, workflow: str, host: TurnHost) -> None:
        handler = self._app.handlers.get(workflow)
        if handler is None:
            raise LookupError(f"the app has no agent {workflow!r} (any more)")
        turn = Turn(host, self._app.tools, self._app.user_settings)
        handler = self._in_place_of(handler, turn)
        answer = named = None
        if self._app.answer_handlers:
            answer = host.session.input_log.answer_of(host.turn_id)
            named = self._app.answer_handlers.get(answer.name) if answer is not None else None
        if answer is not None and named is not None:
            working = named.begin(turn, answer)
        else:
            working = handler(turn)
        if not inspect.isawaitable(working):
            raise TypeError(f"agent {workflow!r} is no coroutine; write: async def …(turn)")
        await _show_returned(turn, workflow, await working)
        await host.surfaces.finish()
        host.finish()

    def _in_place_of(self, handler: Handler, turn: Turn) -> Handler:
        """Return what runs in a turn instead of its agent; mostly the agent itself."""
        app = self._app
        if app.session_start is not None and turn.origin == SESSION_START:
            handler = app.session_start
        if app.command_handlers:
            handler = app.command_handlers.get(turn.command or "", handler)
        return app.origin_handlers.get(turn.origin or "", handler)

    def _stopped(self, host: TurnHost) -> None:
        """End a turn that was asked to stop, whatever its agent made of it."""
        if host.end_cause is EndCause.SERVER_STOPS:
            error = Interrupted("the server stopped while this turn ran; ask again to go on")
            self._end(host.live, host.turn_id, "failed", error, "interrupted")
        else:
            self._end(host.live, host.turn_id, "cancelled")

    def _end(
        self,
        live: LiveSession,
        turn_id: str,
        status: Literal["completed", "failed", "cancelled"],
        error: BaseException | None = None,
        reason: str | None = None,
    ) -> None:
        if live.gone.done():
            return
        host, usage = self._turns.get(live), None
        try:
            if host is not None and host.turn_id == turn_id and not host.is_over:
                usage = host.end()
            effects = live.session.end_turn(
                turn_id, status, error, reason, usage, goes_on=not self._parking
            )
        except Exception:
            # A turn that does not end keeps all behind it waiting: the ledger's session ends it.
            logger.exception("turn %s of session %s cannot be ended", turn_id, live.id)
            self._fault(live)
            return
        self._carry_out(live, effects)

    async def park(self) -> None:
        """Let turns finish for a while; those that wait or take longer are interrupted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_grace_s):
                while not self._hurries and any(not one.is_waiting for one in self.tasks.values()):
                    self._calmed.clear()
                    await self._calmed.wait()
        rest = dict(self.tasks)
        self.interrupt()
        if rest:
            _, deaf = await asyncio.wait(rest, timeout=DEAF_S)
            for task in deaf:
                if self._turns.get(rest[task].live) is rest[task]:
                    self._stopped(rest[task])

    async def ended(self, live: LiveSession, timeout_s: float) -> None:
        """Wait until no agent works any more for a session that left the memory.

        Args:
            live: The session.
            timeout_s: After which they are not waited for.
        """
        rest = [task for task, host in self.tasks.items() if host.live is live]
        if rest:
            await asyncio.wait(rest, timeout=timeout_s)

    def interrupt(self) -> None:
        """Interrupt all turns, and begin no other: the server stops."""
        self._parking = self._hurries = True
        for host in list(self.tasks.values()):
            host.stop(EndCause.SERVER_STOPS)

    def hurry(self) -> None:
        """Wait for no turn any more: the server is to stop at once."""
        self._hurries = True
        self._calmed.set()

    def close(self) -> None:
        """End what watches the agents; they have ended."""
        self._watch.close()

    def forget(self, live: LiveSession) -> None:
        """Stop the agent of a session that left the memory."""
        live.session.leave()
        host = self._turns.get(live)
        if host is not None:
            host.stop(EndCause.SESSION_LEFT)


async def _show_returned(turn: Turn, agent: str, returned: object) -> None:
    """Say or show what an agent returned.

    Raises:
        TypeError: It can be neither said nor shown.
    """
    if returned is None:
        return
    if isinstance(returned, str):
        await turn.say(returned)
        return
    try:
        turn.show(returned)
    except InvalidComponent as error:
        what = type(returned).__name__
        raise TypeError(
            f"agent {agent!r} returned {what}; return nothing, a text, or what turn.show takes: "
            f"{error.message}"
        ) from None


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


def _failure_of(error: BaseException) -> str:
    """Return what renderers get of an exception of an agent.

    An exception's text may hold secrets, but a limit of ours only names sizes and ids: whoever
    asked for too much can ask for less.
    """
    if isinstance(error, ResourceLimit):
        return f"The agent failed: {error.message}. The server's log has more."
    return FAILED


def traceback_of(error: BaseException) -> str:
    """Return an exception's traceback from the author's first line on; the exception is last."""
    place = first = error.__traceback__
    while place is not None and not is_authors(place.tb_frame.f_code.co_filename):
        place = place.tb_next
    lines = traceback.format_exception(type(error), error, place or first)
    return "".join(lines).rstrip()[-MAX_DETAILS:]


def show_details(live: LiveSession, turn_id: str, what: str, details: str) -> ErrorPayload:
    """Send an `error` with details to whoever is connected to a session now; return its payload.

    Only under `arp serve --debug`, for the author's own screen: it is no fact. It goes out behind
    what the turn has shown until now. Where `what` is the text of an error that the turn has too,
    renderers show the details with that one.
    """
    clean = live.session.log.redactor.clean
    payload = ErrorPayload(
        str(clean(what)[0]), ErrorCode.AGENT_FAILED, debug=str(clean(details)[0])
    )
    message = ErrorMessage(payload=payload, session_id=live.id, turn_id=turn_id)

    def tell() -> None:
        for viewer in live.viewers.values():
            viewer.tell(message)

    live.after_write(tell)
    return payload
