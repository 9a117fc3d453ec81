"""A client that knows only the draft works unchanged (protocol.md, first paragraph and 2.2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest

from arp import App, Turn, ui
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

app = App(title="Draft")


@app.agent
async def draft(turn: Turn) -> None:
    """Text, thinking, a tool, two components at once, an append, an answer, a failure."""
    if turn.text == "ask":
        await asking(turn)
        return
    turn.think("nobody of the draft sees this")
    await turn.say("Hello ")
    await turn.say(turn.text)
    async with turn.tool("query", {"sql": "select 1"}):
        pass
    async with turn.frame():
        turn.show(ui.table(["n"], [[1]], id="rows"), ui.text("under it", id="below"))
    turn.append("rows", "props.rows", [[2]])
    if turn.text == "fail":
        raise RuntimeError("inner workings")


async def asking(turn: Turn) -> None:
    """Three questions, one after the other."""
    sure = await turn.confirm("Sure?")
    city = await turn.ask(ui.choices(["Rome", "Paris"]))
    fields = [ui.field("name"), ui.field("age", field_type="number")]
    answer = await turn.ask(ui.form(fields, submit_action="save"))
    await turn.say(f"{sure} {city} {answer['name']} {answer['age']}")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def test_draft_client_gets_what_the_draft_says(server: Serving) -> None:
    """No `hello` from the client; `input` with session_id, input_type, data.text."""
    async with raw(server) as client:
        await client.say("draft-1", "world")
        final = await client.until("commit", final=True)
        types = {message["type"] for message in client.seen}
        deltas = "".join(message["payload"]["delta"] for message in client.of("delta"))
        starts, ends = client.of("tool_start"), client.of("tool_end")
        renders = client.of("render")
    assert client.seen[0]["capabilities"]["components"][0] == "text"
    assert deltas == "Hello world"
    assert starts[0]["payload"]["tool"] == "query"
    assert json.loads(starts[0]["payload"]["args"]) == {"sql": "select 1"}
    assert ends[0]["payload"]["ok"] is True
    assert [len(message["components"]) for message in renders] == [1, 1]
    assert [message["tool_name"] for message in renders] == ["query", "query"]
    assert [message["components"][0]["id"] for message in renders] == ["rows", "below"]
    assert final["session_id"] == "draft-1"
    assert "session" not in types
    assert "input" not in types


async def test_patch_append_reaches_a_draft_client_as_an_update(server: Serving) -> None:
    """The draft has no `append` op; the whole value is set."""
    async with raw(server) as client:
        await client.say("draft-2", "world")
        await client.until("commit", final=True)
        ops = [op for message in client.of("patch") for op in message["ops"]]
    update = {"op": "update", "target": "rows", "path": "props.rows", "value": [[1], [2]]}
    assert ops == [update]


async def test_failing_agent_ends_the_turn_with_one_final_commit(server: Serving) -> None:
    """protocol.md 2.1: every turn ends with exactly one final commit, also when it failed."""
    async with raw(server) as client:
        await client.say("draft-3", "fail")
        await client.until("commit", final=True)
        await client.say("draft-3", "again")
        await client.until("commit", final=True)
        errors = client.of("error")
        finals = [message for message in client.of("commit") if message["final"]]
    assert [message["payload"]["code"] for message in errors] == [18]
    assert "inner" not in json.dumps(client.seen)
    assert [message["turn_id"] for message in finals] == ["t1", "t2"]


async def test_draft_client_may_change_its_session_by_the_next_input(server: Serving) -> None:
    """The draft names the session in every input."""
    async with raw(server) as client:
        await client.say("draft-4", "a")
        await client.until("commit", final=True)
        await client.say("draft-5", "b")
        final = await client.until("commit", final=True)
    assert final["session_id"] == "draft-5"
    assert final["turn_id"] == "t1"


async def test_draft_client_answers_questions_by_its_texts(server: Serving) -> None:
    """What its buttons and forms send is text; nothing queues behind the turn that waits."""
    async with raw(server) as client:
        await client.say("draft-6", "ask")
        for text in ("[Confirmed] Confirm", "Rome", '[Form: save] {"name":"Ada","age":"36"}'):
            await client.until("turn", status="waiting")
            await client.until("commit", final=True)
            await client.say("draft-6", text, source_component="")
        await client.until("commit", final=True)
    said = "".join(message["payload"]["delta"] for message in client.of("delta"))
    assert said == "True Rome Ada 36"
    assert {one["status"] for one in client.of("turn")} == {"running", "waiting", "completed"}
    assert {one["turn_id"] for one in client.of("turn")} == {"t1"}


async def test_text_that_answers_nothing_waits_in_line(server: Serving) -> None:
    """And a stop lets the chat go on."""
    async with raw(server) as client:
        await client.say("draft-7", "ask")
        await client.until("turn", status="waiting")
        await client.say("draft-7", "[Confirmed] Something else")
        await client.until("turn", status="queued", turn_id="t2")
        body = {"v": 1, "type": "input", "session_id": "draft-7", "input_type": "action"}
        await client.send({**body, "data": {"action": "arp.cancel"}})
        await client.until_final("t1")
        await client.until_final("t2")


async def test_event_stream_without_hello_is_answered_by_texts_too(server: Serving) -> None:
    """protocol.md 6: such a stream is taken to show everything, as a draft client is."""
    body = {"v": 1, "type": "input", "session_id": "draft-8", "input_type": "text"}
    path = "/_arp/v1/input"
    async with (
        httpx.AsyncClient(base_url=server.http, timeout=30) as client,
        client.stream("GET", "/_arp/v1/events", params={"session_id": "draft-8"}) as stream,
    ):
        lines = stream.aiter_lines()
        async with asyncio.timeout(30):
            await client.post(path, json={**body, "data": {"text": "ask"}})
            for text in ("[Confirmed] Confirm", "Rome", '[Form: save] {"name":"Ada","age":"36"}'):
                await anext(line async for line in lines if '"status":"waiting"' in line)
                (answer,) = (await client.post(path, json={**body, "data": {"text": text}})).json()
                assert (answer["type"], answer["turn_id"]) == ("ack", "t1")
            await anext(line async for line in lines if '"final":true' in line)


async def test_workflow_goes_on_with_the_texts_of_the_draft(server: Serving) -> None:
    """The draft's client falls back to this transport."""
    said = {"session_id": "draft-9"}
    async with httpx.AsyncClient(base_url=server.http, timeout=30) as client:
        for text in ("ask", "[Confirmed] Confirm", "Rome"):
            answer = (await client.post("/draft", json={**said, "message": text})).json()
            assert answer["status"] == "waiting"
        text = '[Form: save] {"name":"Ada","age":"36"}'
        answer = (await client.post("/draft", json={**said, "message": text})).json()
    assert answer["status"] == "completed"
    assert answer["run_id"] == "draft-9.t1"


async def test_hello_without_session_moves_to_the_one_that_its_input_names(
    server: Serving,
) -> None:
    """protocol.md 2.2: as long as the one that was made for it is empty."""
    capabilities = {"components": ["text", "table"]}
    async with raw(server) as client:
        await client.send({"v": 1, "type": "hello", "capabilities": capabilities})
        made = (await client.until("session"))["session_id"]
        await client.say("mine-1", "world", id="i1")
        ready = await client.until("session")
        acknowledged = await client.until("ack")
        final = await client.until("commit", final=True)
        await client.say("mine-2", "elsewhere")
        error = await client.until("error")
        async with httpx.AsyncClient(base_url=server.http) as http:
            left = await http.get(f"/_api/chats/{made}")
    assert (ready["session_id"], ready["resume"]) == ("mine-1", "new")
    assert (acknowledged["id"], acknowledged["turn_id"]) == ("i1", "t1")
    assert final["session_id"] == "mine-1"
    assert (error["payload"]["code"], error["session_id"]) == (1, "mine-1")
    assert left.status_code == 404


async def test_session_that_was_made_and_used_is_not_left(server: Serving) -> None:
    """Only an empty one can be: what was said in it belongs there."""
    async with raw(server) as client:
        await client.send({"v": 1, "type": "hello", "capabilities": {}})
        made = (await client.until("session"))["session_id"]
        await client.say(made, "world")
        await client.until("commit", final=True)
        await client.say("mine-3", "elsewhere")
        error = await client.until("error")
    assert error["payload"]["code"] == 1
    assert error["session_id"] == made
