"""Timers that close overlays at their deadline, also after a restart of the server."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeAlias

from arp.live.live_session import LiveSession
from arp.session.effects import Effect
from arp.session.surfaces import close_surface

CarryOut: TypeAlias = Callable[[LiveSession, Sequence[Effect]], None]


class SurfaceTimers:
    """Timers of all overlays of a hub.

    A timer closes a surface only if the surface still has the deadline that the timer was started
    for. So a late timer does nothing, and a second timer for the same overlay is harmless.
    """

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out

    def keep(self, live: LiveSession) -> None:
        """Start timers for the overlays that a session shows now."""
        loop, now = asyncio.get_running_loop(), time.time()
        for name, entry in live.session.screen.infos.items():
            if (expires_at := entry.info.expires_at) is not None:
                at = datetime.fromisoformat(expires_at).timestamp()
                # Weak: a timer must not keep an evicted session in memory.
                expire = partial(self._expire, weakref.ref(live), name, expires_at)
                loop.call_later(max(0.0, at - now), expire)

    def _expire(self, found: weakref.ref[LiveSession], name: str, expires_at: str) -> None:
        live = found()
        if live is None or live.gone.done() or live.session.sealed is not None:
            return
        entry = live.session.screen.infos.get(name)
        if entry is not None and entry.info.expires_at == expires_at:
            self._carry_out(live, close_surface(live.session, name, "timeout"))
