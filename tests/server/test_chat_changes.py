"""Naming, pinning and searching chats over HTTP, and the stream of what changes in the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from arp import Access, App, Turn
from arp.protocol.framing.event_stream import SseParser
from tests.support.serving import Serving, serving

USERS = {"a": "ada", "b": "bob"}

app = App(access=Access(authenticate=lambda connection: USERS.get(connection.token)))


@app.agent
async def agent(turn: Turn) -> None:
    """Says it again."""
    await turn.say(f"Again: {turn.text}")


@app.command("export", hint="csv or json")
async def export(turn: Turn) -> None:
    """Exports what was shown."""
    await turn.say(f"{turn.command} as {turn.arguments!r}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


def asking(server: Serving, token: str = "a") -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.http, headers={"authorization": f"Bearer {token}"})


async def talked(client: httpx.AsyncClient, session_id: str, text: str) -> Any:
    answer = await client.post("/agent", json={"message": text, "session_id": session_id})
    assert answer.status_code == 200
    return answer.json()


async def test_a_chat_is_named_and_pinned(server: Serving) -> None:
    async with asyncio.timeout(15), asking(server) as client:
        await talked(client, "named", "hello")
        await talked(client, "newer", "hello")
        changed = await client.patch("/_api/chats/named", json={"title": "Name", "pinned": True})
        assert changed.status_code == 200
        row = changed.json()
        assert (row["id"], row["title"], row["pinned"]) == ("named", "Name", True)
        listed = (await client.get("/_api/chats")).json()
        assert listed[0] == row
        assert (await client.get("/_api/chats/named")).json()["title"] == "Name"
        await client.patch("/_api/chats/named", json={"pinned": False})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 400),
        (b"[", 400),
        (b'{"title": 7}', 400),
        (b'{"owner": "bob"}', 400),
        (b'{"title": "' + b"x" * 70_000 + b'"}', 413),
    ],
)
async def test_a_change_that_is_none_is_refused(server: Serving, body: bytes, status: int) -> None:
    async with asyncio.timeout(15), asking(server) as client:
        await talked(client, "refused", "hello")
        answer = await client.patch("/_api/chats/refused", content=body)
        assert answer.status_code == status
        assert answer.json()["type"] == "error"


async def test_nobody_changes_what_is_not_theirs(server: Serving) -> None:
    """The same answer as for a chat that there is not."""
    async with asyncio.timeout(15), asking(server) as ada, asking(server, "b") as bob:
        await talked(ada, "hers", "hello")
        for name in ("hers", "nobodys"):
            answer = await bob.patch(f"/_api/chats/{name}", json={"title": "mine"})
            assert (answer.status_code, answer.json()["payload"]["code"]) == (404, 8)


async def test_chats_are_searched(server: Serving) -> None:
    async with asyncio.timeout(15), asking(server) as ada, asking(server, "b") as bob:
        await talked(ada, "needle", "Where is the needle?")
        (found,) = (await ada.get("/_api/chats", params={"query": "AGAIN needle"})).json()
        assert found["id"] == "needle"
        assert found["match"]["turn_id"] == "t1"
        assert "Again: Where is the needle?" in found["match"]["text"]
        assert (await bob.get("/_api/chats", params={"query": "needle"})).json() == []


async def test_changes_of_the_list_are_streamed(server: Serving) -> None:
    async with (
        asyncio.timeout(15),
        asking(server) as client,
        client.stream("GET", "/_api/chat-events") as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        chunks, parser = stream.aiter_bytes(), SseParser()
        await anext(chunks)
        await talked(client, "streamed", "hello")
        await client.patch("/_api/chats/streamed", json={"title": "Name"})
        await client.delete("/_api/chats/streamed")
        told: list[tuple[str, Any]] = []
        async for chunk in chunks:
            told += [(event.name, json.loads(event.data)) for event in parser.feed(chunk)]
            if told and told[-1][0] == "removed":
                break
    assert told[-1] == ("removed", {"id": "streamed"})
    named = [data["title"] for name, data in told if name == "chat"]
    assert (named[0], named[-1]) == ("hello", "Name")


async def test_commands_are_told_and_run_in_the_place_of_the_agent(server: Serving) -> None:
    """A text that names none goes to the agent."""
    async with asyncio.timeout(15), asking(server) as client:
        hello = (await client.get("/_api/arp")).json()
        assert hello["capabilities"]["commands"] == [
            {"name": "export", "description": "Exports what was shown.", "hint": "csv or json"}
        ]
        assert (await talked(client, "c", "/export csv"))["text"] == "export as 'csv'"
        assert (await talked(client, "c", "/other csv"))["text"] == "Again: /other csv"
