"""Server-sent events: frames as `data:`, places as `id:`, so that `Last-Event-ID` resumes.

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
"""A comment this often keeps proxies from closing a silent stream."""

PING_S = 9.0
"""A reader that answers pings gets one after so long without a frame: a second before it would send
one itself, so that only one of the two does (protocol.md 2)."""

PONG_S = 10.0
"""Without an answer for so long, the reader is gone."""

HEADERS = [
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    *((name.encode(), value.encode()) for name, value in STREAM_HEADERS.items()),
]


class ReadyEvents:
    """Sends frames that are complete events already; subclasses turn frames into events."""

    def __init__(self) -> None:
        self.done = False
        """Nothing more will come; the stream ends."""

    def begin(self) -> bytes:
        """Return what the stream begins with: something, so that the client sees it open."""
        return encode_comment()

    def event(self, frame: bytes) -> bytes:
        """Return what a frame becomes; may be empty."""
        return frame

    def end(self, code: int, reason: str) -> bytes:
        """Return what the stream ends with when the agent side closes it; may be empty.

        An event of its own name says what a WebSocket says in its close frame.
        """
        return encode_event(encode_json({"code": code, "reason": reason}), name="close")


class EventWriter(ReadyEvents):
    """Turns each frame into one event with its place as id."""

    def __init__(self, epoch: str | None = None) -> None:
        super().__init__()
        self._epoch = epoch

    def begin(self) -> bytes:
        """Return nothing: the first frame is the agent side's `hello`."""
        return b""

    def event(self, frame: bytes) -> bytes:
        """Return one event. JSON has no line breaks of its own, so `data` is one line.

        In the middle of a snapshot or a catch-up the renderer has no place: an empty `id` takes
        back the one before, so that a stream that breaks off there resumes with a snapshot.
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
    """Read `Last-Event-ID`; `None` if it is not one of ours."""
    epoch, _, seq = last_event_id.rpartition("-")
    if not epoch or len(epoch) > 64 or not (seq.isascii() and seq.isdigit()) or len(seq) > 16:
        return None
    return epoch, int(seq)


class Pulse:
    """Asks the reader of an event stream now and then whether it is still there.

    Args:
        frame: The question. The answer comes another way, and is passed to `ponged`.
    """

    __slots__ = ("_pinged_at", "frame")

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self._pinged_at: float | None = None

    def ponged(self) -> None:
        """Note the answer."""
        self._pinged_at = None

    def pinged(self, now: float) -> None:
        """Note that the reader was asked, unless an earlier answer is still due."""
        if self._pinged_at is None:
            self._pinged_at = now

    def left_s(self, now: float) -> float:
        """Return the seconds until the answer must be there; 0 or less: it is too late."""
        return PONG_S if self._pinged_at is None else self._pinged_at + PONG_S - now


async def stream(
    receive: Receive,
    send: Send,
    outbox: QueueOutbox,
    writer: ReadyEvents,
    pulse: Pulse | None = None,
) -> None:
    """Write what comes into the outbox, until the writer is done or either side ends it.

    Args:
        receive: Of ASGI.
        send: Of ASGI.
        outbox: Where frames come from.
        writer: Turns them into events.
        pulse: Of a reader that answers pings; a stream whose reader does not answer ends.
    """
    clock = asyncio.get_running_loop().time
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    gone = asyncio.ensure_future(_wait_for_end(receive, outbox))
    try:
        await _body(send, writer.begin())
        while not writer.done:
            try:
                pause_s = KEEP_ALIVE_S if pulse is None else min(PING_S, pulse.left_s(clock()))
                frame = await outbox.take(pause_s)
            except TimeoutError:
                if pulse is None:
                    await _body(send, encode_comment())
                elif pulse.left_s(clock()) > 0:
                    pulse.pinged(clock())
                    await _body(send, writer.event(pulse.frame))
                else:
                    logger.info("the reader of an event stream does not answer; it ends")
                    await _body(send, writer.end(1001, "no answer to a ping"))
                    break
                continue
            if frame is None:
                if outbox.closed is not None:
                    await _body(send, writer.end(*outbox.closed))
                break
            await _body(send, writer.event(frame))
            outbox.sent(frame)
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
