"""Server-sent events: `encode_event` writes one, `EventReader` and `SseParser` read a stream.

The parser takes bytes in pieces of any size. The field `retry` is ignored: the caller decides how
long to wait.

Source: WHATWG HTML standard, 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final

from msgspec import Struct

EVENT_STREAM: Final = "text/event-stream"
"""Media type of a stream."""
STREAM_HEADERS: Final[Mapping[str, str]] = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Headers of every stream, so that no cache stores it and no proxy buffers its events."""
MAX_EVENT_BYTES: Final = 16 * 2**20
"""Default limit of the size of one event."""
DONE: Final = "[DONE]"
"""Data of the last event in streams of model providers; it is not JSON."""
_BOM = b"\xef\xbb\xbf"
_CR, _LF = b"\r", b"\n"


class SseEvent(Struct, frozen=True):
    """One event of the stream."""

    data: str
    """Data lines, joined by line feeds."""
    name: str = "message"
    id: str = ""
    """Last id in the stream, from this event or an earlier one."""
    is_complete: bool = True
    """`False`: the stream ended before the blank line, so data may be missing."""


def encode_event(data: bytes, *, name: str = "", event_id: str | None = None) -> bytes:
    """Return one event as it is sent.

    Args:
        data: One line.
        name: Name of the event; empty means `message`.
        event_id: Id that a reader sends as `Last-Event-ID` to resume. `None` keeps the earlier id,
            an empty text clears it.
    """
    head = f"event: {name}\n" if name else ""
    if event_id is not None:
        head += f"id: {event_id}\n" if event_id else "id:\n"
    return b"".join((head.encode(), b"data: ", data, b"\n\n"))


def encode_comment(text: str = "") -> bytes:
    """Return a comment, which readers ignore; it shows that the stream is alive."""
    return f": {text}\n\n".encode()


class EventTooLong(Exception):
    """An event is longer than the limit; the parser cannot be used any more."""


class SseParser:
    """Parses the bytes of one stream into events, however the bytes are split."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most = max_event_bytes
        self._line = bytearray()
        """Incomplete line."""
        self._begun = False
        """Whether the check for a byte order mark is done."""
        self._after_cr = False
        """Whether the last byte was CR, so that an LF at the start belongs to the same line end."""
        self._data: list[str] = []
        self._held = 0
        """Characters in `_data`."""
        self._name = ""
        self._id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Parse the next bytes; return the events that they complete.

        Raises:
            EventTooLong: An event exceeds the limit; its data is lost.
        """
        if not self._begun and not (chunk := self._without_bom(chunk)):
            return []
        if not chunk:
            return []
        rest = chunk.removeprefix(_LF) if self._after_cr else chunk
        self._after_cr = chunk.endswith(_CR)
        events = []
        for line in rest.splitlines(keepends=True):
            self._line += line
            if line.endswith((_CR, _LF)):
                event = self._end_line()
                if event is not None:
                    events.append(event)
        self._count(0)  # the incomplete line counts too
        return events

    def end(self) -> list[SseEvent]:
        """Return the event that the end of the stream completes.

        The standard drops an event without a blank line after it. Some servers end their streams
        that way, and their last event must not be lost.
        """
        if self._line:
            self._end_line()
        event = self._end_event(is_complete=False)
        return [] if event is None else [event]

    def _count(self, more: int) -> None:
        """Count characters of the current event.

        Raises:
            EventTooLong: The event exceeds the limit.
        """
        self._held += more
        if self._held + len(self._line) > self._most:
            raise EventTooLong(f"an event of more than {self._most} bytes")

    def _without_bom(self, chunk: bytes) -> bytes:
        """Remove a byte order mark; return no bytes until there are enough of them to decide."""
        head = bytes(self._line) + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._line = bytearray(head)
            return b""
        self._begun = True
        self._line = bytearray()
        return head.removeprefix(_BOM)

    def _end_line(self) -> SseEvent | None:
        line = self._line.rstrip(b"\r\n").decode("utf-8", "replace")
        self._line = bytearray()
        if not line:
            return self._end_event()
        name, _, value = line.partition(":")
        self._set_field(name, value.removeprefix(" "))
        return None

    def _set_field(self, name: str, value: str) -> None:
        match name:
            case "data":
                self._data.append(value)
                self._count(len(value) + 1)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass

    def _end_event(self, is_complete: bool = True) -> SseEvent | None:
        data, self._data = self._data, []
        name, self._name = self._name, ""
        self._held = 0
        if not data:
            return None
        return SseEvent("\n".join(data), name or "message", self._id, is_complete)


class EventReader:
    """Iterates over the events of one stream.

    An event that the end of the stream cuts off comes last, with `is_complete=False`.

    Args:
        chunks: Bytes of the stream.
        max_event_bytes: Limit of the size of one event.
    """

    def __init__(
        self, chunks: AsyncIterator[bytes], max_event_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        self._chunks = chunks
        self._parser = SseParser(max_event_bytes)
        self._parsed: deque[SseEvent] = deque()

    def __aiter__(self) -> AsyncIterator[SseEvent]:
        return self

    async def __anext__(self) -> SseEvent:
        """Return the next event.

        Raises:
            EventTooLong: An event exceeds the limit; its data is lost.

        Cancel: Parsed events are kept; a chunk is lost only if `chunks` loses it.
        """
        while not self._parsed:
            try:
                self._parsed += self._parser.feed(await anext(self._chunks))
            except StopAsyncIteration:
                self._parsed += self._parser.end()
                if not self._parsed:
                    raise
        return self._parsed.popleft()
