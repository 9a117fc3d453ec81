"""`EventLog`: the recent events of one session, for any number of consumers.

Theory of operation. Each consumer has a cursor into one shared log instead of a queue of its own,
so a slow consumer costs no memory. If the next event of a consumer has been dropped from the log,
the consumer gets an error instead of a stream with a gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakSet

from arp.runtime.contract.errors import FailedPrecondition, InvalidArgument
from arp.runtime.contract.types import Event

MAX_KEPT_EVENTS = 20_000
"""Number of events that an open session keeps; enough for a long turn, token by token."""
MAX_KEPT_CHARACTERS = 16 * 2**20
"""Characters of event contents that an open session keeps; tools can return large outputs."""
MAX_CLOSED_EVENTS = 200
MAX_CLOSED_CHARACTERS = 64 * 2**10
"""The same limits for a closed session. They are low because there may be thousands of closed
sessions, and the runtime has the history of each."""


class EventLog:
    """The newest events of one session."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._characters = 0
        self._last = 0
        self._subscribers: WeakSet[LogSubscription] = WeakSet()
        """Weak references, so that an abandoned subscription does not have to be closed."""
        self._asleep: list[asyncio.Event] = []
        """Wake-up events of consumers that are caught up."""
        self._closed = False

    @property
    def last(self) -> int:
        """Sequence number of the newest event; 0 before the first."""
        return self._last

    def append(self, event: Event) -> None:
        """Append an event and wake the waiting consumers."""
        self._events.append(event)
        self._last = event.sequence
        self._characters += len(event.content)
        if len(self._events) > MAX_KEPT_EVENTS or self._characters > MAX_KEPT_CHARACTERS:
            self._drop_oldest(MAX_KEPT_EVENTS, MAX_KEPT_CHARACTERS)
        if self._asleep:
            self._wake()

    async def wait(self, wake: asyncio.Event) -> None:
        """Wait for the next event or for the end of the log."""
        wake.clear()
        self._asleep.append(wake)
        await wake.wait()

    def _wake(self) -> None:
        asleep, self._asleep = self._asleep, []
        for wake in asleep:
            wake.set()

    def close(self) -> None:
        """End every consumer after the newest event; drop old events when no consumer is left."""
        self._closed = True
        self._wake()
        self._shrink_if_unread()

    def reopen(self) -> None:
        """Accept new events and consumers again."""
        self._closed = False

    def subscribe(self, after: int | None) -> LogSubscription:
        """Return a new subscription.

        Args:
            after: Sequence number to begin after; `None` means after the newest event.

        Raises:
            FailedPrecondition: The session is closed.
            InvalidArgument: The events after `after` have been dropped, or do not exist yet.
        """
        if self._closed:
            raise FailedPrecondition("the session is closed: resume it first")
        cursor = self._last if after is None else after
        if not 0 <= cursor <= self._last:
            raise InvalidArgument(f"after: expected 0 to {self._last}, got {cursor}")
        self.check_kept(cursor)
        subscription = LogSubscription(self, cursor)
        self._subscribers.add(subscription)
        return subscription

    def check_kept(self, cursor: int) -> None:
        """Raise if the event after `cursor` has been dropped.

        Raises:
            InvalidArgument: The event has been dropped.
        """
        first = self._last - len(self._events) + 1
        if cursor + 1 < first:
            raise InvalidArgument(
                f"after: the events {cursor + 1} to {first - 1} are no longer kept; "
                "read the history of the session"
            )

    def next_after(self, cursor: int) -> Event | None:
        """Return the event after `cursor`, or `None` if it does not exist yet."""
        if cursor >= self._last:
            return None
        self.check_kept(cursor)
        return self._events[cursor + 1 - self._events[0].sequence]

    def drop(self, subscription: LogSubscription) -> None:
        """Remove a subscription."""
        self._subscribers.discard(subscription)
        self._shrink_if_unread()

    def _shrink_if_unread(self) -> None:
        if self._closed and not self._subscribers:
            self._drop_oldest(MAX_CLOSED_EVENTS, MAX_CLOSED_CHARACTERS)

    def _drop_oldest(self, events: int, characters: int) -> None:
        """Drop the oldest events until both limits hold.

        The newest event is always kept, so that a very large event still reaches its consumers.
        """
        while len(self._events) > 1 and (
            len(self._events) > events or self._characters > characters
        ):
            self._characters -= len(self._events.popleft().content)

    @property
    def is_closed(self) -> bool:
        """Whether the log is closed."""
        return self._closed


class LogSubscription:
    """One consumer of a log; an asynchronous iterator of events."""

    def __init__(self, log: EventLog, cursor: int) -> None:
        self.wake = asyncio.Event()
        self._log = log
        self.cursor = cursor
        """Sequence number of the last event that was returned; at first, the number to begin
        after."""
        self._over = False

    def __aiter__(self) -> LogSubscription:
        return self

    async def __anext__(self) -> Event:
        """Return the next event.

        Raises:
            InvalidArgument: The event has been dropped because the consumer is too slow.

        Cancel: Safe; no event is lost.
        """
        while not self._over:
            event = self._log.next_after(self.cursor)
            if event is not None:
                self.cursor = event.sequence
                return event
            if self._log.is_closed:
                break
            await self._log.wait(self.wake)
        self._log.drop(self)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Unsubscribe; a waiting consumer ends."""
        self._over = True
        self.wake.set()
        self._log.drop(self)
