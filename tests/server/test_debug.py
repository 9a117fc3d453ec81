"""`arp serve --debug`: tracebacks for who is connected; nothing of them is kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.server.processes import Process, start
from tests.support.frames import hello

AGENT = '''
from arp import App, Turn

app = App(title="Wrong")


@app.agent
async def wrong(turn: Turn) -> None:
    """Fails, or forgets to await."""
    if turn.text == "forget":
        turn.say("lost")
    else:
        unmistakable_name(turn)


def unmistakable_name(turn: Turn) -> None:
    raise LookupError("a remarkable reason")
'''

HELLO = hello("text", session_id="s")


async def heard(socket: ClientConnection) -> list[Any]:
    """Return what still comes: the answer to a new hello is behind all that was sent."""
    told: list[Any] = []
    await socket.send(json.dumps({**HELLO, "session_id": "other"}))
    while not told or told[-1].get("session_id") != "other":
        told.append(json.loads(await socket.recv()))
    return told


async def failed(server: Process, text: str) -> tuple[list[Any], list[Any]]:
    """Lets a turn go wrong; gives what was told to who was there, and to who came later."""
    async with connect(server.ws) as socket:
        await socket.send(json.dumps(HELLO))
        said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
        await socket.send(json.dumps(said))
        while not json.loads(await socket.recv()).get("final"):
            pass
        there = await heard(socket)
    async with connect(server.ws) as socket:
        await socket.send(json.dumps(HELLO))
        late: list[Any] = []
        while not late or not late[-1].get("final"):
            late.append(json.loads(await socket.recv()))
        late += await heard(socket)
    return there, late


def errors(told: list[Any]) -> list[Any]:
    return [one["payload"] for one in told if one["type"] == "error" and "debug" in one["payload"]]


def ledger_in(folder: Path) -> bytes:
    """Return all bytes of the ledger's files."""
    return b"".join(file.read_bytes() for file in folder.glob("ledger.db*") if file.is_file())


async def served(folder: Path, *options: str) -> Process:
    agent = folder / "wrong.py"
    agent.write_text(AGENT)
    return await start(agent, folder / "ledger.db", *options)


async def test_traceback_is_told_once_and_is_in_no_file(tmp_path: Path) -> None:
    """Who was there sees it; who comes later does not; the ledger has nothing of it."""
    async with asyncio.timeout(50):
        server = await served(tmp_path, "--debug")
        try:
            there, late = await failed(server, "fail")
            assert await server.stop(15) == 0
        finally:
            await server.aclose()
    (shown,) = errors(there)
    assert shown["error"] == "The agent failed. The server's log has the reason."
    assert shown["debug"].endswith("\nLookupError: a remarkable reason")
    assert "wrong.py" in shown["debug"]
    assert "unmistakable_name(turn)" in shown["debug"]
    assert errors(late) == []
    kept = ledger_in(tmp_path)
    assert b"The agent failed" in kept
    for part in (b"remarkable", b"unmistakable", b"Traceback", b"LookupError"):
        assert part not in kept


async def test_call_that_nobody_awaited_is_shown(tmp_path: Path) -> None:
    async with asyncio.timeout(50):
        server = await served(tmp_path, "--debug")
        try:
            async with connect(server.ws) as socket:
                await socket.send(json.dumps(HELLO))
                said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "forget"}}
                await socket.send(json.dumps(said))
                told: list[Any] = []
                while not told or not told[-1].get("final"):
                    told.append(json.loads(await socket.recv()))
                told += await heard(socket)
        finally:
            await server.aclose()
    (shown,) = errors(told)
    assert shown["error"].startswith("agent 'wrong' called Turn.say and never awaited it: ")
    assert shown["error"].endswith("wrong.py:11")


async def test_without_the_flag_nobody_sees_a_traceback(tmp_path: Path) -> None:
    async with asyncio.timeout(50):
        server = await served(tmp_path)
        try:
            there, late = await failed(server, "fail")
        finally:
            await server.aclose()
    assert errors(there) == errors(late) == []
