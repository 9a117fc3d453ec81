"""`SseParser`: server-sent events out of bytes in any pieces; every reader here uses it.

Source: WHATWG HTML standard, 9.2.6 "Interpreting an event stream". `retry` is not followed: how
long to wait is the reader's own business.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MAX_EVENT_BYTES: Final = 16 * 2**20
"""Of one event, unless the reader says otherwise."""
DONE: Final = "[DONE]"
"""The data with which streams of models end; it is no JSON."""
_BOM = b"\xef\xbb\xbf"
_CR, _LF = b"\r", b"\n"


class SseEvent(Struct, frozen=True):
    """One event of the stream."""

    data: str
    """Its data lines, joined by line feeds."""
    name: str = "message"
    id: str = ""
    """The last id that the stream named, here or before."""


class EventTooLong(Exception):
    """An event is longer than the limit; the parser is of no further use."""


class SseParser:
    """Turns the bytes of one stream into events, however they were split."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most = max_event_bytes
        self._line = bytearray()
        """The beginning of a line that has not ended yet."""
        self._begun = False
        self._after_cr = False
        """The bytes so far end with CR, so that an LF now belongs to the same line end."""
        self._data: list[str] = []
        self._held = 0
        """Characters in `_data`."""
        self._name = ""
        self._id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            EventTooLong: An event grows beyond the limit; what it held is lost.
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
        self._hold(0)
        return events

    def end(self) -> list[SseEvent]:
        """Return the event that the end of the stream completes.

        The standard drops an event without its blank line. Some servers end their streams so, and
        nothing of what they said may be lost.
        """
        last = [self._end_line()] if self._line else []
        return [event for event in (*last, self._end_event()) if event is not None]

    def _hold(self, more: int) -> None:
        self._held += more
        if self._held + len(self._line) > self._most:
            raise EventTooLong(f"an event of more than {self._most} bytes")

    def _without_bom(self, chunk: bytes) -> bytes:
        """Wait until it is clear whether the stream begins with a byte order mark."""
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
        self._take(name, value.removeprefix(" "))
        return None

    def _take(self, name: str, value: str) -> None:
        match name:
            case "data":
                self._data.append(value)
                self._hold(len(value) + 1)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass

    def _end_event(self) -> SseEvent | None:
        data, self._data = self._data, []
        name, self._name = self._name, ""
        self._held = 0
        return SseEvent("\n".join(data), name or "message", self._id) if data else None
