"""Functions that a client calls as things happen: for programs that append to what they show."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Struct

from arp.client.events import Connected, Disconnected, Event
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    Commit,
    Delta,
    ErrorMessage,
    Render,
    ToolEnd,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
)

_log = logging.getLogger(__name__)


class Callbacks(Struct, frozen=True):
    """What to call; each may be left out.

    They are called in the client's own task, after the screen has what they tell, and must not
    wait. One that raises is logged, and the next is called all the same. What a snapshot brings is
    not told again by callbacks: it stands on the client's `screen`.
    """

    on_connect: Callable[[AgentCapabilities], None] | None = None
    """At every connection: what the agent side can do."""
    on_disconnect: Callable[[], None] | None = None
    """A connection that had a session is over; the client comes back by itself, if it can."""
    on_delta: Callable[[str], None] | None = None
    """Text of the answer, as it comes; not what the agent thinks."""
    on_tool_start: Callable[[str, str], None] | None = None
    """A tool's name, and its arguments as a JSON string."""
    on_tool_progress: Callable[[ToolProgressPayload], None] | None = None
    """How far a tool is: `call_id`, `text`, `done`, `total`."""
    on_tool_end: Callable[[str, bool], None] | None = None
    """A tool's name, and whether it worked; what it returned stands on the client's `screen`."""
    on_render: Callable[[str | None, str, JsonObject], None] | None = None
    """The tool that shows it (or `None`), the component's type, its props; with the commit."""
    on_error: Callable[[ErrorPayload], None] | None = None
    on_done: Callable[[], None] | None = None
    """A turn's output is complete."""


class Caller:
    """Calls the callbacks that an event is for."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._capabilities = AgentCapabilities([])
        self._is_connected = False
        self._in_snapshot = False

    def hear(self, event: Event) -> None:
        """Call what the event is for; never raises."""
        match event:
            case AgentHello():
                self._capabilities = event.capabilities
            case Connected():
                self._is_connected = True
                self._in_snapshot = event.resume == "snapshot"
                self._call(self._callbacks.on_connect, self._capabilities)
            case Disconnected():
                self._in_snapshot = False
                if self._is_connected:
                    self._is_connected = False
                    self._call(self._callbacks.on_disconnect)
            case Commit() if self._in_snapshot:
                self._in_snapshot = event.seq is None
            case _ if not self._in_snapshot:
                self._tell(event)

    def fail(self, payload: ErrorPayload) -> None:
        """Return why the client gave up."""
        self._call(self._callbacks.on_error, payload)

    def _tell(self, event: Event) -> None:
        match event:
            case Delta(payload=payload) if payload.kind is None:
                if payload.target is None or "/" in payload.target:
                    self._call(self._callbacks.on_delta, payload.delta)
            case ToolStart(payload=start):
                self._call(self._callbacks.on_tool_start, start.tool, start.args)
            case ToolProgress(payload=progress):
                self._call(self._callbacks.on_tool_progress, progress)
            case ToolEnd(payload=end):
                self._call(self._callbacks.on_tool_end, end.tool, end.ok)
            case Render():
                for shown in event.components:
                    self._call(self._callbacks.on_render, event.tool_name, shown.type, shown.props)
            case ErrorMessage():
                self._call(self._callbacks.on_error, event.payload)
            case Commit(final=True):
                self._call(self._callbacks.on_done)

    def _call(self, callback: Callable[..., None] | None, *arguments: object) -> None:
        if callback is None:
            return
        try:
            callback(*arguments)
        except Exception:  # noqa: BLE001 - the application's code; the connection must outlive it
            _log.exception("a callback of the application failed")
