"""Server-sent events: a frame is the `data:` of an event, and its cursor the `id:`.

A browser that reconnects sends the last id as `Last-Event-ID`, and the stream resumes there.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from arp.protocol.codec import cursor_after, encode_json
from arp.protocol.framing.event_stream import (
    EVENT_STREAM,
    STREAM_HEADERS,
    encode_comment,
    encode_event,
)
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Send

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 15.0
"""Time in seconds without a frame after which a comment keeps proxies from closing the stream."""

PING_S = 9.0
"""Time in seconds without a frame after which a ping is sent to a reader that answers pings.

The reader itself would send a ping one second later, so only one of the two sends it (protocol.md
2)."""

PONG_S = 10.0
"""Time limit in seconds for the answer to a ping; after it, the stream ends."""

HEADERS = [
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    *((name.encode(), value.encode()) for name, value in STREAM_HEADERS.items()),
]


class ReadyEvents:
    """Writer for frames that are encoded events. Subclasses convert other frames to events."""

    def __init__(self) -> None:
        self.done = False
        """Whether the stream ends because nothing more will be sent."""

    def begin(self) -> bytes:
        """Return the first bytes. They are not empty, so that the client sees the open stream."""
        return encode_comment()

    def event(self, frame: bytes) -> bytes:
        """Return the events for a frame; may be empty."""
        return frame

    def end(self, code: int, reason: str) -> bytes:
        """Return the last bytes when the agent side closes the stream; may be empty.

        The event `close` has the code and the reason of a WebSocket's close frame.
        """
        return encode_event(encode_json({"code": code, "reason": reason}), name="close")


class EventWriter(ReadyEvents):
    """Writer that converts each frame to one event with its cursor as id."""

    def __init__(self, epoch: str | None = None) -> None:
        super().__init__()
        self._epoch = epoch

    def begin(self) -> bytes:
        """Return no bytes, because the first frame is the `hello` of the agent side."""
        return b""

    def event(self, frame: bytes) -> bytes:
        """Return one event. Encoded JSON has no line breaks, so the data is one line.

        Within a snapshot or a catch-up the renderer has no valid cursor. An empty id resets the
        cursor, so that a stream that is lost at this point resumes with a snapshot.
        """
        epoch, seq, is_between = cursor_after(frame)
        self._epoch = epoch or self._epoch
        place = None
        if seq is not None and self._epoch and not is_between:
            place = f"{self._epoch}-{seq}"
        elif is_between or (epoch is not None and b'"resume":"snapshot"' in frame):
            place = ""
        return encode_event(frame, event_id=place)


def parse_place(last_event_id: str) -> tuple[str, int] | None:
    """Return epoch and sequence number in a `Last-Event-ID`; `None` if it has another form."""
    epoch, _, seq = last_event_id.rpartition("-")
    if not epoch or len(epoch) > 64 or not (seq.isascii() and seq.isdigit()) or len(seq) > 16:
        return None
    return epoch, int(seq)


class Pulse:
    """Timer for pings to the reader of an event stream.

    Args:
        frame: Encoded ping. The pong comes in another request; its receiver calls `record_pong`.
    """

    __slots__ = ("_pinged_at", "frame")

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self._pinged_at: float | None = None

    def record_pong(self) -> None:
        """Record the answer."""
        self._pinged_at = None

    def record_ping(self, now: float) -> None:
        """Record that a ping was sent, unless an earlier one is still unanswered."""
        if self._pinged_at is None:
            self._pinged_at = now

    def left_s(self, now: float) -> float:
        """Return the seconds until the answer must arrive; 0 or less means that it is late."""
        return PONG_S if self._pinged_at is None else self._pinged_at + PONG_S - now


async def stream(
    receive: Receive,
    send: Send,
    outbox: QueueOutbox,
    writer: ReadyEvents,
    pulse: Pulse | None = None,
) -> None:
    """Send the frames of an outbox until the writer is done or either side ends the stream.

    Args:
        receive: ASGI callable of the request.
        send: ASGI callable of the request.
        outbox: Queue of the frames.
        writer: Converter from frames to events.
        pulse: Timer for a reader that answers pings; the stream ends if a pong is late. `None` for
            other readers, which get comments instead.
    """
    clock = asyncio.get_running_loop().time
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    gone = asyncio.ensure_future(_wait_for_end(receive, outbox))
    try:
        await _body(send, writer.begin())
        while not writer.done:
            try:
                pause_s = KEEP_ALIVE_S if pulse is None else min(PING_S, pulse.left_s(clock()))
                frame = await outbox.dequeue(pause_s)
            except TimeoutError:
                if pulse is None:
                    await _body(send, encode_comment())
                elif pulse.left_s(clock()) > 0:
                    pulse.record_ping(clock())
                    await _body(send, writer.event(pulse.frame))
                else:
                    logger.info("an event stream ends: its reader did not answer a ping")
                    await _body(send, writer.end(1001, "no answer to a ping"))
                    break
                continue
            if frame is None:
                if outbox.closed is not None:
                    await _body(send, writer.end(*outbox.closed))
                break
            await _body(send, writer.event(frame))
            outbox.record_sent(frame)
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone


async def _body(send: Send, body: bytes) -> None:
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _wait_for_end(receive: Receive, outbox: QueueOutbox) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    outbox.close(1001, "gone")
