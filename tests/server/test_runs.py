"""Runs: each turn by its own id, to look at and to follow again after a lost stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from arp import App, Turn, ui
from arp.server.routes.workflows import split_run
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

app = App(title="Runs")


@app.agent
async def agent(turn: Turn) -> None:
    """Works on until it is let go, or patches what an earlier turn showed."""
    if turn.text == "patch":
        turn.patch("table", "props.title", "Changed")
        await turn.say("patched")
        return
    await turn.say("begun ")
    turn.show(ui.table(["n"], [[1]], id="table"))
    if turn.text == "wait":
        await turn.cache.setdefault("go", asyncio.Event()).wait()
    await turn.say("done")


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@pytest.fixture
async def client(server: Serving) -> Any:
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        yield client


async def run(client: httpx.AsyncClient, text: str, session_id: str = "s") -> dict[str, Any]:
    response = await client.post("/agent", json={"message": text, "session_id": session_id})
    assert response.status_code == 200, response.text
    return dict(response.json())


async def events(response: httpx.Response) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            found.append((name, data if data == "[DONE]" else json.loads(data)))
    return found


async def test_run_tells_what_it_showed(client: httpx.AsyncClient) -> None:
    """By the id that the workflow gave."""
    done = await run(client, "x")
    looked = (await client.get(f"/_api/runs/{done['run_id']}")).json()
    assert done["run_id"] == "s.t1"
    assert (looked["status"], looked["text"]) == ("completed", "begun done")
    assert looked["components"][0]["id"] == "table"
    assert looked["input"] == {"text": "x"}
    assert looked["workflow"] == "agent"


async def test_list_is_newest_first(client: httpx.AsyncClient) -> None:
    """Of one session, or of the recent ones."""
    for session_id in ("a", "b"):
        for _ in range(2):
            await run(client, "x", session_id)
    one = (await client.get("/_api/runs?session_id=a")).json()
    both = (await client.get("/_api/runs")).json()
    few = (await client.get("/_api/runs?limit=3")).json()
    assert [row["id"] for row in one] == ["a.t2", "a.t1"]
    assert [row["id"] for row in both] == ["b.t2", "b.t1", "a.t2", "a.t1"]
    assert [row["id"] for row in few] == ["b.t2", "b.t1", "a.t2"]


async def test_lost_stream_is_followed_again_from_the_beginning(
    server: Serving, client: httpx.AsyncClient
) -> None:
    """The turn goes on meanwhile, and both readers end with the same."""
    accept = {"accept": "text/event-stream"}
    body = {"message": "wait", "session_id": "lost"}
    async with client.stream("POST", "/agent", json=body, headers=accept) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and "delta" in line:
                break
    hub = await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(server.application.hub(), server.loop)
    )
    live = hub.sessions["lost"]
    await becomes(lambda: not live.viewers)
    running = live.session.running
    async with client.stream("GET", "/_api/runs/stream/lost.t1") as again:
        server.call(lambda: live.cache["go"].set())
        told = await events(again)
    assert running == "t1"
    assert told[0] == ("run_id", {"run_id": "lost.t1"})
    assert "".join(data["delta"] for name, data in told if name == "delta") == "begun done"
    assert [data["id"] for name, data in told if name == "tool_render"] == ["table"]
    assert told[-1] == ("done", "[DONE]")


async def test_run_that_changes_an_earlier_one_shows_the_whole_component(
    client: httpx.AsyncClient,
) -> None:
    """The draft's stream has no patches."""
    await run(client, "x", "old")
    await run(client, "patch", "old")
    async with client.stream("GET", "/_api/runs/stream/old.t2") as response:
        told = await events(response)
    (shown,) = [data for name, data in told if name == "tool_render"]
    assert shown["id"] == "table"
    assert shown["props"] == {"headers": ["n"], "rows": [[1]], "title": "Changed"}


@pytest.mark.parametrize("path", ["", "stream/"])
@pytest.mark.parametrize("name", ["s.t9", "none.t1", "s", ".t1", "s.", "%00.t1", "a/b.t1"])
async def test_run_that_is_not_there_is_a_coded_404(
    client: httpx.AsyncClient, path: str, name: str
) -> None:
    """The same as for a session."""
    await run(client, "x")
    response = await client.get(f"/_api/runs/{path}{name}")
    assert response.status_code == 404
    assert response.json()["payload"]["code"] == 8


@pytest.mark.parametrize(
    ("name", "parts"),
    [("s.t1", ("s", "t1")), ("a.b.t1", ("a.b", "t1")), ("s", ("", "s")), ("", ("", ""))],
)
def test_name_of_a_run_is_that_of_its_session_and_turn(name: str, parts: tuple[str, str]) -> None:
    """A session's name may hold dots."""
    assert split_run(name) == parts


async def test_waiting_request_of_a_deleted_session_is_answered(
    server: Serving, client: httpx.AsyncClient
) -> None:
    """Nobody waits for ever."""
    waiting = asyncio.ensure_future(run_or_error(client))
    hub = await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(server.application.hub(), server.loop)
    )
    await becomes(
        lambda: "doomed" in hub.sessions and hub.sessions["doomed"].session.turns.is_active
    )
    deleted = await client.delete("/_api/chats/doomed")
    response = await waiting
    assert deleted.status_code == 200
    assert response.status_code == 404
    assert response.json()["payload"]["error"] == "the session was deleted"


async def run_or_error(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/agent", json={"message": "wait", "session_id": "doomed"})
