"""Services of the hub that all its turns share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from arp.live.live_session import LiveSession
from arp.live.spans import Spans
from arp.protocol.capabilities import AppInfo
from arp.session.effects import Effect


class TurnServices(Struct):
    """Services that all turns of a hub share."""

    spans: Spans
    """Tracing spans that the code of agents runs in."""
    room: Callable[[], Awaitable[None]]
    """Waits until everything recorded so far is on its way to the disk."""
    on_question: Callable[[], None]
    """Called when a turn begins to wait for an answer or for the closing of a surface."""
    carry_out: Callable[[LiveSession, Sequence[Effect]], None]
    """Runs the effects that a session returned."""
    keep_surface_timers: Callable[[LiveSession], None]
    """Starts the timers that close a session's overlays."""
    transfer: Callable[[LiveSession, str, str, bool], Awaitable[None]]
    """Transfers a surface to another session."""
    serial_max_age_s: float = 5.0
    """Maximum age of the input that allows a popup, an overlay or a fullscreen surface."""
    records_messages: bool = False
    """Whether the messages that a model gets are recorded."""
    app_state: Callable[[], object] = lambda: None
    """Returns the value that the app's lifespan yielded."""
    about: Callable[[], AppInfo] = AppInfo
    """Returns the titles of the app's agents."""
