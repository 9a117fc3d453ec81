"""Functions that a client calls for its events, for programs that only append output."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from msgspec import Struct

from arp.client.events import Connected, Disconnected, Event
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    Command,
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
    """Functions to call; each is optional.

    The client calls them in its own task, after it has applied the message to the screen. They
    must not wait. If one raises, the client logs the error and calls the next one. The content of a
    snapshot causes no calls except of `on_commands`; read it from the client's `screen`.
    """

    on_connect: Callable[[AgentCapabilities], None] | None = None
    """Called when the client is connected, with the capabilities of the agent side."""
    on_disconnect: Callable[[], None] | None = None
    """Called when a connection with a session is lost; the client reconnects if it can."""
    on_commands: Callable[[Sequence[Command]], None] | None = None
    """Called when the slash commands of the app or the session change, with all of them."""
    on_delta: Callable[[str], None] | None = None
    """Called with each piece of the answer's text; not with the agent's thinking."""
    on_tool_start: Callable[[str, str], None] | None = None
    """Called with the name of a tool and its arguments as a JSON string."""
    on_tool_progress: Callable[[ToolProgressPayload], None] | None = None
    """Called with the progress of a tool: `call_id`, `text`, `done`, `total`."""
    on_tool_end: Callable[[str, bool], None] | None = None
    """Called with the name of a tool and whether it succeeded; its result is on the `screen`."""
    on_render: Callable[[str | None, str, JsonObject], None] | None = None
    """Called at the commit of a component: its tool (or `None`), its type, and its props."""
    on_error: Callable[[ErrorPayload], None] | None = None
    """Called with an error from the server, or about a frame."""
    on_done: Callable[[], None] | None = None
    """Called when the output of a turn is complete."""


class CallbackRunner:
    """Calls the callbacks for each event."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._capabilities = AgentCapabilities([])
        self._is_connected = False
        self._in_snapshot = False

    def handle(self, event: Event) -> None:
        """Call the callback for an event. Never raises."""
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
                # The last commit of a snapshot is the first one with a `seq`.
                self._in_snapshot = event.seq is None
            case _ if not self._in_snapshot:
                self._handle_live(event)

    def commands(self, commands: Sequence[Command]) -> None:
        """Call `on_commands` with the new commands."""
        self._call(self._callbacks.on_commands, commands)

    def fail(self, payload: ErrorPayload) -> None:
        """Call `on_error` with the error that ended the client."""
        self._call(self._callbacks.on_error, payload)

    def _handle_live(self, event: Event) -> None:
        """Call the callback for an event that is not part of a snapshot."""
        match event:
            case Delta(payload=payload) if payload.kind is None:
                # Only streamed text has a slash in its id. Other targets are text components.
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
        except Exception:  # noqa: BLE001 - an error of the application must not end the connection
            _log.exception("a callback of the application failed")
