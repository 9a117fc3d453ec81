"""Reading a session's facts: in pages, or live from a sequence on.

Theory of operation. A follower keeps one number, the sequence of the last fact that it returned,
and reads the facts after it from the store. So it misses and repeats nothing, and a slow one costs
nothing but that number: facts that it has not asked for stay in the store.
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
"""As much may wait for a reader of facts as for a renderer; then it gets no more for a while."""

FOLLOW_FACTS = 100
"""Facts that a follower reads at once."""


class _Typed(Struct):
    type: str


_type_decoder = msgspec.json.Decoder(_Typed)


class FactFilter(Struct, frozen=True):
    """Chooses facts by type."""

    types: tuple[str, ...] = ()
    """Types (`tool.failed`) or families (`tool`); none means all."""

    @classmethod
    def of(cls, types: Sequence[str]) -> FactFilter:
        """Return the filter for a list of types or families; `tool.` and `tool.*` are `tool`."""
        return cls(tuple(one.removesuffix("*").removesuffix(".") for one in types))

    def matches(self, fact: bytes) -> bool:
        """Return whether a stored fact is chosen."""
        if not self.types:
            return True
        name = _type_decoder.decode(fact).type
        return any(name == one or name.startswith(f"{one}.") for one in self.types)


class Room:
    """Waits until an outbox has room; the outbox calls `drained`."""

    def __init__(self, outbox: FrameOutbox) -> None:
        self._outbox = outbox
        self._is_free = asyncio.Event()

    def drained(self) -> None:
        """Is called when little is left in the outbox."""
        self._is_free.set()

    async def wait(self) -> None:
        """Wait while more than `HIGH_WATER_BYTES` are in the outbox."""
        while self._outbox.buffered > HIGH_WATER_BYTES:
            self._is_free.clear()
            await self._is_free.wait()


async def follow(
    store: Store, live: LiveSession, after: int, choice: FactFilter
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield sequence and bytes of each fact after `after`, in order, without end.

    The session stays in memory meanwhile.

    Raises:
        ArpError: The session left the hub: it was deleted, or the ledger cannot be written.
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
            if live.gone.done():  # facts that were recorded but not written are lost with it
                raise live.gone.result()
            await live.beyond(after)


async def feed(store: Store, session_id: str, through: int, take: Callable[[Page], object]) -> None:
    """Call `take` with each page of a session's facts, in a thread: the event loop stays free.

    Raises:
        StoreDamaged: As `arp.store.store.pages`.
    """
    async with aclosing(pages(store, session_id, through=through)) as found:
        async for page in found:
            await asyncio.to_thread(take, page)
