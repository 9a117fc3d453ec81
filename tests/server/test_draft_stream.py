"""A client of the draft sends nothing while a turn streams: a final commit ends each stream.

Spec: S6, S7.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from arp import App, Turn, ui
from tests.server.processes import start
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

app = App(title="Questions")

AGENT = """
from arp import App, Turn

app = App()


@app.agent
async def slow(turn: Turn) -> None:
    await turn.say("Begun. ")
    if await turn.confirm("Go on?"):
        await turn.say("Done.")
"""


@app.agent
async def asking(turn: Turn) -> None:
    """One question, two questions at once, or a pause that only a stop ends."""
    await turn.say("Begun. ")
    if turn.text == "both":
        answers = await asyncio.gather(
            turn.confirm("First?"), turn.ask(ui.choices(["Rome", "Paris"]))
        )
        await turn.say(f"{answers}")
    elif turn.text == "hang":
        await asyncio.Event().wait()
    elif await turn.confirm("Sure?"):
        await turn.say("Done.")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def stream(client: Raw) -> list[Any]:
    """Read one stream as a hook of the draft does, up to its final commit."""
    begin = len(client.seen)
    await client.until("commit", final=True)
    return client.seen[begin:]


def text_of(messages: list[Any]) -> str:
    return "".join(one["payload"]["delta"] for one in messages if one["type"] == "delta")


async def test_question_ends_the_stream_and_its_answer_begins_the_next(server: Serving) -> None:
    """S6: the question is shown before the commit, which is the last of its stream."""
    async with raw(server) as client:
        await client.say("stream-1", "ask")
        first = await stream(client)
        await client.say("stream-1", "[Confirmed] Confirm")
        second = await stream(client)
    (shown,) = [one for one in first if one["type"] == "render"]
    assert shown["components"][0]["props"]["title"] == "Sure?"
    assert [one["final"] for one in first if one["type"] == "commit"] == [False, True]
    assert (text_of(first), text_of(second)) == ("Begun. ", "Done.")
    assert [one["final"] for one in second if one["type"] == "commit"][-1] is True


async def test_answer_to_one_of_two_questions_ends_a_stream_too(server: Serving) -> None:
    """S6: the turn waits for the other one, and nothing else comes before its answer."""
    async with raw(server) as client:
        await client.say("stream-2", "both")
        await stream(client)
        await stream(client)
        await client.say("stream-2", "[Confirmed] Confirm")
        assert text_of(await stream(client)) == ""
        await client.say("stream-2", "Rome")
        assert text_of(await stream(client)) == "[True, 'Rome']"


async def test_text_behind_a_question_ends_its_stream_at_once(server: Serving) -> None:
    """S6: it is queued until the question is answered, which the client must be free to do."""
    async with raw(server) as client:
        await client.say("stream-3", "ask")
        await stream(client)
        await client.say("stream-3", "something else")
        queued = await stream(client)
        await client.say("stream-3", "[Denied] Deny")
        assert queued[-1]["turn_id"] == "t2"
        assert (await stream(client))[-1]["turn_id"] == "t1"
        assert text_of(await stream(client)) == "Begun. "


async def test_renderer_with_a_hello_gets_one_final_commit_a_turn(server: Serving) -> None:
    """S5 holds for everybody else."""
    async with raw(server) as client:
        await client.hello("stream-4", ["text", "confirm"])
        await client.say("stream-4", "ask")
        await client.until("turn", status="waiting")
        body = {"v": 1, "type": "input", "input_type": "action", "data": {"action": "confirm"}}
        await client.send(body)
        await client.until_final("t1")
        assert len([one for one in client.of("commit") if one["final"]]) == 1


@asynccontextmanager
async def events(server: Serving, session_id: str, **headers: str) -> AsyncIterator[Any]:
    """Open an event stream without a `hello`; yields its messages."""
    async with (
        httpx.AsyncClient(base_url=server.http, timeout=30, headers=headers) as client,
        client.stream("GET", "/_arp/v1/events", params={"session_id": session_id}) as response,
    ):
        lines = response.aiter_lines()
        yield (json.loads(line[6:]) async for line in lines if line.startswith("data: {"))


async def final_of(messages: Any) -> Any:
    async with asyncio.timeout(30):
        return await anext(
            one async for one in messages if one["type"] == "commit" and one["final"]
        )


async def test_event_stream_without_hello_is_ended_in_the_same_way(server: Serving) -> None:
    """S6: also where it comes back to a turn that waits, by a snapshot or by a replay."""
    body = {"v": 1, "type": "input", "session_id": "stream-5", "input_type": "text"}
    async with httpx.AsyncClient(base_url=server.http, timeout=30) as http:
        async with events(server, "stream-5") as messages:
            await http.post("/_arp/v1/input", json={**body, "data": {"text": "ask"}})
            assert (await final_of(messages))["turn_id"] == "t1"
        async with events(server, "stream-5") as messages:
            ready = await anext(one async for one in messages if one["type"] == "session")
            assert (await final_of(messages))["turn_id"] == "t1"
        place = {"last-event-id": f"{ready['epoch']}-2"}
        async with events(server, "stream-5", **place) as messages:
            assert (await final_of(messages))["turn_id"] == "t1"


async def posted(server: Serving, session_id: str, text: str) -> list[tuple[str, Any]]:
    """Post to the workflow; return the events of its stream."""
    found: list[tuple[str, Any]] = []
    headers = {"accept": "text/event-stream"}
    body = {"session_id": session_id, "message": text}
    async with (
        httpx.AsyncClient(base_url=server.http, timeout=30, headers=headers) as client,
        client.stream("POST", "/asking", json=body) as response,
    ):
        name = ""
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: ") and line != "data: [DONE]":
                found.append((name, json.loads(line[6:])))
    return [*found, (name, None)]


async def test_workflow_stream_ends_at_a_question_and_the_answer_streams_the_rest(
    server: Serving,
) -> None:
    """S6: `done` ends it; the stream of the answer does not repeat what was streamed before."""
    first = await posted(server, "stream-6", "ask")
    second = await posted(server, "stream-6", "[Confirmed] Confirm")
    assert [name for name, _ in first] == ["run_id", "delta", "tool_render", "done"]
    assert [name for name, _ in second] == ["run_id", "tool_render", "delta", "done"]
    assert second[1][1]["props"]["state"] == "answered"
    assert second[2][1] == {"delta": "Done."}
    run_id = first[0][1]["run_id"]
    async with httpx.AsyncClient(base_url=server.http, timeout=30) as client:
        whole = (await client.get(f"/_api/runs/stream/{run_id}")).text
    assert whole.count('"delta"') == 2
    assert whole.endswith("event: done\ndata: [DONE]\n\n")


async def test_workflow_stream_of_two_questions_ends_after_each_answer(server: Serving) -> None:
    """S6: a run that is followed again ends where it waits now, not where it waited before."""
    first = await posted(server, "stream-7", "both")
    second = await posted(server, "stream-7", "[Confirmed] Confirm")
    run_id = first[0][1]["run_id"]
    async with httpx.AsyncClient(base_url=server.http, timeout=30) as client:
        whole = (await client.get(f"/_api/runs/stream/{run_id}")).text
    third = await posted(server, "stream-7", "Rome")
    assert [name for name, _ in first].count("tool_render") == 2
    assert second[-1] == ("done", None)
    assert whole.endswith("event: done\ndata: [DONE]\n\n")
    assert third[-2][1] == {"delta": "[True, 'Rome']"}


async def test_workflow_text_behind_a_question_does_not_hang(server: Serving) -> None:
    """S6: a stream ends with `done`, a plain answer says `queued`."""
    await posted(server, "stream-8", "ask")
    queued = await posted(server, "stream-8", "something else")
    async with httpx.AsyncClient(base_url=server.http, timeout=30) as client:
        said = {"session_id": "stream-8", "message": "and more"}
        plain = (await client.post("/asking", json=said)).json()
    assert [name for name, _ in queued] == ["run_id", "done"]
    assert plain["status"] == "queued"


async def test_client_that_comes_back_in_silence_learns_that_its_stream_is_over(
    server: Serving,
) -> None:
    """S7: it cannot name its session before it sends, and sends nothing before a final commit."""
    async with raw(server) as client:
        await client.say("stream-9", "hang")
        await client.until("delta")
    async with raw(server) as back:
        assert await back.until("commit", final=True) == back.seen[-1]
        assert back.seen[-1]["session_id"] == ""
        body = {"v": 1, "type": "input", "session_id": "stream-9", "input_type": "action"}
        await back.send({**body, "data": {"action": "arp.cancel"}})
        await back.until_final("t1")


async def test_text_of_a_client_that_comes_back_to_a_question_ends_its_stream(
    server: Serving,
) -> None:
    """S6: what queued it was recorded before the client joined."""
    async with raw(server) as client:
        await client.say("stream-10", "ask")
        await stream(client)
    async with raw(server) as back:
        await back.say("stream-10", "something else")
        assert (await stream(back))[-1]["turn_id"] == "t1"


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_stop_and_crash_end_the_stream(tmp_path: Path, end: str) -> None:
    """S6, S7: with a question open, it is answered after the restart, by the draft's text."""
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    ledger = tmp_path / "ledger.db"
    body = {"v": 1, "type": "input", "session_id": "mine", "input_type": "text"}
    for text in ("begin", "[Confirmed] Confirm"):
        server = await start(agent, ledger)
        try:
            async with connect(server.ws) as socket:
                client = Raw(socket)
                await client.until("commit", final=True)  # as it begins in silence
                await client.send({**body, "data": {"text": text}})
                await client.until("commit", final=True)
            await (server.kill() if end == "kill" else server.stop(15))
        finally:
            await server.aclose()
    assert client.of("delta") or client.of("turn")[-1]["status"] in ("waiting", "completed")
