"""An agent that makes it hard to stop: what the end of a server must cope with."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time

from arp import App, HubSettings, Turn

print("loading")  # noqa: T201  # what code prints must not reach the renderer
sys.stdout.flush()
os.write(1, b"raw bytes\n")

app = App(
    title="Stubborn", settings=HubSettings(stop_grace_s=float(os.environ.get("GRACE", "0.2")))
)


@app.agent
async def stubborn(turn: Turn) -> None:
    """Streams, asks, finishes soon; ignores its cancel, or blocks a thread."""
    print("turn", turn.id, flush=True)  # noqa: T201
    match turn.text:
        case "stream":
            while True:
                await turn.say("la ")
                await asyncio.sleep(0.001)
        case "ask":
            await turn.confirm("Go on?", id="q")
        case "soon":
            await turn.say("soon ")
            await asyncio.sleep(0.3)
            await turn.say("done")
        case "deaf":
            while True:
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await turn.say("la ")
                    await asyncio.sleep(0.01)
        case "thread":
            await turn.say("blocking")
            await asyncio.to_thread(time.sleep, 60)
        case _:
            await turn.say(f"re {turn.text}")
