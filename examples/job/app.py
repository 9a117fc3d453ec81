"""A job in its own process shows its progress: `arp serve examples/job/app.py`.

The turn ends at once; the job then changes the steps that the turn has shown, through the control
plane. With a queue such as Celery, `start` sends a task instead of starting a process.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from arp import App, Turn, ui

WORKER = Path(__file__).with_name("worker.py")

app = App(title="Imports", suggestions=["Import the orders"])
jobs: set[asyncio.subprocess.Process] = set()


@app.agent
async def importer(turn: Turn) -> None:
    """Start an import."""
    component = f"import-{turn.id}"
    turn.show(ui.progress([ui.step("Import", "active", "0 of 5 files")], id=component))
    await turn.say("The import runs on; you may go on or close the page.")
    await start(turn.session_id, component)


async def start(session: str, component: str) -> None:
    """Start a job; `ARP_URL` and `ARP_TOKEN` of the environment say where this server is."""
    command = sys.executable, str(WORKER), session, component
    jobs.add(await asyncio.create_subprocess_exec(*command))
