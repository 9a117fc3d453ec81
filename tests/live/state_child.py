"""A session that talks, and whose states are stored, until the process is killed: `… talk PATH`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.live.settings import HubSettings
from arp.protocol.messages import Input
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore


async def agent(turn: Turn) -> None:
    """A dozen facts."""
    for number in range(4):
        await turn.say(f"{number} ")
        turn.show(ui.text(turn.id, id=f"shown-{number}"))
        await turn.say("")


async def talk(path: Path) -> None:
    """Goes on where the file ends; says a line for each turn."""
    store = SqliteStore(path)
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}), HubSettings(model_every_facts=1))
    await hub.start()
    while True:
        said = Input(input_type="text", data={"text": "go"}, session_id="s")
        await hub.submit(said, Principal(), "agent")
        while hub.runner.tasks:
            await asyncio.wait(hub.runner.tasks)
        storing = asyncio.ensure_future(hub.directory.states.keep_up())
        await hub.submit(said, Principal(), "agent")
        await storing
        sys.stdout.write("talked\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[2])))
