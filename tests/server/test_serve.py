"""What `arp serve` makes of its process, as an agent in it sees it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from websockets.asyncio.client import connect

from tests.server.processes import start

AGENT = """\
import gc, sys
from arp import App, Turn

app = App()

@app.agent
async def tell(turn: Turn) -> None:
    await turn.say(f"{sys.getswitchinterval():.4f} {gc.get_freeze_count() > 0}")
"""


async def test_server_hands_the_interpreter_over_quickly_and_collects_new_objects_alone(
    tmp_path: Path,
) -> None:
    """The ledger's thread must not wait 5 ms for the loop, which is busy all the time."""
    agent = tmp_path / "app.py"
    agent.write_text(AGENT)
    server = await start(agent, tmp_path / "ledger.db")
    try:
        said = await asked(server.ws)
    finally:
        await server.aclose()
    assert said == "0.0005 True"


async def asked(address: str) -> str:
    """Begins a turn and gives all that it says."""
    said = ""
    async with asyncio.timeout(15), connect(address) as socket:
        hello = {"v": 1, "type": "hello", "capabilities": {"components": ["text"]}}
        await socket.send(json.dumps(hello))
        go = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "go"}}
        await socket.send(json.dumps(go))
        async for frame in socket:
            message = json.loads(frame)
            if message["type"] == "delta":
                said += message["payload"]["delta"]
            if message["type"] == "commit" and message["final"]:
                break
    return said
