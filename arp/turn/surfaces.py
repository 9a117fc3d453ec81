"""What a turn does with surfaces besides `main`, and what it hears of them.

Theory of operation. A surface lives in the session, and may live longer than the turn. While the
turn runs it can wait until one is closed, and have functions called when a user focuses, resizes or
closes one. They run as tasks of the turn, one after another for each surface; the turn ends when
they have returned, and fails with the first that raised.
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
from arp.live.tasks import CURRENT_TURN, ServerTask
from arp.protocol.errors import InvalidComponent, SurfaceDestroyed
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import CloseReason, SurfaceInfo, Viewport
from arp.record.wording import plain
from arp.session.effects import SurfaceClosed
from arp.session.surfaces import close_surface, describe_surface, open_surface
from arp.surface.change import Change
from arp.turn.question_outcome import rfc3339
from arp.turn.services import TurnServices

SurfaceEvent: TypeAlias = Literal["focus", "configure", "close"]

Callback: TypeAlias = Callable[..., Awaitable[object]]

MIN_TIMEOUT_MS = 100
"""What goes sooner, nobody has seen."""

MAX_TIMEOUT_MS = 24 * 3600 * 1000
"""A day: an overlay that stays longer is no overlay."""


class TurnSurfaces:
    """The surfaces of one turn."""

    __slots__ = (
        "_callbacks",
        "_closings",
        "_context",
        "_leaving",
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
        """Of surfaces that somebody has in hand; `None`: the turn is over."""
        self._callbacks: dict[tuple[str, SurfaceEvent], list[Callback]] = {}
        self._tasks: dict[str, ServerTask[None]] = {}
        """The newest of each surface; each waits for the one before."""
        self._context = copy_context()
        """Of the agent's code that wants to be called."""
        self._leaving: set[str] = set()
        """Those that the agent has closed and not yet been told of."""
        self._opened = 0

    # -- what the agent does ---------------------------------------------------------------------

    def open(self, name: str, info: SurfaceInfo, changes: Sequence[Change] = ()) -> None:
        """Create a surface, or describe one that is there.

        Raises:
            InvalidSerial: A popup or an overlay, and the user did nothing there recently.
            ArpError: As `open_surface`; nothing has changed.
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
        """Return the name of the next popup or overlay."""
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
        """Give a surface another title, or make it fullscreen.

        Raises:
            SurfaceDestroyed: There is no such surface.
        """
        describe_surface(self._live.session, self._turn_id, name, **changed)
        self._live.mark()

    def close(self, name: str) -> None:
        """Close a surface; one that is closed stays so."""
        session = self._live.session
        if name in session.screen.surfaces:
            effects = close_surface(session, name, "agent")
            self._leaving |= {one.surface for one in effects if isinstance(one, SurfaceClosed)}
            self._services.carry_out(self._live, effects)

    def closing(self, name: str) -> asyncio.Future[CloseReason | None]:
        """Return what is done when a surface that is there is closed, or the turn is over."""
        closing = self._closings.get(name)
        if closing is None or closing.done():
            closing = self._closings[name] = asyncio.get_running_loop().create_future()
        return closing

    def listen(self, name: str, event: SurfaceEvent, callback: Callback) -> None:
        """Call a function when something happens to a surface.

        Raises:
            TypeError: It is no function of what it would get.
        """
        _check_callback(event, callback)
        self._context = copy_context()
        self._callbacks.setdefault((name, event), []).append(callback)

    # -- what the agent hears --------------------------------------------------------------------

    def closed(self, name: str, reason: CloseReason) -> None:
        """Tell the agent that a surface was closed."""
        self._leaving.discard(name)
        closing = self._closings.get(name)
        if closing is not None and not closing.done():
            closing.set_result(reason)
        self._call(name, "close", reason)
        for event in ("focus", "configure", "close"):
            self._callbacks.pop((name, event), None)

    def received(self, name: str, input_type: str, data: JsonObject) -> None:
        """Tell the agent that a user focused or resized a surface."""
        if input_type != "resize":
            self._call(name, "focus", input_type == "focus")
            return
        states = data.get("states")
        names = tuple(map(str, states)) if isinstance(states, list) else ()
        self._call(name, "configure", msgspec.convert(data, Viewport), names)

    def _call(self, name: str, event: SurfaceEvent, *args: object) -> None:
        callbacks = self._callbacks.get((name, event))
        if callbacks:
            before = self._tasks.get(name)
            work = _one_by_one(before, list(callbacks), args)
            # Its code belongs to the turn, though what it is called for comes from outside.
            task = self._tasks[name] = ServerTask(
                work,
                loop=asyncio.get_running_loop(),
                name=f"arp-{self._turn_id}-{event}",
                context=self._context,
            )
            task.owner = self._context.get(CURRENT_TURN)

    # -- the end of the turn ---------------------------------------------------------------------

    async def finish(self) -> None:
        """Wait for the functions that were called; raise what the first of them raised."""
        while True:
            if self._leaving:
                await self._live.written()
                self._leaving.clear()
            running = [task for task in self._tasks.values() if not task.done()]
            if not running:
                break
            await asyncio.wait(running)
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def end(self) -> None:
        """Tell whoever still waits that the turn is over."""
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                task.exception()  # the turn ends by something else already
            task.stop()
        for closing in self._closings.values():
            if not closing.done():
                closing.set_result(None)
        self._callbacks.clear()


def over(turn_id: str) -> SurfaceDestroyed:
    """Return what is raised where a surface is used when its turn has ended."""
    return SurfaceDestroyed(f"turn {turn_id} is over; it can show nothing more", detail=turn_id)


def checked_timeout(timeout_ms: int | None) -> int | None:
    """Return how long an overlay stays, in milliseconds.

    Raises:
        TypeError, ValueError: It is no number of milliseconds, or too many.
    """
    if timeout_ms is None:
        return None
    milliseconds = whole_number(timeout_ms, "timeout_ms")
    if not MIN_TIMEOUT_MS <= milliseconds <= MAX_TIMEOUT_MS:
        raise ValueError(f"timeout_ms: expected {MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS}")
    return milliseconds


def whole_number(value: object, name: str) -> int:
    """Return a whole number of an author as a plain one.

    Raises:
        TypeError, ValueError: It is none.
    """
    number = plain(value)
    if type(number) is not int:
        raise TypeError(f"{name}: expected a whole number, got {type(value).__name__}")
    return number


_CALLED_WITH: dict[SurfaceEvent, tuple[str, ...]] = {
    "close": ("reason",),
    "focus": ("is_focused",),
    "configure": ("size", "states"),
}
"""What functions that listen are called with."""


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


async def _one_by_one(
    before: asyncio.Task[None] | None, callbacks: Sequence[Callback], args: tuple[object, ...]
) -> None:
    if before is not None:
        await before  # what it raised ends this one too
    for callback in callbacks:
        answer: Coroutine[Any, Any, object] | Awaitable[object] = callback(*args)
        await answer
