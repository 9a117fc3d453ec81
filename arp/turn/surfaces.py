"""The surfaces of a turn other than `main`, and their events.

Theory of operation. A surface belongs to the session and may outlive the turn. While the turn runs,
it can wait until a surface is closed, and it can register functions for the events focus, resize
and close. These functions run as tasks of the turn, one after another for each surface. The turn
ends after they have returned, and fails with the first error that one of them raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any, Literal, TypeAlias

import msgspec

from arp.access.settings import unfit_signature
from arp.live.live_session import LiveSession
from arp.live.tasks import ServerTask
from arp.live.turn_name import CURRENT_TURN
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import CloseReason, SurfaceInfo, Viewport
from arp.session.effects import SurfaceClosed
from arp.session.surfaces import close_surface, describe_surface, open_surface
from arp.surface.change import Change
from arp.turn.question_outcome import rfc3339
from arp.turn.services import TurnServices

SurfaceEvent: TypeAlias = Literal["focus", "configure", "close"]

Callback: TypeAlias = Callable[..., Awaitable[object]]


class TurnSurfaces:
    """Surfaces of one turn."""

    __slots__ = (
        "_callbacks",
        "_closing_here",
        "_closings",
        "_context",
        "_live",
        "_opened",
        "_services",
        "_tasks",
        "_turn_id",
    )

    def __init__(self, live: LiveSession, turn_id: str, services: TurnServices) -> None:
        self._live = live
        self._turn_id = turn_id
        self._services = services
        self._closings: dict[str, asyncio.Future[CloseReason | None]] = {}
        """Futures of awaited closings, by surface; the result `None` means the turn is over."""
        self._callbacks: dict[tuple[str, SurfaceEvent], list[Callback]] = {}
        self._tasks: dict[str, ServerTask[None]] = {}
        """Newest task of each surface; each task waits for the previous one."""
        self._context = copy_context()
        """Context of the agent's code that registered a function last."""
        self._closing_here: set[str] = set()
        """Surfaces that the agent has closed but was not notified about yet."""
        self._opened = 0

    # -- actions of the agent --------------------------------------------------------------------

    def open(self, name: str, info: SurfaceInfo, changes: Sequence[Change] = ()) -> None:
        """Create a surface, or change the description of an existing one.

        Raises:
            InvalidSerial: A popup or an overlay, and the user did nothing there recently.
            ArpError: See `open_surface`; nothing has changed.
        """
        session = self._live.session
        if info.is_transient:
            parent = info.parent or "main"
            tree = session.tree(parent)
            if info.component is not None and (tree is None or info.component not in tree.nodes):
                raise InvalidComponent(
                    f"no component {info.component!r:.80} on surface {parent!r:.80}",
                    detail=info.component,
                )
            info = msgspec.structs.replace(info, serial=self.serial(parent))
        if info.timeout_ms is not None:
            expires_at = rfc3339(time.time() + info.timeout_ms / 1000)
            info = msgspec.structs.replace(info, expires_at=expires_at)
        open_surface(session, self._turn_id, name, info, changes)
        if info.timeout_ms is not None:
            self._services.keep_surface_timers(self._live)
        self._live.mark()

    def new_name(self, role: str) -> str:
        """Return a name for the next popup or overlay."""
        self._opened += 1
        return f"{self._turn_id}-{role}-{self._opened}"

    def serial(self, surface: str) -> int:
        """Return the serial of a recent input on a surface.

        Raises:
            InvalidSerial: There was none recently.
        """
        now_s = asyncio.get_running_loop().time()
        return self._live.session.serials.check(surface, now_s, self._services.serial_max_age_s)

    def describe(self, name: str, **changed: Any) -> None:
        """Change the title of a surface, or make it fullscreen.

        Raises:
            SurfaceDestroyed: The surface does not exist.
        """
        describe_surface(self._live.session, self._turn_id, name, **changed)
        self._live.mark()

    def close(self, name: str) -> None:
        """Close a surface; a second call does nothing."""
        session = self._live.session
        if session.tree(name) is not None:
            effects = close_surface(session, name, "agent")
            self._closing_here |= {one.surface for one in effects if isinstance(one, SurfaceClosed)}
            self._services.carry_out(self._live, effects)

    def closing(self, name: str) -> asyncio.Future[CloseReason | None]:
        """Return the future of a surface's closing; it is also set when the turn is over."""
        closing = self._closings.get(name)
        if closing is None or closing.done():
            closing = self._closings[name] = asyncio.get_running_loop().create_future()
        return closing

    def listen(self, name: str, event: SurfaceEvent, callback: Callback) -> None:
        """Register a function for an event of a surface.

        Raises:
            TypeError: It is not an async function with the arguments of the event.
        """
        _check_callback(event, callback)
        self._context = copy_context()
        self._callbacks.setdefault((name, event), []).append(callback)

    # -- events for the agent --------------------------------------------------------------------

    def closed(self, name: str, reason: CloseReason) -> None:
        """Notify the agent that a surface was closed."""
        self._closing_here.discard(name)
        closing = self._closings.get(name)
        if closing is not None and not closing.done():
            closing.set_result(reason)
        self._start_callbacks(name, "close", reason)
        # A later surface of this name is another one.
        for event in ("focus", "configure", "close"):
            self._callbacks.pop((name, event), None)

    def received(self, name: str, input_type: str, data: JsonObject) -> None:
        """Notify the agent that a user focused or resized a surface."""
        if input_type != "resize":
            self._start_callbacks(name, "focus", input_type == "focus")
            return
        states = data.get("states")
        names = tuple(map(str, states)) if isinstance(states, list) else ()
        self._start_callbacks(name, "configure", msgspec.convert(data, Viewport), names)

    def _start_callbacks(self, name: str, event: SurfaceEvent, *args: object) -> None:
        """Start a task that calls the functions registered for an event."""
        callbacks = self._callbacks.get((name, event))
        if callbacks:
            before = self._tasks.get(name)
            work = _call_in_order(before, list(callbacks), args)
            # The event comes from outside, but the function is code of the turn. With the turn as
            # its owner, the turn may cancel it, and other turns may not.
            task = self._tasks[name] = ServerTask(
                work,
                loop=asyncio.get_running_loop(),
                name=f"arp-{self._turn_id}-{event}",
                context=self._context,
            )
            task.owner = self._context.get(CURRENT_TURN)

    # -- the end of the turn ---------------------------------------------------------------------

    async def finish(self) -> None:
        """Wait for the called functions; raise the error of the first failed function."""
        while True:
            # The notification of a closed surface follows its write; the function it calls must
            # still run in this turn.
            if self._closing_here:
                await self._live.written()
                self._closing_here.clear()
            running = [task for task in self._tasks.values() if not task.done()]
            if not running:
                break
            await asyncio.wait(running)
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def end(self) -> None:
        """Release everything that waits for a surface, because the turn is over."""
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                # Retrieved, so that asyncio does not log it: the turn has another error already.
                task.exception()
            task.stop()
        for closing in self._closings.values():
            if not closing.done():
                closing.set_result(None)
        self._callbacks.clear()


_CALLED_WITH: dict[SurfaceEvent, tuple[str, ...]] = {
    "close": ("reason",),
    "focus": ("is_focused",),
    "configure": ("size", "states"),
}
"""Arguments of the registered functions, by event."""


def _check_callback(event: SurfaceEvent, callback: object) -> None:
    takes = _CALLED_WITH[event]
    got = ""
    if not callable(callback):
        got = type(callback).__name__
    elif (signature := unfit_signature(callback, len(takes))) is not None:
        got = f"one that takes {signature}"
    if got:
        write = f"write async def {event}({', '.join(takes)})"
        raise TypeError(f"surface.on_{event}: expected an async function, got {got}; {write}")


async def _call_in_order(
    before: asyncio.Task[None] | None, callbacks: Sequence[Callback], args: tuple[object, ...]
) -> None:
    """Call the functions in order, after the previous task of the surface."""
    if before is not None:
        # If it raised, this task ends with the same error.
        await before
    for callback in callbacks:
        answer: Coroutine[Any, Any, object] | Awaitable[object] = callback(*args)
        await answer
