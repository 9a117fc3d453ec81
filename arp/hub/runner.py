"""Runs agents: one task a turn, and whatever happens in it, the turn ends exactly once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from arp.hub.live import LiveSession
from arp.hub.settings import HubSettings
from arp.hub.turn import Turn
from arp.hub.writer import Writer
from arp.protocol.errors import AgentFailed
from arp.session.effects import Effect
from arp.session.recovery import Interrupted
from arp.store.blobs import Blobs

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Turn], Awaitable[None]]
"""An agent: `async def agent(turn: Turn) -> None`."""

CarryOut: TypeAlias = Callable[[LiveSession, Sequence[Effect]], None]


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
        self.tasks: dict[asyncio.Task[None], LiveSession] = {}
        self._handlers = handlers
        self._blobs = blobs
        self._settings = settings
        self._carry_out = carry_out
        self._states: dict[str, dict[str, Any]] = {}
        self._parking = False

    def start(self, live: LiveSession, turn_id: str) -> None:
        """Runs the agent of the session's workflow for a turn."""
        if self._parking:
            return
        turn = live.turn = Turn(live, turn_id, self)
        task = asyncio.get_running_loop().create_task(self._run(live, turn), name=f"arp-{turn_id}")
        live.task = task
        self.tasks[task] = live
        task.add_done_callback(lambda done: self.tasks.pop(done, None))

    def cancel(self, live: LiveSession, turn_id: str) -> None:
        """Stops a turn: its agent gets `CancelledError`, and may clean up for a while."""
        if live.turn is None or live.turn.id != turn_id or live.task is None:
            return
        live.task.cancel()
        asyncio.get_running_loop().call_later(
            self._settings.cancel_grace_s, self._force, live, turn_id
        )

    def _force(self, live: LiveSession, turn_id: str) -> None:
        if live.session.running == turn_id:
            logger.warning("turn %s goes on after its cancel; it is closed over its head", turn_id)
            self._end(live, turn_id, "cancelled", None, None)

    async def _run(self, live: LiveSession, turn: Turn) -> None:
        handler = self._handlers[live.session.head.workflow]
        try:
            await handler(turn)
            turn.finish()
        except asyncio.CancelledError:
            if self._parking:
                error = Interrupted("the server stopped while this turn ran; ask again to go on")
                self._end(live, turn.id, "failed", error, "interrupted")
            else:
                self._end(live, turn.id, "cancelled", None, None)
        except KeyboardInterrupt:
            raise
        except BaseException:
            # Whatever an author's code raises, SystemExit included, ends its turn and nothing else.
            logger.exception("agent %r failed in turn %s", live.session.head.workflow, turn.id)
            failed = AgentFailed("the agent failed; the server's log has the reason")
            self._end(live, turn.id, "failed", failed, None)
        else:
            self._end(live, turn.id, "completed", None, None)

    def _end(
        self,
        live: LiveSession,
        turn_id: str,
        status: Any,
        error: BaseException | None,
        reason: str | None,
    ) -> None:
        if live.turn is not None and live.turn.id == turn_id:
            live.turn.flush()
            live.turn = None
        effects = live.session.end_turn(turn_id, status, error, reason)
        self._carry_out(live, effects)

    async def park(self) -> None:
        """Lets turns finish for a while; those that wait or take longer are interrupted."""
        deadline = asyncio.get_running_loop().time() + self._settings.stop_grace_s
        while busy := [task for task, live in self.tasks.items() if not _waits(live)]:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.wait(busy, timeout=min(left, 0.1))
        self._parking = True
        rest = list(self.tasks)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=1.0)

    def state_of(self, live: LiveSession) -> dict[str, Any]:
        """Gives the agent's own things of a session."""
        return self._states.setdefault(live.session.head.session_id, {})

    def forget(self, session_id: str) -> None:
        """Drops what is kept of a session that left the memory."""
        self._states.pop(session_id, None)

    async def read_blob(self, sha256: str) -> bytes:
        """Gives an uploaded file."""
        return await self._blobs.read(sha256)


def _waits(live: LiveSession) -> bool:
    return live.turn is not None and live.turn.is_waiting
