"""The runner of agents: one task per turn, and each turn ends exactly once.

Theory of operation. `start` runs an agent as a task. The turn ends when the agent returns or
raises, when it was cancelled and does not stop in time (`_force_end`), or when the server stops
(`park`). Several of these may happen to one turn, so all of them call `_end`, which ends a turn
only once. The task of an agent may outlive its turn to clean up.
"""

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
from arp.live.tasks import ServerTask, start_task
from arp.live.turn_name import CURRENT_TURN, TurnName
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
from arp.session.effects import Effect, ResolveQuestion, RunTurn, StopTurn, SurfaceClosed
from arp.session.input.receive import SESSION_START
from arp.session.questions import Question
from arp.session.recovery import Interrupted
from arp.session.tracking.input_log import GivenAnswer
from arp.session.turn_end import close_turn, end_turn
from arp.surface.answer_type import AnswerType
from arp.turn.feedback import Feedback
from arp.turn.host import TurnHost
from arp.turn.question_outcome import DECLINED
from arp.turn.services import TurnServices
from arp.turn.tool import ToolProvider
from arp.turn.turn import Turn
from arp.turn.user_settings import UserSettings

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Turn], Coroutine[Any, Any, object]]
"""An agent: `async def agent(turn: Turn) -> None`. Its result is shown as output."""

CarryOut: TypeAlias = Callable[[LiveSession, Sequence[Effect]], None]


FAILED = "The agent failed. The server's log has the reason."
"""Error message of most exceptions of an agent; with `--debug`, renderers also get a traceback."""

DEAF_S = 1.0
"""Seconds that agents get to end when the server stops; then their turns are ended without them."""

MAX_DETAILS = 16_000
"""Most characters of a shown traceback, counted from its end. Deep tracebacks repeat themselves."""
MAX_KEPT_DETAILS, MAX_DEBUGGED = 20, 100
"""Tracebacks kept per session, and number of sessions; only with `--debug`."""


class AnswerHandler(Struct, frozen=True):
    """Handler of an answer to a question of an ended turn: `@app.on_answer`."""

    handler: Callable[[Turn, Any], Coroutine[Any, Any, object]]
    kind: AnswerType[Any] | None = None
    """Type that the answer is converted to; `None` passes it as `Turn.ask` returns it."""

    def begin(self, turn: Turn, answer: GivenAnswer) -> Coroutine[Any, Any, object]:
        """Return a coroutine that handles an answer.

        Raises:
            InvalidAnswer: It does not fit `kind`, which changed after the answer was accepted.
        """
        if answer.declined:
            return self.handler(turn, DECLINED)
        value = answer.value if self.kind is None else self.kind.read(answer.value)
        return self.handler(turn, value)


class DebugDetails(Struct, frozen=True, rename="camel"):
    """Failure in the code of an agent; only with `--debug`, and never in the ledger."""

    turn_id: str
    error: str
    details: str
    """Traceback, or advice on what to write instead."""


class HubApp(Struct, frozen=True):
    """Parts of an app that a hub uses."""

    handlers: Mapping[str, Handler]
    """Agents by name."""
    commands: Callable[[], tuple[Command, ...]] = tuple
    """Returns the slash commands; sent in each `hello`."""
    about: Callable[[], AppInfo] = AppInfo
    """Returns the titles of the app and its agents; sent in each `hello`."""
    tools: ToolProvider | None = None
    """Tools that agents call by `turn.use`."""
    debug: bool = False
    """Whether connected renderers receive tracebacks."""
    command_handlers: Mapping[str, Handler] = MappingProxyType({})
    """Handlers that replace the agent, by the command at the beginning of the turn's text."""
    answer_handlers: Mapping[str, AnswerHandler] = MappingProxyType({})
    """Handlers of answers to questions of ended turns, by name of the question."""
    app_state: Callable[[], object] = lambda: None
    """Returns the value that the app's lifespan yielded."""
    session_start: Handler | None = None
    """Handler that greets the user of a new session."""
    user_settings: UserSettings | None = None
    """Settings that users choose per session."""
    feedback_handlers: Sequence[Callable[[Feedback], Any]] = ()
    """Called with each rating of a turn."""
    origin_handlers: Mapping[str, Handler] = MappingProxyType({})
    """Handlers that replace the agent in turns that a program queued, by origin of the turn."""
    keepers: Callable[[], Sequence[SessionKeeper]] = tuple
    """Returns the keepers of session data outside of the ledger."""


class HubCalls(Struct, frozen=True):
    """Functions of the hub that a runner calls."""

    carry_out: CarryOut
    """Runs the effects of an ended turn."""
    fault: Callable[[LiveSession], None]
    """Removes a session from memory if its turn cannot be ended there."""
    transfer: Callable[[LiveSession, str, str, bool], Awaitable[None]]
    """Transfers a surface to another session."""


class Runner:
    """Starts, cancels and ends the turns of all sessions."""

    def __init__(
        self,
        app: HubApp,
        writer: Writer,
        files_of: Callable[[LiveSession], SessionFiles],
        settings: HubSettings,
        calls: HubCalls,
    ) -> None:
        """Create a runner without turns.

        Args:
            app: Agents and tools.
            writer: Signals when there is room for more text.
            files_of: Returns the files of a session.
            settings: Time limits of agents.
            calls: Functions of the hub.
        """
        self._progress = asyncio.Event()
        """Set when an agent ends or waits for a user, or when the server stops at once."""
        self.services = TurnServices(
            Spans(),
            writer.room,
            self._progress.set,
            calls.carry_out,
            SurfaceTimers(calls.carry_out).keep,
            calls.transfer,
            settings.serial_max_age_s,
            settings.record_model_messages,
            app.app_state,
            app.about,
        )
        self.tasks: dict[ServerTask[None], TurnHost] = {}
        """Running agents, including those that clean up after the end of their turn."""
        self._handling: set[asyncio.Task[None]] = set()
        """Running handlers that belong to no turn."""
        self._files_of = files_of
        self._turns: dict[LiveSession, TurnHost] = {}
        """Newest turn of each session that has a running agent."""
        self._app = app
        self._settings = settings
        self._carry_out = calls.carry_out
        self._fault = calls.fault
        self._watch = LoopWatch(settings.blocked_loop_s, lambda: bool(self.tasks))
        self._parking = False
        self._stops_at_once = False
        self._debug: dict[str, deque[DebugDetails]] = {}
        """Failures by session id; only with `--debug`."""

    def start(self, live: LiveSession, turn_id: str) -> None:
        """Run the agent of a turn, or the handler that replaces it."""
        if self._parking:
            return
        host = TurnHost(live, turn_id, self._files_of(live), self.services)
        owner = TurnName(live.session.workflow, live.id, turn_id)
        if self._app.debug:
            loop = asyncio.get_running_loop()

            def show(what: str, details: str) -> None:
                loop.call_soon_threadsafe(self._show_details, live, turn_id, what, details)

            owner.show_details = show
        task = host.task = start_task(self._run(host, owner), f"arp-{turn_id}", owner)
        self._turns[live] = self.tasks[task] = host
        self._watch.wake()
        task.add_done_callback(self._task_done)

    def start_handler(self, handling: Coroutine[Any, Any, None]) -> None:
        """Start a task for a handler of the app that belongs to no turn."""
        task = asyncio.get_running_loop().create_task(handling)
        # The loop holds only a weak reference.
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    def debug_details(self, session_id: str) -> list[DebugDetails]:
        """Return failures in the code of a session's agents; only with `--debug`."""
        return list(self._debug.get(session_id, ()))

    def forget_debug(self, session_id: str) -> None:
        """Drop the failures of a deleted session."""
        self._debug.pop(session_id, None)

    def _show_details(self, live: LiveSession, turn_id: str, what: str, details: str) -> None:
        """Send details to connected renderers, and keep them for renderers that connect later."""
        payload = show_details(live, turn_id, what, details)
        kept = self._debug.setdefault(live.id, deque(maxlen=MAX_KEPT_DETAILS))
        kept.append(DebugDetails(turn_id, payload.error, payload.debug or ""))
        while len(self._debug) > MAX_DEBUGGED:
            del self._debug[next(iter(self._debug))]

    def _task_done(self, task: asyncio.Task[None]) -> None:
        assert isinstance(task, ServerTask)
        host = self.tasks.pop(task)
        if self._turns.get(host.live) is host:
            del self._turns[host.live]
        self._progress.set()
        # Cancelled before its first step, so `_run` could not end the turn.
        if task.cancelled():
            self._end_stopped(host)

    def run_effect(
        self, live: LiveSession, effect: RunTurn | StopTurn | ResolveQuestion | SurfaceClosed
    ) -> None:
        """Run an effect; what caused it is durable now."""
        match effect:
            case RunTurn(turn_id):
                self.start(live, turn_id)
            case StopTurn(turn_id):
                self.cancel(live, turn_id)
            case ResolveQuestion():
                self.resolve(live, effect)
            case SurfaceClosed():
                self.surface_closed(live, effect)

    def resolve(self, live: LiveSession, resolved: ResolveQuestion) -> None:
        """Pass the outcome of a question to the agent that waits for it."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            host.resolve(resolved.action_id, resolved.outcome)

    def surface_closed(self, live: LiveSession, closed: SurfaceClosed) -> None:
        """Notify the running agent that a surface was closed."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            host.surface_closed(closed.surface, closed.reason)

    def surface_input(self, live: LiveSession, message: Input) -> None:
        """Notify the running agent that a user focused or resized a surface."""
        host = self._turns.get(live)
        if host is not None and not host.is_over:
            host.surfaces.received(message.surface, message.input_type, message.data)

    def check_answer(self, live: LiveSession, question: Question, value: Json) -> None:
        """Validate an answer that fits its component, with the check of the agent or handler.

        Raises:
            InvalidAnswer: It is rejected, and the question stays open.
        """
        host = self._turns.get(live)
        if host is not None and not host.is_over and host.turn_id == question.turn_id:
            host.check_answer(question.action_id, value)
            return
        handler = self._app.answer_handlers.get(question.name)
        if handler is not None and handler.kind is not None:
            handler.kind.check(value)

    def cancel(self, live: LiveSession, turn_id: str) -> None:
        """Cancel a turn: its agent gets `CancelledError` once, and some time to clean up."""
        host = self._turns.get(live)
        if host is None or host.is_over or host.turn_id != turn_id:
            if live.session.running == turn_id and live.session.status_of(turn_id) is not None:
                # No agent runs that could end the turn, so it would never end.
                self._end(live, turn_id, "cancelled")
        elif host.end_cause is None:
            host.stop(EndCause.CANCELLED)
            grace_s = self._settings.cancel_grace_s
            asyncio.get_running_loop().call_later(grace_s, self._force_end, host)

    def _force_end(self, host: TurnHost) -> None:
        """End a cancelled turn that is still running after the grace period of its agent."""
        if host.session.running == host.turn_id:
            logger.warning(
                "the agent of turn %s did not stop after its cancel; the turn ends without it",
                host.turn_id,
            )
            self._end(host.live, host.turn_id, "cancelled")

    async def _run(self, host: TurnHost, owner: TurnName) -> None:
        """Run the agent of a turn and end the turn according to what the agent did."""
        CURRENT_TURN.set(owner)
        task, workflow = asyncio.current_task(), host.session.workflow
        status: Literal["completed", "failed", "cancelled"] = "failed"
        failed: AgentFailed | None = None
        try:
            with self.services.spans.of_turn(host.session, host.turn_id):
                await self._run_handler(workflow, host)
            status = "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            if host.end_cause is None:
                logger.warning("%s ended by a CancelledError without a cancel of its turn", owner)
        except AgentFailed as error:
            # This message is meant for users, so it is shown as it is.
            if self._app.debug and error.__cause__ is not None:
                owner.show_details(error.message, traceback_of(error.__cause__))
            # Frames of the traceback and of its causes would keep the session in memory.
            failed = error.with_traceback(None)
            failed.__cause__ = failed.__context__ = None
            logger.info("agent %r ended turn %s with an error for users", workflow, host.turn_id)
        except BaseException as error:
            # Python closes the coroutines of a closed loop. No agent raised this, and the state of
            # the hub must not be changed any more.
            if isinstance(error, GeneratorExit) and _running_task() is not task:
                raise
            # Everything else that an author's code raises, including KeyboardInterrupt and
            # SystemExit, ends its turn and nothing more.
            logger.exception("agent %r failed in turn %s", workflow, host.turn_id)
            failed = AgentFailed(_failure_of(error))
            if self._app.debug:
                owner.show_details(failed.message, traceback_of(error))
        # An agent may catch its cancel and return or raise something else. The cancel counts.
        if status == "cancelled" or (task is not None and task.cancelling()):
            self._end_stopped(host)
        else:
            self._end(host.live, host.turn_id, status, failed)

    async def _run_handler(self, workflow: str, host: TurnHost) -> None:
        """Call the handler of a turn, show what it returns and record the rest of its output."""
        handler = self._app.handlers.get(workflow)
        if handler is None:
            raise LookupError(f"the app has no agent {workflow!r} (any more)")
        turn = Turn(host, self._app.tools, self._app.user_settings)
        handler = self._handler_of(handler, turn)
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

    def _handler_of(self, handler: Handler, turn: Turn) -> Handler:
        """Return the handler of a turn: usually its agent, or the handler that replaces it."""
        app = self._app
        if app.session_start is not None and turn.origin == SESSION_START:
            handler = app.session_start
        if app.command_handlers:
            handler = app.command_handlers.get(turn.command or "", handler)
        if app.origin_handlers:
            handler = app.origin_handlers.get(turn.origin or "", handler)
        return handler

    def _end_stopped(self, host: TurnHost) -> None:
        """End a turn that was asked to stop, whatever its agent returned or raised."""
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
        """End a turn and run the effects; do nothing if its session left memory."""
        if live.gone.done():
            return
        host, usage = self._turns.get(live), None
        try:
            # `_force_end` may have ended this turn; its agent may return long after that.
            if host is not None and host.turn_id == turn_id and not host.is_over:
                usage = host.end()
            effects: list[Effect] = []
            # A stopping server starts no further turn; the queue is in the ledger.
            if self._parking:
                close_turn(live.session, turn_id, status, error, reason, usage)
            else:
                effects = end_turn(live.session, turn_id, status, error, reason, usage)
        except Exception:
            # A turn that cannot end would block all queued turns. The session is loaded from the
            # ledger again, which ends the turn.
            logger.exception("turn %s of session %s cannot be ended", turn_id, live.id)
            self._fault(live)
            return
        self._carry_out(live, effects)

    async def park(self) -> None:
        """Give turns time to finish; interrupt those that wait for a user or take longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.stop_grace_s):
                while not self._stops_at_once and any(
                    not one.is_waiting for one in self.tasks.values()
                ):
                    self._progress.clear()
                    await self._progress.wait()
        rest = dict(self.tasks)
        self.interrupt()
        if rest:
            _, deaf = await asyncio.wait(rest, timeout=DEAF_S)
            # An agent that ignores its cancel must not keep its turn open in the ledger.
            for task in deaf:
                if self._turns.get(rest[task].live) is rest[task]:
                    self._end_stopped(rest[task])

    async def ended(self, live: LiveSession, timeout_s: float) -> None:
        """Wait until no agent runs for a session that left memory.

        Args:
            live: The session.
            timeout_s: Longest time to wait, in seconds.
        """
        rest = [task for task, host in self.tasks.items() if host.live is live]
        if rest:
            await asyncio.wait(rest, timeout=timeout_s)

    def interrupt(self) -> None:
        """Interrupt all turns and start no more, because the server stops."""
        self._parking = self._stops_at_once = True
        for host in list(self.tasks.values()):
            host.stop(EndCause.SERVER_STOPS)

    def hurry(self) -> None:
        """Stop waiting for turns, because the server has to stop at once."""
        self._stops_at_once = True
        self._progress.set()

    def close(self) -> None:
        """Stop watching the loop, after all agents have ended."""
        self._watch.close()

    def forget(self, live: LiveSession, cause: EndCause = EndCause.SESSION_LEFT) -> None:
        """Stop the agent of a session that left memory."""
        live.session.turns.leave()
        host = self._turns.get(live)
        if host is not None:
            host.stop(cause)


async def _show_returned(turn: Turn, agent: str, returned: object) -> None:
    """Show the value that an agent returned.

    Raises:
        TypeError: It cannot be shown.
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
    # No loop is running.
    except RuntimeError:
        return None


def _failure_of(error: BaseException) -> str:
    """Return the error message of an agent's exception for renderers.

    The text of an exception may hold secrets. An exceeded limit only names sizes and ids, and its
    text helps to stay below the limit.
    """
    if isinstance(error, ResourceLimit):
        return f"The agent failed: {error.message}. The server's log has more."
    return FAILED


def traceback_of(error: BaseException) -> str:
    """Return an exception's traceback from the author's first line on, with the exception last."""
    step = first = error.__traceback__
    while step is not None and not is_authors(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    lines = traceback.format_exception(type(error), error, step or first)
    return "".join(lines).rstrip()[-MAX_DETAILS:]


def show_details(live: LiveSession, turn_id: str, what: str, details: str) -> ErrorPayload:
    """Send an `error` with details to the connected renderers of a session; return its payload.

    Called only under `arp serve --debug`, where the author looks at the screen. The message is not
    recorded as a fact. It is sent after everything that the turn has shown so far. If the turn ends
    with an error of the same text, renderers show the details with that error.
    """
    clean = live.session.redactor.clean
    payload = ErrorPayload(
        str(clean(what)[0]), ErrorCode.AGENT_FAILED, debug=str(clean(details)[0])
    )
    message = ErrorMessage(payload=payload, session_id=live.id, turn_id=turn_id)

    def send() -> None:
        for viewer in live.viewers.values():
            viewer.tell(message)

    live.after_write(send)
    return payload
