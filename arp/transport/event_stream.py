"""Server-sent events: frames as `data:`, places as `id:`, so that `Last-Event-ID` resumes.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from arp.protocol.codec import encode_json, place_of
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Send

KEEP_ALIVE_S = 15.0
"""A comment this often keeps proxies from closing a silent stream."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class FrameWriter(Protocol):
    """What a stream makes of frames."""

    done: bool
    """Nothing more will come; the stream ends."""

    def begin(self) -> bytes:
        """Gives what the stream begins with."""

    def event(self, frame: bytes) -> bytes:
        """Gives what a frame becomes; may be empty."""

    def end(self, code: int, reason: str) -> bytes:
        """Gives what the stream ends with when the agent side closes it; may be empty."""


class EventWriter:
    """Turns each frame into one event, named by its place."""

    def __init__(self, epoch: str | None = None) -> None:
        self.done = False
        self._epoch = epoch

    def begin(self) -> bytes:
        """Gives nothing: the first frame is the agent side's `hello`."""
        return b""

    def event(self, frame: bytes) -> bytes:
        """Gives one event. JSON has no line breaks of its own, so `data` is one line.

        While a snapshot or a catch-up is on its way the renderer stands nowhere: an empty `id`
        takes back the one before, so that a stream that breaks off then begins with a snapshot.
        """
        epoch, seq, is_between = place_of(frame)
        self._epoch = epoch or self._epoch
        name = b""
        if seq is not None and self._epoch and not is_between:
            name = f"id: {self._epoch}-{seq}\n".encode()
        elif is_between or (epoch is not None and b'"resume":"snapshot"' in frame):
            name = b"id:\n"
        return name + b"data: " + frame + b"\n\n"

    def end(self, code: int, reason: str) -> bytes:
        """Gives an event of its own name, which says what a WebSocket says in its close frame."""
        return b"event: close\ndata: " + encode_json({"code": code, "reason": reason}) + b"\n\n"


def parse_place(last_event_id: str) -> tuple[str, int] | None:
    """Reads `Last-Event-ID`; `None` if it is none of ours."""
    epoch, _, seq = last_event_id.rpartition("-")
    if not epoch or len(epoch) > 64 or not (seq.isascii() and seq.isdigit()) or len(seq) > 16:
        return None
    return epoch, int(seq)


async def stream(receive: Receive, send: Send, outbox: QueueOutbox, writer: FrameWriter) -> None:
    """Writes what comes into the outbox, until the writer is done or either side ends it."""
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    gone = asyncio.ensure_future(_wait_for_end(receive, outbox))
    try:
        await _body(send, writer.begin())
        while not writer.done:
            try:
                frame = await outbox.take(KEEP_ALIVE_S)
            except TimeoutError:
                await _body(send, b": \n\n")
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
