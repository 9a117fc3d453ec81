"""Who comes in and sees what, over real sockets: HTTP, event streams, WebSocket (T01 to T17)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from arp import Access, App, IncomingConnection, Turn
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

TOKENS = {"a": "ada", "b": "bob"}


def authenticate(connection: IncomingConnection) -> str | None:
    """Ada's token is `a`, Bob's is `b`."""
    return TOKENS.get(connection.token)


app = App(title="Access", access=Access(authenticate=authenticate))


@app.agent
async def agent(turn: Turn) -> None:
    """Keeps a secret for who asked."""
    await turn.say(f"secret of {turn.text}")


health = App(title="Health", access=Access(token="t"))


@health.agent("health")
async def healthy(turn: Turn) -> None:
    """Has the name of an open path."""
    await turn.say("run")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@pytest.fixture(scope="module")
def hers(server: Serving) -> dict[str, Any]:
    """Ada's session `hers`, with one turn, told by her own client."""

    async def make() -> dict[str, Any]:
        async with raw(server, additional_headers=bearer("a")) as client:
            ready = await client.hello("hers", ["text"], "input")
            await client.say("hers", "ada")
            await client.until("commit", final=True)
        return dict(ready)

    return asyncio.run(make())


def bearer(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token is not None else {}


ROUTES = [
    ("GET", "/_api/arp"),
    ("GET", "/_api/workflows"),
    ("GET", "/_api/chats"),
    ("GET", "/_api/chats/hers"),
    ("DELETE", "/_api/chats/nothing"),
    ("GET", "/_api/runs"),
    ("GET", "/_api/runs/hers.t1"),
    ("GET", "/_api/runs/stream/hers.t1"),
    ("GET", "/_arp/v1/events"),
    ("POST", "/_arp/v1/input"),
    ("POST", "/agent"),
    ("POST", "/nobody"),
    ("POST", "/health"),
    ("POST", "/"),
    ("GET", "/metrics"),
    ("GET", "/nothing"),
    ("PUT", "/_api/chats"),
    ("GET", "//_api/chats"),
    ("GET", "/%2e%2e/_api/chats"),
    ("GET", "/_static/../_api/chats"),
    ("GET", "/_static/%2e%2e/_api/chats"),
    ("GET", "/health/"),
]


async def asked(server: Serving, method: str, path: str, **headers: str) -> httpx.Response:
    """Asks with a path as it is, however odd."""
    async with asyncio.timeout(10), httpx.AsyncClient() as client:
        request = client.build_request(method, server.http, headers=headers)
        request.url = httpx.URL(server.http).copy_with(raw_path=path.encode())
        return await client.send(request)


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[" ".join(route) for route in ROUTES])
@pytest.mark.parametrize("token", [None, "evil"])
async def test_route_wants_a_token(
    server: Serving, hers: Any, method: str, path: str, token: str | None
) -> None:
    """T04, T09: one table; the path is taken as it stands on the wire."""
    response = await asked(server, method, path, **bearer(token))
    refused = response.status_code == 401
    hidden = response.status_code == 404 and path.startswith("/_static/")
    assert refused or hidden, response.text
    assert "secret" not in response.text
    if refused:
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["payload"]["code"] == 14


@pytest.mark.parametrize("path", ["/", "/health"])
async def test_page_and_health_are_open(server: Serving, path: str) -> None:
    """The page holds no secret and must load to ask for a token."""
    assert (await asked(server, "GET", path)).status_code == 200


async def test_open_path_lets_nobody_run_an_agent_of_that_name() -> None:
    """It is open to be looked at."""
    with serving(health) as running:
        outside = await asked(running, "POST", "/health")
        looked = await asked(running, "GET", "/health")
        async with asyncio.timeout(10), httpx.AsyncClient() as client:
            inside = await client.post(
                f"{running.http}/health", json={"message": "x"}, headers=bearer("t")
            )
    assert (outside.status_code, looked.json()) == (401, {"status": "ok"})
    assert inside.json()["text"] == "run"


SOURCES = [
    ({"host": "attacker.test"}, 421),
    ({"host": "127.0.0.1.evil"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://["}, 403),
]


@pytest.mark.parametrize(("headers", "status"), SOURCES)
@pytest.mark.parametrize("path", ["/", "/health", "/_api/arp", "/_arp/v1/events", "/_static/x"])
async def test_foreign_page_and_rebound_name_are_refused_everywhere(
    server: Serving, path: str, headers: dict[str, str], status: int
) -> None:
    """T01, T03: with a valid token too; not even the page loads."""
    response = await asked(server, "GET", path, **headers, **bearer("a"))
    assert response.status_code == status


@pytest.mark.parametrize(("headers", "status"), SOURCES)
async def test_foreign_page_gets_no_socket(
    server: Serving, headers: dict[str, str], status: int
) -> None:
    """T01: refused in the handshake, before 101."""
    assert status in (403, 421)
    with pytest.raises(InvalidStatus) as refused:
        await raw_socket(server, {**headers, **bearer("a")})
    assert refused.value.response.status_code == 403


async def raw_socket(server: Serving, headers: dict[str, str]) -> None:
    host = headers.pop("host", None)
    if host is None:
        async with connect(server.ws, additional_headers=headers):
            return
    url = f"ws://{host}:{server.port}/_arp/v1"
    async with connect(url, host="127.0.0.1", port=server.port, additional_headers=headers):
        return


async def test_own_page_gets_its_socket(server: Serving) -> None:
    """The page that the server itself served."""
    async with raw(server, origin=server.http, additional_headers=bearer("a")) as client:
        ready = await client.hello("own", ["text"])
    assert ready["resume"] == "new"


# -- whose it is ---------------------------------------------------------------------------------


HERS = [
    ("GET", "/_api/chats/{}"),
    ("DELETE", "/_api/chats/{}"),
    ("GET", "/_api/runs/{}.t1"),
    ("GET", "/_api/runs?session_id={}"),
    ("GET", "/_api/runs/stream/{}.t1"),
    ("GET", "/_arp/v1/events?session_id={}"),
]


@pytest.mark.parametrize(("method", "path"), HERS, ids=[" ".join(route) for route in HERS])
async def test_session_of_somebody_else_answers_as_one_that_is_not(
    server: Serving, hers: Any, method: str, path: str
) -> None:
    """T05, T06: 404, the same body, 0 bytes of the other's content."""
    theirs = await asked(server, method, path.format("hers"), **bearer("b"))
    if "events" not in path:  # a stream makes the session that is not there
        none = await asked(server, method, path.format("none"), **bearer("b"))
        assert none.status_code == 404
        assert theirs.text.replace("hers", "…") == none.text.replace("none", "…")
    assert theirs.status_code == 404
    assert "secret" not in theirs.text


@pytest.mark.parametrize("carrier", ["query", "hello", "last-event-id"])
async def test_resume_place_is_no_credential_for_a_stream(
    server: Serving, hers: Any, carrier: str
) -> None:
    """T06: her epoch and seq open nothing to him."""
    resume = {"epoch": hers["epoch"], "seq": 0}
    headers, hello = bearer("b"), {"session_id": "hers", "resume": resume}
    query = {"session_id": "hers"}
    if carrier == "hello":
        query = {"hello": base64.urlsafe_b64encode(json.dumps(hello).encode()).decode()}
    elif carrier == "last-event-id":
        headers["last-event-id"] = f"{hers['epoch']}-0"
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.get("/_arp/v1/events", params=query, headers=headers)
    assert response.status_code == 404
    assert response.json()["payload"]["code"] == 8


async def test_resume_place_is_no_credential_for_a_socket(server: Serving, hers: Any) -> None:
    """T06, T07: nor does an input reach her session, whatever it names."""
    async with raw(server, additional_headers=bearer("b")) as client:
        resume = {"epoch": hers["epoch"], "seq": 0}
        await client.send(hello_of("hers", resume=resume, owner="ada", role="admin"))
        refused = await client.until("error")
        await client.say("hers", "let me in", user="ada")
        again = await client.until("error")
        types = {message["type"] for message in client.seen}
    assert [refused["payload"]["code"], again["payload"]["code"]] == [8, 8]
    assert types == {"hello", "error"}


def hello_of(session_id: str, **more: Any) -> dict[str, Any]:
    capabilities = {"components": ["text"]}
    hello = {"v": 1, "type": "hello", "session_id": session_id, "capabilities": capabilities}
    return {**hello, **more}


@pytest.mark.parametrize("path", ["/_arp/v1/input", "/agent"])
async def test_input_to_a_session_of_somebody_else_is_refused(
    server: Serving, hers: Any, path: str
) -> None:
    """T07: identity comes from the connection alone."""
    message = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "let me in"}}
    body = {**message, "session_id": "hers", "message": "let me in", "owner": "ada"}
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        response = await client.post(path, json=body, headers=bearer("b"))
        chat = await client.get("/_api/chats/hers", headers=bearer("a"))
    assert response.status_code == 404
    assert len(chat.json()["messages"]) == 2


async def test_lists_show_only_what_is_ones_own(server: Serving, hers: Any) -> None:
    """Whatever the query claims."""
    async with asyncio.timeout(10), httpx.AsyncClient(base_url=server.http) as client:
        for token, expected in (("a", True), ("b", False)):
            for query in ("", "?owner=ada", "?workflow=agent", "?before=9999~z"):
                chats = (await client.get(f"/_api/chats{query}", headers=bearer(token))).json()
                ids = [chat["id"] for chat in chats]
                assert ("hers" in ids) is expected
            runs = (await client.get("/_api/runs", headers=bearer(token))).json()
            assert ("hers.t1" in [run["id"] for run in runs]) is expected


async def test_two_users_may_not_share_a_name_of_a_session(server: Serving, hers: Any) -> None:
    """Bob's own session has another; hers is hers."""
    async with raw(server, additional_headers=bearer("b")) as client:
        await client.send(hello_of("hers"))
        await client.until("error")
        ready = await client.hello("his", ["text"])
    assert ready["session_id"] == "his"


# -- tokens in hello -----------------------------------------------------------------------------


async def test_token_in_hello_opens_a_socket_that_came_without(server: Serving) -> None:
    """Browsers cannot set headers on a WebSocket."""
    async with raw(server) as client:
        await client.say("early", "x")
        early = await client.until("error")
        await client.send(hello_of("h", token="evil"))
        wrong = await client.until("error")
        await client.send(hello_of("h", token="b"))
        ready = await client.until("session")
    assert [early["payload"]["code"], wrong["payload"]["code"]] == [14, 14]
    assert ready["session_id"] == "h"


async def test_socket_that_shows_no_token_in_time_is_closed(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T17: 1008; whoever has shown one stays."""
    monkeypatch.setattr("arp.hub.peers.peer.HELLO_DEADLINE_S", 0.2)
    async with raw(server) as late, raw(server) as known:
        await known.send(hello_of("k", token="a"))
        await known.until("session")
        with pytest.raises(ConnectionClosed) as closed:
            await late.next()
        await known.say("k", "x")
        await known.until("commit", final=True)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def test_sockets_without_a_token_are_few(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T17: a budget before authentication; those with a token are not held up; places free up."""
    monkeypatch.setattr("arp.server.ports.sockets.MAX_UNKNOWN_PEERS", 3)
    strangers = [await connect(server.ws) for _ in range(3)]
    with pytest.raises(InvalidStatus):
        await connect(server.ws)
    async with raw(server, additional_headers=bearer("a")) as known:
        await known.hello("k2", ["text"])
    await strangers[0].send(json.dumps(hello_of("k3", token="b")))
    peers = server.application.state.unknown_peers
    await becomes(lambda: len(peers) == 2)
    async with connect(server.ws) as another:
        assert json.loads(await another.recv())["type"] == "hello"
    for stranger in strangers:
        await stranger.close()
    await becomes(lambda: not peers)


async def test_one_token_for_all_is_checked_the_same_way() -> None:
    """`--token`: header or hello, and everybody shares what there is."""
    shared = App(title="Shared", access=Access(token="s3cret"))
    shared.agent("agent")(agent)
    with serving(shared) as running:
        async with raw(running) as client:
            await client.send(hello_of("s", token="wrong"))
            refused = await client.until("error")
            await client.send(hello_of("s", token="s3cret"))
            await client.until("session")
        async with raw(running, additional_headers=bearer("s3cret")) as other:
            await said(other)
        status = (await asked(running, "GET", "/_api/chats")).status_code
    assert refused["payload"]["code"] == 14
    assert "s3cret" not in json.dumps(refused)
    assert status == 401


async def said(client: Raw) -> None:
    await client.hello("s", ["text"], "input")
    await client.say("s", "x")
    await client.until("commit", final=True)
