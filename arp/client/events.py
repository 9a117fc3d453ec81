"""The events of a client, and the bounded streams that consumers read them from."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal, TypeAlias
from weakref import WeakSet

from msgspec import Struct

from arp.protocol.messages import AgentMessage

MOST_EVENTS = 1000
"""Maximum number of events that wait for one consumer: one or two seconds of a fast answer."""

MOST_BYTES = 4 << 20
"""Maximum size of those events, in bytes of the frames that contained them."""


class Connected(Struct, frozen=True):
    """The client is connected to its session. This event replaces the `session` message."""

    session_id: str
    resume: Literal["new", "replay", "snapshot"]
    """`replay`: only the missed messages follow; otherwise the screen starts again."""


class Disconnected(Struct, frozen=True):
    """A connection was lost or could not be opened."""

    reason: str
    """Reason for people; safe to print."""
    retry_in_s: float | None
    """Seconds until the next attempt; `None` if the client does not reconnect."""


class Skipped(Struct, frozen=True):
    """This consumer was too slow, so events were dropped.

    The client's `screen` contains their effects; draw it again.
    """

    count: int
    """Number of dropped events."""


Event: TypeAlias = AgentMessage | Connected | Disconnected | Skipped


class EventStream:
    """The events for one consumer, in order, in bounded memory; an async iterator.

    If a consumer is too slow, its waiting events are dropped except the newest, and it receives a
    `Skipped` instead. The stream ends when the client is closed or does not reconnect any more. A
    consumer that needs no more events just drops its reference to the stream.
    """

    def __init__(self, most_events: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._skipped = 0
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, event: Event, size: int) -> None:
        """Add an event.

        Args:
            event: The event.
            size: Its share of the frame that contained it, in bytes.
        """
        # A slow consumer must not slow down the client or use unbounded memory.
        if len(self._waiting) >= self._most_events or self._bytes + size > self._most_bytes:
            self._skipped += len(self._waiting)
            self._waiting.clear()
            self._bytes = 0
        self._waiting.append((event, size))
        self._bytes += size
        self._changed.set()

    def end(self) -> None:
        """End the stream after the waiting events."""
        self._ended = True
        self._changed.set()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Cancel: safe; no event is lost.
        """
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        if self._skipped:
            skipped, self._skipped = self._skipped, 0
            return Skipped(skipped)
        event, size = self._waiting.popleft()
        self._bytes -= size
        return event


class Audience:
    """The streams of all consumers of one client; a stream without references is removed."""

    def __init__(self) -> None:
        self._streams: WeakSet[EventStream] = WeakSet()
        self._ended = False

    def subscribe(self) -> EventStream:
        """Return a new stream of the events from now on."""
        stream = EventStream()
        if self._ended:
            stream.end()
        self._streams.add(stream)
        return stream

    def emit(self, event: Event, size: int = 0) -> None:
        """Add an event to every stream."""
        for stream in self._streams:
            stream.put(event, size)

    def end(self) -> None:
        """End every stream, including those of later subscriptions."""
        self._ended = True
        for stream in self._streams:
            stream.end()
