"""Applications for servers of other people: in memory, on the disk, and mounted in another one.

`LEDGER` in the environment says where the facts of the second live.
"""

from __future__ import annotations

import os

from fastapi import FastAPI

from arp import App, Turn


def app(ledger: str = "memory:") -> App:
    made = App(title="Mounted", ledger=ledger)

    @made.agent
    async def agent(turn: Turn) -> None:
        """Answers."""
        await turn.say(f"re {turn.text}")

    return made


in_memory = app().asgi
on_disk = app(os.environ.get("LEDGER", "memory:")).asgi

api = FastAPI()
api.mount("/agent", app().asgi)
