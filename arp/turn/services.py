"""What the turns of a hub share, and what they ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from arp.live.live_session import LiveSession
from arp.live.spans import Spans
from arp.protocol.capabilities import AppInfo
from arp.session.effects import Effect


class TurnServices(Struct):
    """What all turns of a hub share."""

    spans: Spans
    """In which the code of agents runs."""
    room: Callable[[], Awaitable[None]]
    """Waits until what is recorded now is on its way to the disk."""
    on_question: Callable[[], None]
    """Is called when a turn begins to wait for an answer, or for a surface to be closed."""
    carry_out: Callable[[LiveSession, Sequence[Effect]], None]
    """Does what a session asks for."""
    keep_surface_timers: Callable[[LiveSession], None]
    """Closes overlays of a session when their time is over."""
    transfer: Callable[[LiveSession, str, str, bool], Awaitable[None]]
    """Gives a surface to another session."""
    serial_max_age_s: float = 5.0
    """How old the input may be that opens a popup, an overlay or a fullscreen surface."""
    records_messages: bool = False
    """Whether the messages that a model gets are recorded."""
    app_state: Callable[[], object] = lambda: None
    """Returns what the app's lifespan yielded."""
    about: Callable[[], AppInfo] = AppInfo
    """Returns the titles of the app's agents."""
