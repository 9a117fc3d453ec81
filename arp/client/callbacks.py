"""Functions that a client calls as things happen, for programs that only append output."""

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
    must not wait. If one raises, the client logs the error and calls the next. The content of a
    snapshot causes no calls but of `on_commands`: it is on the client's `screen`.
    """

    on_connect: Callable[[AgentCapabilities], None] | None = None
    """A connection is open: the capabilities of the agent side."""
    on_disconnect: Callable[[], None] | None = None
    """A connection with a session is lost; the client reconnects by itself if it can."""
    on_commands: Callable[[Sequence[Command]], None] | None = None
    """The slash commands of app and session, whenever they change."""
    on_delta: Callable[[str], None] | None = None
    """Text of the answer as it arrives; not the agent's thinking."""
    on_tool_start: Callable[[str, str], None] | None = None
    """A tool's name, and its arguments as a JSON string."""
    on_tool_progress: Callable[[ToolProgressPayload], None] | None = None
    """The progress of a tool: `call_id`, `text`, `done`, `total`."""
    on_tool_end: Callable[[str, bool], None] | None = None
    """A tool's name and whether it succeeded; its result is on the client's `screen`."""
    on_render: Callable[[str | None, str, JsonObject], None] | None = None
    """The tool that shows a component (or `None`), its type, its props; called at the commit."""
    on_error: Callable[[ErrorPayload], None] | None = None
    """An error, from the server or about a frame."""
    on_done: Callable[[], None] | None = None
    """The output of a turn is complete."""


class CallbackRunner:
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

    def commands(self, commands: Sequence[Command]) -> None:
        """Call `on_commands`: they have changed."""
        self._call(self._callbacks.on_commands, commands)

    def fail(self, payload: ErrorPayload) -> None:
        """Call `on_error` with the reason why the client gave up."""
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
