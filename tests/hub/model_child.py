"""A process that writes facts and stores models until it is killed: `… store PATH`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from arp.hub.readers import models
from arp.ledger.fact import encode
from arp.live import cache
from arp.live.settings import HubSettings
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.ledger.histories import long_history

STEPS, AT_ONCE = 2_000, 20


async def store(path: Path) -> None:
    """Goes on where the file ends, and says each time how far it is."""
    cache.SHORT = 1  # so that each call stores one
    ledger = SqliteStore(path)
    await ledger.open()
    keeper = models.Models(ledger, {}, HubSettings())
    facts = [encode(fact) for fact in long_history(STEPS)]
    last = len(await ledger.read("s", limit=10**6))
    while True:
        batch = facts[last : last + AT_ONCE]
        await ledger.append([SessionWrite("s", last, batch)])
        last += len(batch)
        if last // AT_ONCE % 3 == 0:
            keeper.rest("s")
            await keeper.keep_up()
        sys.stdout.write(f"{last}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(store(Path(sys.argv[2])))
