"""A ledger file with the facts that a test has made."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from arp.store.session_list import SessionMeta
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite

AT = "2026-01-02T03:04:05.000000Z"


def written(path: Path, facts: Sequence[bytes], session_id: str = "s") -> str:
    """Writes facts of a session into a ledger file, and gives its location."""

    async def write() -> None:
        store = SqliteStore(path)
        await store.open()
        meta = SessionMeta(session_id, "e1", "ann", "agent", "", AT, AT)
        await store.append([SessionWrite(session_id, 0, list(facts), meta)])
        await store.aclose()

    asyncio.run(write())
    return f"sqlite:{path}"
