"""An input takes effect once: over lost connections, other transports, and a killed server (G4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from arp import App, HubSettings, Turn, ui
from tests.server.processes import Process, start
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

AGENT = Path(__file__).with_name("restless.py")

app = App(title="Inputs", settings=HubSettings(cancel_grace_s=0.2))


@app.agent
async def agent(turn: Turn) -> None:
    """Asks, waits, or says what it heard."""
    match turn.text:
        case "ask":
            pick = await turn.ask(ui.choices(["a", "b"], id=f"pick-{turn.id}"))
            await turn.say(f"picked {pick}")
        case "rows":
            people = [["Ann", 3], ["Bob", 5], ["Cem", 8]]
            table = ui.table(
                "People", ["name", "age"], people, selectable="many", sortable=True, id="people"
            )
            one = ui.table(["name", "age"], people, selectable="one", id="one")
            await turn.say(f"picked {await turn.ask(table)} and {await turn.ask(one)}")
        case "wait":
            await turn.say("waiting")
            await asyncio.Event().wait()
        case text:
            await turn.say(f"re {text}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


def message(session_id: str, text: str, **more: Any) -> dict[str, Any]:
    said = {"v": 1, "type": "input", "session_id": session_id, "input_type": "text"}
    return {**said, "data": {"text": text}, **more}


async def turns(server: Serving | Process, session_id: str) -> list[str]:
    """Return what the user said in each turn of a session."""
    async with httpx.AsyncClient(base_url=server.http) as client:
        chat = (await client.get(f"/_api/chats/{session_id}")).json()
    return [one["content"] for one in chat["messages"] if one["role"] == "user"]


async def test_input_whose_connection_is_lost_before_the_answer_may_be_sent_again(
    server: Serving,
) -> None:
    """The client cannot know whether it arrived; the id tells."""
    for _ in range(5):
        async with raw(server) as client:
            await client.send(message("lost", "once", id="i1"))
            client.socket.transport.abort()
    async with raw(server) as client:
        await client.send(message("lost", "once", id="i1"))
        ack = await client.until("ack")
    assert ack["turn_id"] == "t1"
    assert await turns(server, "lost") == ["once"]


async def test_input_that_comes_in_many_ways_at_once_is_one(server: Serving) -> None:
    """By sockets and by posts, at the same time."""

    async def by_socket() -> str:
        async with raw(server) as client:
            await client.send(message("ways", "once", id="i1"))
            return str((await client.until("ack"))["turn_id"])

    async def by_post(client: httpx.AsyncClient) -> str:
        response = await client.post("/_arp/v1/input", json=message("ways", "once", id="i1"))
        return str(response.json()[0]["turn_id"])

    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        posts, sockets = [by_post(client) for _ in range(10)], [by_socket() for _ in range(10)]
        answers = await asyncio.gather(*posts, *sockets)
    assert set(answers) == {"t1"}
    assert await turns(server, "ways") == ["once"]


async def test_input_is_known_after_the_server_was_killed(tmp_path: Path) -> None:
    """What was acknowledged is there, and is not done again."""
    async with asyncio.timeout(18):
        first = await start(AGENT, tmp_path / "ledger.db")
        try:
            async with connect(first.ws, compression=None) as socket:
                await socket.send(json.dumps(message("s", "ask", id="i1")))
                before = await Raw(socket).until("ack")
            await first.kill()
        finally:
            await first.aclose()
        second = await start(AGENT, tmp_path / "ledger.db")
        try:
            async with connect(second.ws, compression=None) as socket:
                await socket.send(json.dumps(message("s", "ask", id="i1")))
                after = await Raw(socket).until("ack")
            said = await turns(second, "s")
        finally:
            await second.aclose()
    assert (before["turn_id"], after["turn_id"]) == ("t1", "t1")
    assert said == ["ask"]


async def test_one_of_two_answers_at_once_wins(server: Serving) -> None:
    """T70: the first durable one; the other's sender is told; every screen shows the same."""
    for number in range(10):
        session_id = f"race-{number}"
        async with raw(server) as one, raw(server) as two:
            for client in (one, two):
                await client.hello(session_id, ["text", "choices"], "input")
            await one.say(session_id, "ask")
            for client in (one, two):
                await client.until("turn", status="waiting")
            pick = {
                "v": 1,
                "type": "input",
                "source_component": "pick-t1",
                "input_type": "selection",
            }
            await asyncio.gather(
                one.send({**pick, "data": {"selected": ["a"]}, "id": "one"}),
                two.send({**pick, "data": {"selected": ["b"]}, "id": "two"}),
            )
            for client in (one, two):
                await client.until_final("t1")
            loser = two if one.of("ack") else one
            if not loser.of("error"):
                await loser.until("error")
            said = {delta["payload"]["delta"] for who in (one, two) for delta in who.of("delta")}
            answers = [op["value"] for op in ops(one) if op["path"] == "props.answer"]
        assert len(one.of("ack")) + len(two.of("ack")) == 1
        winner = "a" if one.of("ack") else "b"
        assert said == {f"picked {winner}"}
        assert answers == [winner]
        assert [op["value"] for op in ops(two) if op["path"] == "props.answer"] == answers


def ops(client: Raw) -> list[Any]:
    return [op for patch in client.of("patch") for op in patch["ops"]]


async def test_cancel_by_any_renderer_stops_the_turn_for_all(server: Serving) -> None:
    """By socket, by post; a queued turn by its id."""
    async with raw(server) as one, raw(server) as two:
        for client in (one, two):
            await client.hello("cancel", ["text"], "input")
        await one.say("cancel", "wait")
        await one.say("cancel", "queued")
        await two.until("turn", turn_id="t2", status="queued")
        async with httpx.AsyncClient(base_url=server.http) as http:
            for turn_id in ("t2", "t1"):
                data = {"action": "arp.cancel", "payload": {"turn_id": turn_id}}
                body = {**message("cancel", ""), "input_type": "action", "data": data}
                assert (await http.post("/_arp/v1/input", json=body)).status_code == 200
        for client in (one, two):
            for turn_id in ("t2", "t1"):
                await client.until("turn", turn_id=turn_id, status="cancelled")
    assert one.of("error") == []


async def test_rows_of_a_table_are_selected_by_their_numbers(server: Serving) -> None:
    """protocol.md 2.2: `selection {selected: [row indices]}`, from 0."""
    async with raw(server) as client:
        await client.hello("rows", ["text", "table"], "input")
        await client.say("rows", "rows")
        await client.until("turn", status="waiting")
        (shown,) = client.of("render")[-1]["components"]
        pick = {**message("rows", ""), "input_type": "selection", "source_component": "people"}
        for selected in ([3], [0, 0], ["a"], 1):
            await client.send({**pick, "data": {"selected": selected}})
            assert (await client.until("error"))["payload"]["code"] == 11
        await client.send({**pick, "data": {"selected": [2, 0]}})
        await client.until("turn", status="waiting")
        await client.send({**pick, "source_component": "one", "data": {"selected": [1]}})
        await client.until_final("t1")
        said = [one["payload"]["delta"] for one in client.of("delta")]
    assert (shown["props"]["selectable"], shown["props"]["state"]) == ("many", "open")
    assert said == ["picked [2, 0] and 1"]


async def test_rows_of_a_table_are_selected_in_words_where_it_is_text(server: Serving) -> None:
    """protocol.md 3: it becomes text that says how to answer, and the answer is understood."""
    async with raw(server) as client:
        await client.hello("rows-text", ["text"], "input")
        await client.say("rows-text", "rows")
        for text in ("1, 3", "2"):
            await client.until("turn", status="waiting")
            await client.say("rows-text", text)
        await client.until_final("t1")
        shown = [part for one in client.of("render") for part in one["components"]]
        said = [one["payload"]["delta"] for one in client.of("delta")]
    assert shown[0]["props"]["content"].split("\n")[0] == "People"
    assert "Reply with numbers of rows, such as 1,3." in shown[0]["props"]["content"]
    assert "Answered: 1, 3." in shown[1]["props"]["content"]
    assert said == ["picked [0, 2] and 1"]


async def test_question_stays_open_while_nobody_is_there(server: Serving) -> None:
    """Renderers come and go; the last one answers."""
    async with raw(server) as client:
        await client.hello("open", ["text", "choices"], "input")
        await client.say("open", "ask")
        await client.until("turn", status="waiting")
    for _ in range(3):
        async with raw(server) as client:
            await client.hello("open", ["text", "choices"], "input")
            await client.until("commit")
            shown = [part for one in client.of("render") for part in one["components"]]
            assert shown[-1]["props"]["state"] == "open"
    async with raw(server) as plain:
        await plain.hello("open", ["text"], "input")
        await plain.until("commit")
        await plain.say("open", "2")
        await plain.until_final("t1")
        said = [one["payload"]["delta"] for one in plain.of("delta")]
    assert said == ["picked b"]
