"""Facts of a session: read in pages, or followed live from a sequence number on.

Theory of operation. A follower keeps one number, the sequence of the last fact that it returned,
and reads the facts after it from the store. So it neither misses nor repeats a fact. A slow
follower uses no more memory than a fast one: the facts that it has not read stay in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct

from arp.live.live_session import LiveSession
from arp.live.outbox import FrameOutbox
from arp.store.store import Page, Store, pages

HIGH_WATER_BYTES = 256 << 10
"""Limit of the bytes queued for a reader of facts; the same as for a renderer."""

FOLLOW_FACTS = 100
"""Number of facts that a follower reads at once."""


class _TypeOnly(Struct):
    type: str


_type_decoder = msgspec.json.Decoder(_TypeOnly)


class FactFilter(Struct, frozen=True):
    """Selects facts by type."""

    types: tuple[str, ...] = ()
    """Types (`tool.failed`) or families (`tool`); an empty tuple selects all facts."""

    @classmethod
    def of(cls, types: Sequence[str]) -> FactFilter:
        """Return a filter for types or families; `tool.` and `tool.*` mean the family `tool`."""
        return cls(tuple(one.removesuffix("*").removesuffix(".") for one in types))

    def matches(self, fact: bytes) -> bool:
        """Return whether the filter selects a stored fact."""
        if not self.types:
            return True
        name = _type_decoder.decode(fact).type
        return any(name == one or name.startswith(f"{one}.") for one in self.types)


class Room:
    """Backpressure of an outbox: `wait` blocks while too much is queued for the client."""

    def __init__(self, outbox: FrameOutbox) -> None:
        self._outbox = outbox
        self._is_free = asyncio.Event()

    def drained(self) -> None:
        """Resume the waiting callers; the outbox calls this when its queue is almost empty."""
        self._is_free.set()

    async def wait(self) -> None:
        """Wait while more than `HIGH_WATER_BYTES` are queued in the outbox."""
        while self._outbox.buffered > HIGH_WATER_BYTES:
            self._is_free.clear()
            await self._is_free.wait()


async def follow(
    store: Store, live: LiveSession, after: int, choice: FactFilter
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield sequence number and bytes of each fact after `after`, in order, without end.

    The session stays in memory until the generator is closed.

    Raises:
        ArpError: The session was deleted, or the ledger cannot be written.
        StoreDamaged: The next fact is damaged.
    """
    with live.followed():
        while True:
            chunk = await store.read(live.id, after, FOLLOW_FACTS)
            for after, fact in chunk:
                if choice.matches(fact):
                    yield after, fact
            if chunk:
                continue
            # Once the session has left the hub, no further fact becomes durable, and a wait would
            # never end.
            if live.gone.done():
                raise live.gone.result()
            await live.beyond(after)


async def feed(
    store: Store, session_id: str, through: int, read_page: Callable[[Page], object]
) -> None:
    """Call `read_page` in a thread with each page of a session's facts, up to `through`.

    Raises:
        StoreDamaged: See `arp.store.store.pages`.
    """
    async with aclosing(pages(store, session_id, through=through)) as found:
        async for page in found:
            await asyncio.to_thread(read_page, page)
