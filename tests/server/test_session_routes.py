"""Sessions over HTTP: pages of facts, streams of them, snapshots; for their owner alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from arp import Access, App
from tests.server import worker
from tests.server.rpc import rpc
from tests.support.serving import Serving, serving


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(worker.app) as running:
        yield running


@pytest.fixture
async def client(server: Serving) -> AsyncIterator[httpx.AsyncClient]:
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as made:
        yield made


async def talked(server: Serving, session_id: str = "s", text: str = "hello") -> None:
    """Lets a turn run to its end."""
    async with rpc(server.port) as program:
        state = await program.say(session_id, text)
        await program.follow(session_id)
        await program.until("turn.completed", turnId=state["turnId"])


async def events(lines: AsyncIterator[str], count: int) -> list[tuple[str, Any]]:
    """Reads so many events: their ids and their facts."""
    found: list[tuple[str, Any]] = []
    name = ""
    async for line in lines:
        if line.startswith("id: "):
            name = line.removeprefix("id: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
        if len(found) == count:
            break
    return found


async def test_list_has_the_sessions(server: Serving, client: httpx.AsyncClient) -> None:
    await talked(server, "a/b")
    page = (await client.get("/_api/sessions")).json()
    (row,) = page["sessions"]
    assert (row["sessionId"], row["title"], row["turns"]) == ("a/b", "hello", 1)
    assert (await client.get("/_api/sessions/a/b/thread")).json()["sessionId"] == "a/b"


async def test_page_of_facts_goes_on_where_it_ended(
    server: Serving, client: httpx.AsyncClient
) -> None:
    await talked(server)
    first = (await client.get("/_api/sessions/s/events", params={"limit": 2})).json()
    assert ([fact["sequence"] for fact in first["events"]], first["next"]) == ([1, 2], 2)
    middle = (await client.get("/_api/sessions/s/events?after=1&before=3")).json()
    assert ([fact["sequence"] for fact in middle["events"]], middle["next"]) == ([2], 2)
    query = {"after": first["next"], "type": ["turn.completed", "session"]}
    rest = (await client.get("/_api/sessions/s/events", params=query)).json()
    assert [fact["type"] for fact in rest["events"]] == ["turn.completed"]


async def test_stream_goes_on_with_each_new_fact_and_resumes_by_its_id(
    server: Serving, client: httpx.AsyncClient
) -> None:
    await talked(server)
    wants = {"accept": "text/event-stream"}
    url = "/_api/sessions/s/events?after=1&type=turn"
    async with client.stream("GET", url, headers=wants) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.aiter_lines()
        before = await events(lines, 3)
        await talked(server, text="again")
        live = await events(lines, 1)
    assert [fact["type"] for _, fact in before] == [
        "turn.submitted",
        "turn.started",
        "turn.completed",
    ]
    assert live[0][1]["turnId"] == "t2"
    place = {**wants, "last-event-id": before[-1][0]}
    async with client.stream("GET", url, headers=place) as response:
        (first,) = await events(response.aiter_lines(), 1)
    assert first == live[0]


async def test_id_of_another_log_begins_where_the_query_says(
    server: Serving, client: httpx.AsyncClient
) -> None:
    await talked(server)
    headers = {"accept": "text/event-stream", "last-event-id": "0123-5"}
    async with client.stream("GET", "/_api/sessions/s/events?after=1", headers=headers) as response:
        ((_, fact),) = await events(response.aiter_lines(), 1)
    assert fact["sequence"] == 2


async def test_stream_ends_when_its_session_is_deleted(
    server: Serving, client: httpx.AsyncClient
) -> None:
    await talked(server)
    headers = {"accept": "text/event-stream"}
    async with client.stream("GET", "/_api/sessions/s/events", headers=headers) as response:
        lines = response.aiter_lines()
        await events(lines, 1)
        await client.delete("/_api/chats/s")
        rest = [line async for line in lines]
    assert "event: close" in rest


@pytest.mark.parametrize("view", ["snapshot", "thread", "events"])
async def test_session_that_there_is_not_is_not_found(client: httpx.AsyncClient, view: str) -> None:
    response = await client.get(f"/_api/sessions/none/{view}")
    assert (response.status_code, response.json()["payload"]["code"]) == (404, 8)


async def test_stream_of_what_there_is_not_is_refused_before_it_begins(
    client: httpx.AsyncClient,
) -> None:
    headers = {"accept": "text/event-stream"}
    response = await client.get("/_api/sessions/none/events", headers=headers)
    assert response.status_code == 404


@pytest.mark.parametrize("query", ["after=x", "after=-1", "limit=0", "limit=1001", "wrong=1"])
async def test_query_that_makes_no_sense_is_refused(client: httpx.AsyncClient, query: str) -> None:
    response = await client.get(f"/_api/sessions/s/events?{query}")
    assert (response.status_code, response.json()["payload"]["code"]) == (400, 11)


async def test_sessions_want_the_same_token_as_everything_else() -> None:
    app = App(access=Access(token="secret"))
    app.agent(worker.worker)
    with serving(app) as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            for path in ("", "/s/snapshot", "/s/thread", "/s/events"):
                assert (await client.get(f"/_api/sessions{path}")).status_code == 401
            headers = {"authorization": "Bearer secret"}
            assert (await client.get("/_api/sessions", headers=headers)).status_code == 200
