"""What a client tells those who listen, and the bounded stream that they read it from."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal, TypeAlias
from weakref import WeakSet

from msgspec import Struct

from arp.protocol.messages import AgentMessage

MOST_EVENTS = 1000
"""Events that wait for one consumer: a second or two of a fast answer."""

MOST_BYTES = 4 << 20
"""What those events came in, in bytes of their frames."""


class Connected(Struct, frozen=True):
    """The session is there, new or again; takes the place of its `session` message."""

    session_id: str
    resume: Literal["new", "replay", "snapshot"]
    """`replay`: only what was missed follows; otherwise the screen begins anew."""


class Disconnected(Struct, frozen=True):
    """A connection ended or did not come about."""

    reason: str
    """For people; safe to print."""
    retry_in_s: float | None
    """`None` = this client does not come back."""


class Skipped(Struct, frozen=True):
    """This consumer was too slow: so many events were dropped.

    The client's `screen` has all that they said; draw it anew.
    """

    count: int


Event: TypeAlias = AgentMessage | Connected | Disconnected | Skipped


class EventStream:
    """One consumer's events, in order, in bounded memory.

    An async iterator. A consumer that falls behind loses what waits for it, the newest event
    aside, and gets a `Skipped` in its place. Ends when the client closes or gives up. Whoever
    drops it stops listening.
    """

    def __init__(self, most_events: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._skipped = 0
        self._ended = False
        self._news = asyncio.Event()

    def put(self, event: Event, weight: int) -> None:
        """Add an event that came in `weight` bytes; never waits, never fails."""
        if len(self._waiting) >= self._most_events or self._bytes + weight > self._most_bytes:
            self._skipped += len(self._waiting)
            self._waiting.clear()
            self._bytes = 0
        self._waiting.append((event, weight))
        self._bytes += weight
        self._news.set()

    def end(self) -> None:
        """End the stream behind what waits."""
        self._ended = True
        self._news.set()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Cancel: safe; no event is lost.
        """
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        if self._skipped:
            skipped, self._skipped = self._skipped, 0
            return Skipped(skipped)
        event, weight = self._waiting.popleft()
        self._bytes -= weight
        return event


class Audience:
    """All consumers of one client; those that are gone are forgotten by themselves."""

    def __init__(self) -> None:
        self._streams: WeakSet[EventStream] = WeakSet()
        self._ended = False

    def join(self) -> EventStream:
        """Return a stream of what happens from now on."""
        stream = EventStream()
        if self._ended:
            stream.end()
        self._streams.add(stream)
        return stream

    def tell(self, event: Event, weight: int = 0) -> None:
        """Send an event to every consumer."""
        for stream in self._streams:
            stream.put(event, weight)

    def end(self) -> None:
        """End every stream, also those of consumers who come later."""
        self._ended = True
        for stream in self._streams:
            stream.end()
