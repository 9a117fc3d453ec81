"""Questions survive the process that asked, also if it is killed; their turns read as waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp.client.client import connect
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.messages import ErrorMessage, TurnMessage
from tests.server.processes import Process, start

APP = Path(__file__).with_name("asking.py")


async def left(ledger: Path, text: str, end: str = "kill") -> str:
    """Lets a server ask, and ends it before anybody answers; gives the session."""
    server = await start(APP, ledger)
    try:
        async with asyncio.timeout(30), connect(server.http) as client:
            await client.send_text(text)
            async for event in client.events():
                if isinstance(event, TurnMessage) and event.status == "waiting":
                    break
            assert client.session_id is not None
            if end == "kill":
                await server.kill()
            else:
                assert await server.stop(10) == 0
            return client.session_id
    finally:
        await server.aclose()


async def turn_of(client: Any, turn_id: str, status: str) -> TurnScreen:
    """Waits until a turn has a status on a screen that is there."""
    async with asyncio.timeout(30):
        events = client.events()
        while client.screen.turn(turn_id).status != status:
            await anext(events)
    found: TurnScreen = client.screen.turn(turn_id)
    return found


async def history(server: Process, session_id: str) -> dict[str, Any]:
    """What the history says of the first turn."""
    async with httpx.AsyncClient() as http:
        found = await http.get(f"{server.http}/_api/chats/{session_id}")
    told = [one for one in found.json()["messages"] if one["role"] == "assistant"]
    return dict(told[0])


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_turn_reads_as_waiting_until_its_named_question_is_answered(
    tmp_path: Path, end: str
) -> None:
    """On a screen and in the history; the function of that name takes the typed answer."""
    session = await left(tmp_path / "ledger.db", "trip", end)
    server = await start(APP, tmp_path / "ledger.db")
    try:
        async with connect(server.http, session_id=session) as client:
            turn = await turn_of(client, "t1", "waiting")
            assert (turn.final, turn.errors) == (True, [])
            form = client.screen.output("t1")[-1]
            assert (form.type, form.props["state"]) == ("form", "open")
            assert (await history(server, session))["status"] == "waiting"
            fields = {"to": "Atlantis", "start": "2026-05-01"}
            refused = await client.send_form(fields, source=form.id)
            async for event in client.events():
                if isinstance(event, ErrorMessage) and event.payload.id == refused:
                    assert event.payload.error == "fields: nobody goes there"
                    break
            await client.send_form(fields | {"to": "Rome"}, source=form.id)
            await turn_of(client, "t2", "completed")
            assert client.screen.text("t2") == "Booked: 1 to Rome on 2026-05-01."
            await turn_of(client, "t1", "completed")
            assert (await history(server, session))["status"] == "completed"
    finally:
        await server.aclose()


async def test_question_that_was_asked_for_a_time_is_over_after_it(tmp_path: Path) -> None:
    session = await left(tmp_path / "ledger.db", "soon")
    server = await start(APP, tmp_path / "ledger.db")
    try:
        async with connect(server.http, session_id=session) as client:
            await turn_of(client, "t1", "cancelled")
            assert client.screen.output("t1")[-1].props["state"] == "expired"
    finally:
        await server.aclose()


async def test_answer_to_a_question_without_a_name_begins_a_turn_of_the_agent(
    tmp_path: Path,
) -> None:
    session = await left(tmp_path / "ledger.db", "sure")
    server = await start(APP, tmp_path / "ledger.db")
    try:
        async with connect(server.http, session_id=session) as client:
            await turn_of(client, "t1", "waiting")
            await client.send_action("confirm", source="sure")
            await turn_of(client, "t2", "completed")
            assert "A new turn: {'action': 'confirm'}." in client.screen.text("t2")
    finally:
        await server.aclose()
