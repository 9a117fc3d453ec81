"""A session's facts from a sequence on: those that are stored, then each as it becomes durable.

Theory of operation. A follower keeps one number, the last sequence that it gave, and reads what
lies behind it from the store. So it can miss and repeat nothing, and one that is slow costs nothing
but that number: what it has not asked for is read when it asks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Struct

from arp.hub.live import LiveSession
from arp.store.store import Store

READ_FACTS = 100
"""Facts read at once."""


class _Typed(Struct):
    type: str


_type_decoder = msgspec.json.Decoder(_Typed)


class Wanted(Struct, frozen=True):
    """Which facts somebody wants, by type."""

    types: tuple[str, ...] = ()
    """Types (`tool.failed`) or families (`tool`); none means all."""

    def takes(self, fact: bytes) -> bool:
        """Tells whether a stored fact is wanted."""
        if not self.types:
            return True
        name = _type_decoder.decode(fact).type
        return any(name == one or name.startswith(f"{one}.") for one in self.types)


def wanted(types: Sequence[str]) -> Wanted:
    """Gives the choice that a list of types or families makes; `tool.` and `tool.*` are `tool`."""
    return Wanted(tuple(one.removesuffix("*").removesuffix(".") for one in types))


async def follow(
    store: Store, live: LiveSession, after: int, choice: Wanted
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Gives sequence and bytes of each fact behind `after`, in order, without end.

    The session stays in memory meanwhile.

    Raises:
        ArpError: The session left the hub: it was deleted, or the ledger cannot be written.
        StoreDamaged: The next fact is damaged.
    """
    with live.followers.joined():
        while True:
            chunk = await store.read(live.id, after, READ_FACTS)
            for after, fact in chunk:
                if choice.takes(fact):
                    yield after, fact
            if chunk:
                continue
            if live.gone.done():  # what was recorded and not written went with it
                raise live.gone.result()
            await live.beyond(after)
