"""`turn.state` survives the process: a server that is killed, and one that stops."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from websockets.asyncio.client import connect

from tests.server.processes import Process, start
from tests.support.frames import hello

AGENT = Path(__file__).with_name("counting.py")
HELLO = hello("text", features=["streaming", "input"], session_id="s")


async def asked(server: Process, input_id: str) -> tuple[str, str]:
    """Says something; gives what the turn said, and all that was sent meanwhile."""
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "go"}, "id": input_id}
    text, sent = "", ""
    async with asyncio.timeout(30), connect(server.ws, compression=None) as socket:
        await socket.send(json.dumps(HELLO))
        await socket.send(json.dumps(said))
        turn_id = None
        async for frame in socket:
            sent += str(frame)
            message = json.loads(frame)
            if message["type"] == "ack" and message["id"] == input_id:
                turn_id = message["turn_id"]
            if message["type"] == "delta" and message["turn_id"] == turn_id:
                text += message["payload"]["delta"]
            if message["type"] == "commit" and message.get("final") and turn_id is not None:
                break
    return text, sent


async def test_state_survives_a_kill_and_a_stop(tmp_path: Path) -> None:
    said: list[str] = []
    for end in ("kill", "stop", "kill"):
        server = await start(AGENT, tmp_path / "ledger.db")
        try:
            text, sent = await asked(server, f"input-{len(said)}")
            said.append(text)
            assert "private" not in sent
            if end == "kill":
                await server.kill()
            else:
                assert await server.stop(10) == 0
        finally:
            await server.aclose()
    assert said == ["1", "2", "3"]
