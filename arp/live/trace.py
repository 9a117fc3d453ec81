"""Log lines of connections: types and sizes, never the content of a message.

A frame may hold a token, a password or text of a user, so a line at level DEBUG has only the types
of its messages, their position and size. Opening and closing are lines at level INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import cbor2
import msgspec

from arp.live.outbox import FrameOutbox
from arp.protocol.codec import Encoding
from arp.protocol.connection.agent_connection import AgentEvent, ConnectionFailure, RejectedMessage
from arp.protocol.messages import Input, Ping, Pong, RendererAck, RendererHello

logger = logging.getLogger(__name__)

MOST_NAMES = 4
"""Messages of one frame that a log line names."""


def traced(outbox: FrameOutbox, viewer_id: str, encoding: Encoding) -> FrameOutbox:
    """Return an outbox that logs its frames if tracing is on, else the outbox itself."""
    return _TracingOutbox(outbox, viewer_id, encoding) if is_tracing() else outbox


def is_tracing() -> bool:
    """Return whether every frame is to be logged."""
    return logger.isEnabledFor(logging.DEBUG)


def log_received(viewer_id: str, events: Sequence[AgentEvent], size: int) -> None:
    """Log a received frame."""
    shown = _names([_event(event) for event in events])
    logger.debug("renderer %s < %s, %d bytes", viewer_id, shown, size)


def _event(event: AgentEvent) -> str:
    match event:
        case RendererHello():
            return "hello"
        case Input():
            return f"input {event.input_type}"
        case RendererAck():
            return f"ack seq={event.seq}"
        case Ping():
            return "ping"
        case Pong():
            return "pong"
        case RejectedMessage():
            return f"refused, code {int(event.error.code)}"
        case ConnectionFailure():
            return f"failed, close code {event.code}"


class _TracingOutbox:
    """Outbox that logs every frame."""

    def __init__(self, outbox: FrameOutbox, viewer_id: str, encoding: Encoding) -> None:
        self._outbox = outbox
        self._viewer_id = viewer_id
        self._encoding = encoding

    def send(self, frames: list[bytes]) -> None:
        """Log and send frames; see `FrameOutbox.send`."""
        for frame in frames:
            self._log(frame)
        self._outbox.send(frames)

    def send_first(self, frame: bytes) -> None:
        """Log and send a frame; see `FrameOutbox.send_first`."""
        self._log(frame)
        self._outbox.send_first(frame)

    def _log(self, frame: bytes) -> None:
        shown = _names(_describe_frame(frame, self._encoding))
        logger.debug("renderer %s > %s, %d bytes", self._viewer_id, shown, len(frame))

    @property
    def buffered(self) -> int:
        """Buffered bytes; see `FrameOutbox.buffered`."""
        return self._outbox.buffered

    def waiting(self) -> list[bytes]:
        """Return the buffered frames; see `FrameOutbox.waiting`."""
        return self._outbox.waiting()

    def close(self, code: int, reason: str) -> None:
        """Log and close; see `FrameOutbox.close`."""
        logger.debug("renderer %s > close %d: %s", self._viewer_id, code, reason)
        self._outbox.close(code, reason)


def _describe_frame(frame: bytes, encoding: Encoding) -> list[str]:
    """Return the type and position of each message in a frame that we send."""
    message: Any
    if encoding == "json":
        message = msgspec.json.decode(frame)
    else:
        message = (msgspec.msgpack.decode if encoding == "msgpack" else cbor2.loads)(frame)
    return [
        _describe_message(item) for item in (message if isinstance(message, list) else [message])
    ]


def _describe_message(message: dict[str, Any]) -> str:
    """Return a short description of a message, for example `delta seq=7 turn=t1`."""
    named = (("seq", message.get("seq")), ("turn", message.get("turn_id")))
    shown = [f"{name}={value}" for name, value in named if value is not None]
    if message["type"] == "error":
        shown.append(f"code={message['payload']['code']}")
    return " ".join([message["type"], *shown])


def _names(types: Sequence[str]) -> str:
    more = f" and {len(types) - MOST_NAMES} more" if len(types) > MOST_NAMES else ""
    return ", ".join(types[:MOST_NAMES]) + more
