"""A hub that gives a surface to another session and is killed on the way: `… MOMENT PATH`.

Moments: `before` the write of the transfer, `within` its transaction, `after` it is durable.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.protocol.messages import Input
from arp.store.blobs import MemoryBlobs
from arp.store.journal import Journal
from arp.store.sqlite import SqliteStore
from arp.store.store import Refusals, SessionWrite

HUBS: list[Hub] = []


async def agent(turn: Turn) -> None:
    """Session `a` gives away a surface that the ledger has."""
    if turn.session_id == "a":
        side = turn.surface("side", title="Report")
        side.show(ui.text("content", id="x"))
        await turn.say("Shown. ")
        await HUBS[0].sessions["a"].written()
        await side.transfer(to_session="b")


def die() -> None:
    """End as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)


def is_transfer(batch: Sequence[SessionWrite]) -> bool:
    """Return whether a write has what the two sessions record of a transfer."""
    facts = [fact for one in batch for fact in one.facts]
    return any(b'"transferred"' in fact for fact in facts)


class DyingStore(SqliteStore):
    """A store in a process that is killed at the write of a transfer."""

    moment = ""

    def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> asyncio.Future[Refusals]:
        """As `Store.append`, as far as it comes."""
        if not is_transfer(batch):
            return super().append(batch, together, is_awaited=is_awaited)
        if self.moment == "before":
            die()
        if self.moment == "within":
            Journal._write = dying_write  # type: ignore[method-assign, assignment]
        made = super().append(batch, together, is_awaited=is_awaited)
        if self.moment == "after":
            made.add_done_callback(lambda _: die())
        return made


def dying_write(journal: Any, runs: list[Any], metas: list[Any], texts: list[Any]) -> None:
    """Write the facts, and never get to the `COMMIT`."""
    journal._db.execute("BEGIN IMMEDIATE")
    WRITE(journal, runs, [], [])
    assert journal._db.in_transaction
    die()


WRITE = Journal._write


async def give_away(moment: str, path: Path) -> None:
    """Run the turn that gives the surface away."""
    store = DyingStore(path)
    store.moment = moment
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}))
    HUBS.append(hub)
    await hub.start()
    for session_id in ("b", "a"):
        said = Input(input_type="text", data={"text": "go"}, session_id=session_id)
        await hub.submit(said, Principal(), "agent")
        while hub.runner.tasks:
            await asyncio.wait(hub.runner.tasks)


if __name__ == "__main__":
    asyncio.run(give_away(sys.argv[1], Path(sys.argv[2])))
