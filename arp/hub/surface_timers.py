"""Closes overlays when their time is over, also after the server was started again."""

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
    """The timers of all overlays of a hub.

    A timer that comes too late finds nothing to do: a surface is closed only if it is the one that
    is to be closed at that time. So one may be started twice.
    """

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out

    def keep(self, live: LiveSession) -> None:
        """Start the timers of the overlays that a session shows now."""
        loop, now = asyncio.get_running_loop(), time.time()
        for name, entry in live.session.screen.infos.items():
            if (expires_at := entry.info.expires_at) is not None:
                at = datetime.fromisoformat(expires_at).timestamp()
                # Weakly: a session that leaves the memory is not kept for its overlays.
                expire = partial(self._expire, weakref.ref(live), name, expires_at)
                loop.call_later(max(0.0, at - now), expire)

    def _expire(self, found: weakref.ref[LiveSession], name: str, expires_at: str) -> None:
        live = found()
        if live is None or live.gone.done() or live.session.log.sealed is not None:
            return
        entry = live.session.screen.infos.get(name)
        if entry is not None and entry.info.expires_at == expires_at:
            self._carry_out(live, close_surface(live.session, name, "timeout"))
