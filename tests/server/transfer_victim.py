"""One of two agents, which is killed at a write of a transfer: `… AGENT MARK MOMENT LEDGER`.

The write is the first one with a fact that holds the mark; the moments are `before` it ends, and
`after` it is durable, when nobody has been told.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from arp.store.sqlite import SqliteStore
from arp.store.store import Refusals, SessionWrite
from tests.server.two_agents import APPS
from tests.support.serving import serving

APPEND = SqliteStore.append

TOO_EARLY_S = 0.1
"""How long a write takes that never ends: what must not be said before it is durable has the time
to be said."""


def die() -> None:
    """End as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(agent: str, mark: str, moment: str, ledger: str) -> None:
    """Serve until the moment; say where on the first line."""

    def append(
        store: SqliteStore,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> asyncio.Future[Refusals]:
        is_it = any(mark.encode() in fact for one in batch for fact in one.facts)
        if is_it and moment == "before":
            loop = asyncio.get_running_loop()
            loop.call_later(TOO_EARLY_S, die)
            return loop.create_future()
        made = APPEND(store, batch, together, is_awaited=is_awaited)
        if is_it:
            made.add_done_callback(lambda _: die())
        return made

    SqliteStore.append = append  # type: ignore[method-assign, assignment]
    with serving(APPS[agent], ledger=ledger) as server:
        print(server.ws, flush=True)  # noqa: T201
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
