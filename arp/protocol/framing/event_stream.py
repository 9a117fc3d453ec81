"""Incremental parser for server-sent events, for bytes in pieces of any size.

Source: WHATWG HTML standard, 9.2.6 "Interpreting an event stream". The field `retry` is ignored:
the caller decides how long to wait.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

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
        """Whether the last byte was CR, so that an LF now belongs to the same line end."""
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
        self._count(0)
        return events

    def end(self) -> list[SseEvent]:
        """Return the event that the end of the stream completes.

        The standard drops an event without a blank line after it. Some servers end their streams
        that way, and their last event must not be lost.
        """
        last = [self._end_line()] if self._line else []
        return [event for event in (*last, self._end_event()) if event is not None]

    def _count(self, more: int) -> None:
        """Count characters of the current event.

        Raises:
            EventTooLong: The event exceeds the limit.
        """
        self._held += more
        if self._held + len(self._line) > self._most:
            raise EventTooLong(f"an event of more than {self._most} bytes")

    def _without_bom(self, chunk: bytes) -> bytes:
        """Remove a byte order mark; return nothing until there are enough bytes to decide."""
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

    def _end_event(self) -> SseEvent | None:
        data, self._data = self._data, []
        name, self._name = self._name, ""
        self._held = 0
        return SseEvent("\n".join(data), name or "message", self._id) if data else None
