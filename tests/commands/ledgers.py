"""A ledger file with one session in it, for the commands that read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.protocol.messages import Input
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from arp.turn.turn import Turn
from tests.support.waiting import becomes


async def agent(turn: Turn) -> None:
    """Speaks, uses a tool that fails, and says a control character."""
    await turn.say("hello \x1b[31mred\n")
    try:
        async with turn.tool("read", {"path": "a"}):
            raise FileNotFoundError("a")
    except FileNotFoundError:
        await turn.say("it failed")


async def written(path: Path, session_id: str = "s") -> None:
    """Lets a turn run over a ledger file."""
    store = SqliteStore(path)
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}))
    await hub.start()
    message = Input(input_type="text", data={"text": "read\x07 it"}, session_id=session_id)
    await hub.submit(message, Principal(), "agent")
    live = hub.sessions[session_id]
    await becomes(lambda: live.session.status_of("t1") == "completed")
    await hub.aclose()


def ledger(path: Path, *session_ids: str) -> Path:
    """Makes a ledger file with these sessions."""
    for session_id in session_ids:
        asyncio.run(written(path, session_id))
    return path
