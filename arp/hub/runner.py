"""Runs agents: one task a turn, and whatever happens in it, the turn ends exactly once."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeAlias

from arp.access.principal import User
from arp.hub.delivery import Viewer
from arp.hub.details import show_details, traceback_of
from arp.hub.live import LiveSession
from arp.hub.loop_watch import LoopWatch
from arp.hub.saved import save
from arp.hub.settings import HubSettings
from arp.hub.spans import Spans
from arp.hub.tasks import CURRENT_TURN, ServerTask, TurnName, start_task
from arp.hub.turn import Turn
from arp.hub.turn_host import MAX_UNWRITTEN
from arp.hub.writer import Writer
from arp.protocol.errors import AgentFailed
from arp.protocol.messages import FileRef
from arp.record.outputs import OutputStore
from arp.session.effects import Effect
from arp.session.recovery import Interrupted
from arp.store.blobs import Blobs, Files

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Turn], Coroutine[Any, Any, None]]
"""An agent: `async def agent(turn: Turn) -> None`."""

CarryOut: TypeAlias = Callable[[LiveSession, Sequence[Effect]], None]


FAILED = "The agent failed. The server's log has the reason."
"""All that renderers are told of an exception, unless they see tracebacks too."""

DEAF_S = 1.0
"""How long an agent has to end once the server stops; then its turn is closed over its head."""


class Runner:
    """Starts, cancels and ends the turns of every session."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        writer: Writer,
        blobs: Blobs,
        settings: HubSettings,
        carry_out: CarryOut,
    ) -> None:
        self.writer = writer
        self.spans = Spans()
        """In which the code of agents runs."""
        self.tasks: dict[ServerTask[None], LiveSession] = {}
        self._handlers = handlers
        self.blobs = blobs
        self._settings = settings
        self._carry_out = carry_out
        self.fault: Callable[[LiveSession], None] = lambda _live: None
        """Lets a session go whose turn cannot be ended in memory; set by the hub."""
        self._cancelled: set[asyncio.Task[None]] = set()
        """Agents that were asked to stop. One may cancel its own task too, as a timeout does, so
        that a task was cancelled does not say it."""
        self._caches: dict[str, dict[str, Any]] = {}
        self._watch = LoopWatch(settings.blocked_loop_s, lambda: bool(self.tasks))
        self._parking = False
        self.debug = False
        """Whether those who are connected see tracebacks."""
        self.hurry = False
        """Set when the server is to stop without waiting for turns."""

    def start(self, live: LiveSession, turn_id: str) -> None:
        """Run the agent of the session's workflow for a turn."""
        if self._parking:
            return
        turn = live.turn = Turn(_Host(live, turn_id, self), turn_id)
        head = live.session.head
        owner = TurnName(head.workflow, head.session_id, turn_id)
        if self.debug:
            loop = asyncio.get_running_loop()

            def show(what: str, details: str) -> None:
                loop.call_soon_threadsafe(show_details, live, turn_id, what, details)

            owner.show_details = show
        task = start_task(self._run(live, turn, owner), f"arp-{turn_id}", owner)
        live.task = task
        self.tasks[task] = live
        self._watch.wake()
        task.add_done_callback(lambda _: self._done(task, live, turn_id))

    def _done(self, task: ServerTask[None], live: LiveSession, turn_id: str) -> None:
        del self.tasks[task]
        self._cancelled.discard(task)
        if task.cancelled():  # before its first step, so that no code of ours ran in it
            self._stopped(live, turn_id)

    def cancel(self, live: LiveSession, turn_id: str) -> None:
        """Stop a turn: its agent gets `CancelledError` once, and may clean up for a while."""
        turn, task = live.turn, live.task
        if turn is None or turn.id != turn_id or task is None or task.done():
            is_running = live.session.running == turn_id
            if is_running and live.session.status_of(turn_id) is not None:
                # Nobody works in it who could end it.
                self._end(live, turn_id, "cancelled", None, None)
            return
        if task in self._cancelled:
            return
        self._stop(task)
        asyncio.get_running_loop().call_later(
            self._settings.cancel_grace_s, self._force, live, turn_id
        )

    def _stop(self, task: ServerTask[None]) -> None:
        self._cancelled.add(task)
        task.stop()

    def is_stopping(self, live: LiveSession) -> bool:
        """Return whether the session's turn was stopped, or the server stops."""
        return self._parking or live.task in self._cancelled

    def _force(self, live: LiveSession, turn_id: str) -> None:
        if live.session.running == turn_id:
            logger.warning("turn %s goes on after its cancel; it is closed over its head", turn_id)
            self._end(live, turn_id, "cancelled", None, None)

    async def _run(self, live: LiveSession, turn: Turn, owner: TurnName) -> None:
        CURRENT_TURN.set(owner)
        task = asyncio.current_task()
        status: Any = "failed"
        failed = AgentFailed(FAILED)
        try:
            with self.spans.of_turn(live.session, turn.id):
                await self._work(live.session.head.workflow, turn)
            status = "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            if not self.is_stopping(live):
                logger.warning("%s ended by a CancelledError that nobody asked for", owner)
        except AgentFailed as error:
            # The agent itself says what people are to know.
            failed = error.with_traceback(None)  # whose frames would keep the session
            logger.info("agent %r gave up turn %s", live.session.head.workflow, turn.id)
        except BaseException as error:
            if isinstance(error, GeneratorExit) and _running_task() is not task:
                raise  # no agent raised it: the loop is gone, and Python closes what was left in it
            # Whatever an author's code raises, KeyboardInterrupt and SystemExit included, ends its
            # turn and nothing else.
            logger.exception("agent %r failed in turn %s", live.session.head.workflow, turn.id)
            if self.debug:
                owner.show_details(FAILED, traceback_of(error))
        if status == "cancelled" or (task is not None and task.cancelling()):
            self._stopped(live, turn.id)
        else:
            self._end(live, turn.id, status, failed if status == "failed" else None, None)

    async def _work(self, workflow: str, turn: Turn) -> None:
        handler = self._handlers.get(workflow)
        if handler is None:
            raise LookupError(f"the app has no agent {workflow!r} (any more)")
        working = handler(turn)
        if not inspect.isawaitable(working):
            raise TypeError(f"agent {workflow!r} is no coroutine; write: async def …(turn)")
        await working
        turn.finish()

    def _stopped(self, live: LiveSession, turn_id: str) -> None:
        """End a turn that was asked to stop, whatever its agent made of it."""
        if self._parking:
            error = Interrupted("the server stopped while this turn ran; ask again to go on")
            self._end(live, turn_id, "failed", error, "interrupted")
        else:
            self._end(live, turn_id, "cancelled", None, None)

    def _end(
        self,
        live: LiveSession,
        turn_id: str,
        status: Any,
        error: BaseException | None,
        reason: str | None,
    ) -> None:
        if live.gone.done():
            return
        usage = None
        try:
            if live.turn is not None and live.turn.id == turn_id:
                live.turn.flush()
                self._record_state(live.turn)
                usage = live.turn.used
                live.turn = None
            effects = live.session.end_turn(
                turn_id, status, error, reason, usage, goes_on=not self._parking
            )
        except Exception:
            # A turn that does not end keeps all behind it waiting: the ledger's session ends it.
            logger.exception("turn %s of session %s cannot be ended", turn_id, live.id)
            self.fault(live)
            return
        self._carry_out(live, effects)

    def _record_state(self, turn: Turn) -> None:
        """Record the state of a turn that fails or is cancelled, unless it cannot be recorded."""
        try:
            turn.record_state()
        except Exception as error:  # noqa: BLE001 - the turn ends by something else already
            logger.warning("turn.state of turn %s is not recorded: %s", turn.id, error)

    async def park(self) -> None:
        """Let turns finish for a while; those that wait or take longer are interrupted."""
        deadline = asyncio.get_running_loop().time() + self._settings.stop_grace_s
        while busy := [task for task, live in self.tasks.items() if not _waits(live)]:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self.hurry:
                break
            await asyncio.wait(busy, timeout=min(left, 0.1))
        self._parking = True
        rest = list(self.tasks)
        for task in rest:
            task.stop()
        if rest:
            _, deaf = await asyncio.wait(rest, timeout=DEAF_S)
            for task in deaf:
                live = self.tasks[task]
                if live.turn is not None and live.task is task:
                    self._stopped(live, live.turn.id)

    def close(self) -> None:
        """End what watches the agents; they have ended."""
        self._watch.close()

    def cache_of(self, live: LiveSession) -> dict[str, Any]:
        """Return what agents keep in memory for a session."""
        return self._caches.setdefault(live.id, {})

    def forget(self, live: LiveSession) -> None:
        """Drop what is kept of a session that left the memory, and stop its agent."""
        self._caches.pop(live.id, None)
        live.session.leave()
        if live.task in self.tasks:
            self._stop(live.task)

    def outputs_of(self, live: LiveSession) -> OutputStore:
        """Return where large outputs of a session are kept."""
        return OutputStore(
            partial(self._keep, live), partial(self.read_blob, live), asyncio.to_thread
        )

    async def save_blob(
        self, live: LiveSession, name: str, content: bytes | os.PathLike[str], mime: str
    ) -> FileRef:
        """Keep a file of an agent."""
        most = self._settings.limits.max_upload_bytes
        return await save(self._files(live), name, content, mime, most)

    async def read_blob(self, live: LiveSession, sha256: str) -> bytes:
        """Return a file of a session."""
        return await self.blobs.of(live.id).read(sha256)

    async def _keep(self, live: LiveSession, stream: AsyncIterator[bytes]) -> str:
        most = self._settings.max_output_bytes
        return (await self._files(live).put(stream, max_bytes=most)).sha256

    def _files(self, live: LiveSession) -> Files:
        """Return where a session's files go, unless it was removed: then nothing goes there."""
        if live.gone.done():
            raise live.gone.result()
        return self.blobs.of(live.id)


class _Host:
    """What `TurnHost` asks for, of a turn that runs here."""

    __slots__ = ("_live", "_runner", "_turn_id", "changed", "session", "unless_gone")

    def __init__(self, live: LiveSession, turn_id: str, runner: Runner) -> None:
        self.session = live.session
        self.changed = live.mark
        self.unless_gone = live.unless_gone
        self._live = live
        self._turn_id = turn_id
        self._runner = runner

    @property
    def user(self) -> User:
        return self._live.user_of(self._turn_id)

    @property
    def cache(self) -> dict[str, Any]:
        return self._runner.cache_of(self._live)

    @property
    def viewers(self) -> Iterable[Viewer]:
        return self._live.viewers.values()

    @property
    def outputs(self) -> OutputStore:
        return self._runner.outputs_of(self._live)

    @property
    def is_stopping(self) -> bool:
        return self._runner.is_stopping(self._live)

    def text_added(self, size: int) -> bool:
        live = self._live
        if not live.dirty:
            live.mark()
        live.unwritten += size
        return live.unwritten > MAX_UNWRITTEN

    async def room(self) -> None:
        await self._runner.writer.room()

    async def read_file(self, sha256: str) -> bytes:
        return await self._runner.read_blob(self._live, sha256)

    async def save_file(self, name: str, content: bytes | os.PathLike[str], mime: str) -> FileRef:
        return await self._runner.save_blob(self._live, name, content, mime)

    def span_of_tool(self, call_id: str) -> AbstractContextManager[None]:
        return self._runner.spans.of_tool(self.session, self._turn_id, call_id)


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


def _waits(live: LiveSession) -> bool:
    return live.turn is not None and live.turn.is_waiting
