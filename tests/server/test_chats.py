"""Lists over HTTP: the hello, the workflows, the chats with their history, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from arp import App, Turn, ui
from arp.client.client import connect
from arp.client.errors import SessionDeleted
from arp.server.routes.chats import bounded
from tests.support.serving import Serving, serving

app = App(title="Chats", description="Keeps what was said.", suggestions=["Hello", "Bye"])


@app.agent
async def first(turn: Turn) -> None:
    """Shows a little of everything."""
    async with turn.tool("look", {"at": turn.text}):
        turn.show(ui.table(["n"], [[1]], id=f"table-{turn.id}"))
    await turn.say(f"re {turn.text}")


@app.agent("second")
async def second(turn: Turn) -> None:
    """Another agent.

    With more to be read.
    """
    raise RuntimeError("secret")


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@pytest.fixture
async def client(server: Serving) -> Any:
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=server.http) as client:
        yield client


async def talked(
    client: httpx.AsyncClient, session_id: str, *texts: str, agent: str = "first"
) -> None:
    for text in texts:
        body = {"message": text, "session_id": session_id}
        assert (await client.post(f"/{agent}", json=body)).status_code == 200


async def test_hello_is_the_one_of_every_connection(client: httpx.AsyncClient) -> None:
    """`GET /_api/arp`."""
    hello = (await client.get("/_api/arp")).json()
    assert hello["type"] == "hello"
    assert hello["capabilities"]["components"][:2] == ["text", "markdown"]
    assert hello["capabilities"]["limits"]["max_surfaces"] == 10


async def test_workflows_are_the_agents(client: httpx.AsyncClient) -> None:
    """In order; where there are several each has its own name and first line."""
    listed = (await client.get("/_api/workflows")).json()
    told = [(one["name"], one["path"], one["title"], one["description"]) for one in listed]
    assert told == [
        ("first", "/first", "first", "Shows a little of everything."),
        ("second", "/second", "second", "Another agent."),
    ]
    assert listed[0]["suggestions"] == ["Hello", "Bye"]
    assert listed[0]["is_stream"] is True


async def test_chat_tells_everything_that_was_said_and_shown(client: httpx.AsyncClient) -> None:
    """One truth: what the history page says can be rebuilt from the ledger."""
    await talked(client, "chat", "one", "two")
    chat = (await client.get("/_api/chats/chat")).json()
    user, assistant = chat["messages"][:2]
    assert (chat["id"], chat["title"], chat["workflow_name"]) == ("chat", "one", "first")
    assert (chat["message_count"], len(chat["messages"])) == (2, 4)
    assert (user["role"], user["content"], user["turn_id"]) == ("user", "one", "t1")
    assert (assistant["role"], assistant["content"]) == ("assistant", "re one")
    assert assistant["status"] == "completed"
    look = {"tool": "look", "args": '{"at":"one"}', "ok": True, "behind": {}}
    (tool,) = assistant["tools"]
    assert 0 <= tool.pop("duration_ms") < 60_000
    assert tool == look
    assert assistant["parts"] == [{"id": "table-t1"}, {"id": "t1/1", "characters": 6}]
    shown = assistant["ui_events"]
    assert [(one["component"], one["id"]) for one in shown] == [("table", "table-t1")]
    assert user["timestamp"] <= assistant["timestamp"]


async def test_history_is_paged_from_the_newest(client: httpx.AsyncClient) -> None:
    """`?before=` a turn and `?limit=` turns."""
    await talked(client, "paged", *[f"m{n}" for n in range(1, 6)])

    async def turns(query: str) -> list[str]:
        chat = (await client.get(f"/_api/chats/paged{query}")).json()
        return [one["content"] for one in chat["messages"] if one["role"] == "user"]

    assert await turns("?limit=2") == ["m4", "m5"]
    assert await turns("?limit=2&before=t4") == ["m2", "m3"]
    assert await turns("?limit=2&before=t2") == ["m1"]
    assert await turns("?before=t1") == []
    assert await turns("?before=nonsense") == ["m1", "m2", "m3", "m4", "m5"]


async def test_list_is_newest_first_and_paged(client: httpx.AsyncClient) -> None:
    """`X-ARP-Next` is where the next page begins; the last page has none."""
    for number in range(5):
        await talked(client, f"s{number}", "hi")
    await talked(client, "other", "hi", agent="second")
    ids, before, pages = [], "", 0
    while True:
        page = await client.get(f"/_api/chats?workflow=/first&limit=2{before}")
        ids += [chat["id"] for chat in page.json()]
        pages += 1
        if "x-arp-next" not in page.headers:
            break
        before = f"&before={page.headers['x-arp-next']}"
    assert ids == ["s4", "s3", "s2", "s1", "s0"]
    assert pages == 3
    others = (await client.get("/_api/chats?workflow=second")).json()
    assert [chat["id"] for chat in others] == ["other"]


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "limit=1e9", "before=%00~%ff"])
async def test_strange_query_of_a_list_is_harmless(client: httpx.AsyncClient, query: str) -> None:
    """Bounds are kept; nothing is an error."""
    await talked(client, "s", "hi")
    assert (await client.get(f"/_api/chats?{query}")).status_code == 200


@pytest.mark.parametrize(
    ("text", "count"),
    [(None, 50), ("7", 7), ("0", 1), ("999", 200), ("9" * 99, 200), ("x", 50), ("٣", 50), ("", 50)],
)
def test_count_of_a_query_is_brought_inside_its_bounds(text: str | None, count: int) -> None:
    """What is no count is the default."""
    assert bounded(text, 50, 200) == count


async def test_deleted_chat_is_gone(client: httpx.AsyncClient) -> None:
    """And its name begins anew."""
    await talked(client, "gone", "hi")
    deleted = await client.delete("/_api/chats/gone")
    again = await client.delete("/_api/chats/gone")
    looked = await client.get("/_api/chats/gone")
    listed = (await client.get("/_api/chats")).json()
    await talked(client, "gone", "new")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": "gone", "remains": []})
    assert (again.status_code, looked.status_code) == (404, 404)
    assert listed == []
    assert (await client.get("/_api/chats/gone")).json()["message_count"] == 1


@pytest.mark.parametrize(
    "name", ["none", "a/b", "%00", "%ff", "%2e%2e", "x" * 5000, "'; drop table facts; --"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_chat_that_is_not_there_is_a_coded_404(
    client: httpx.AsyncClient, method: str, name: str
) -> None:
    """T80: whatever its name; no name makes a path or a query of its own."""
    url = httpx.URL(str(client.base_url)).copy_with(
        raw_path=f"/_api/chats/{name.replace(' ', '%20')}".encode()
    )
    response = await client.request(method, url)
    assert response.status_code == 404
    assert response.json()["payload"]["code"] == 8


@pytest.mark.parametrize("name", ["with/slash", "with space", "a?b", "ünï"])
async def test_name_of_a_session_may_hold_what_a_url_must_escape(
    client: httpx.AsyncClient, name: str
) -> None:
    """Printable ASCII is a name; what is not, is refused where it would be made."""
    response = await client.post("/first", json={"message": "hi", "session_id": name})
    looked = await client.get(f"/_api/chats/{quote(name, safe='')}")
    if name.isascii():
        assert (response.status_code, looked.status_code) == (200, 200)
        assert looked.json()["id"] == name
    else:
        assert (response.status_code, looked.status_code) == (400, 404)


async def test_session_of_another_agent_is_not_taken_over(client: httpx.AsyncClient) -> None:
    """A session stays with its agent."""
    await talked(client, "mine", "hi")
    response = await client.post("/second", json={"message": "x", "session_id": "mine"})
    assert response.status_code == 400
    assert "is one of 'first'" in response.json()["payload"]["error"]


async def test_failed_turn_shows_no_internals(client: httpx.AsyncClient) -> None:
    """In the history as little as on the screen."""
    await client.post("/second", json={"message": "x", "session_id": "failed"})
    chat = await client.get("/_api/chats/failed")
    assert "secret" not in chat.text
    assert chat.json()["messages"][1]["status"] == "failed"


@pytest.mark.parametrize("scheme", ["http", "http+sse"])
async def test_a_client_on_a_session_that_is_deleted_ends_and_does_not_make_it_anew(
    server: Serving, client: httpx.AsyncClient, scheme: str
) -> None:
    session_id = f"deleted-{scheme}"
    address = f"{scheme}://127.0.0.1:{server.port}"
    async with connect(address, session_id=session_id) as watching:
        await watching.ask("hello")
        await client.delete(f"/_api/chats/{session_id}")
        with pytest.raises(SessionDeleted):
            await watching.turn_done("never")
    assert (await client.get(f"/_api/chats/{session_id}")).status_code == 404
