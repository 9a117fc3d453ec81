"""One hook for every way in: it gets the whole request, and agents get the user that it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import connect

from arp import Access, App, IncomingConnection, Turn, User
from tests.server.rpc import rpc
from tests.support.serving import Serving, serving

ASKED: list[IncomingConnection] = []

ADA = {"session": "ada's"}
"""A cookie of the author's own log-in."""


def authenticate(connection: IncomingConnection) -> User | None:
    """Knows Ada by a cookie, by a token, or by what stands in the query."""
    ASKED.append(connection)
    keys = connection.cookies.get("session"), connection.token, connection.query.get("key")
    return User("ada", "Ada L.", ["admin"], {"by": connection.kind}) if "ada's" in keys else None


app = App(access=Access(authenticate=authenticate))


@app.agent
async def agent(turn: Turn) -> None:
    """Says for whom it works."""
    user = turn.user
    await turn.say(f"{user.name} {user.display_name} {list(user.roles)} {user.claims['by']}")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


@pytest.fixture(autouse=True)
def nobody_asked() -> None:
    ASKED.clear()


TEXT = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "x"}, "id": "i"}


async def answer(socket: Any, *messages: dict[str, Any]) -> str:
    """Sends messages, and gives all text until the end of the turn."""
    for message in messages:
        await socket.send(json.dumps(message))
    text = ""
    while True:
        message = json.loads(await socket.recv())
        if message["type"] == "delta":
            text += message["payload"]["delta"]
        elif message["type"] == "commit" and message.get("final"):
            return text


async def test_http_asks_once_and_the_agent_has_the_user(server: Serving) -> None:
    async with httpx.AsyncClient(base_url=server.http, cookies=ADA) as client:
        answered = await client.post("/agent?a=1", json={"message": "x"})
    assert answered.json()["text"] == "ada Ada L. ['admin'] http"
    (connection,) = ASKED
    assert (connection.kind, connection.path, connection.client) == ("http", "/agent", "127.0.0.1")
    assert connection.query == {"a": "1"}
    assert connection.headers["Host"] == f"127.0.0.1:{server.port}"
    assert connection.scope["method"] == "POST"


async def test_key_in_the_query_opens_a_stream_once(server: Serving) -> None:
    async with (
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events?key=ada%27s") as answered,
    ):
        assert answered.status_code == 200
    assert len(ASKED) == 1


async def test_websocket_asks_once_at_its_handshake(server: Serving) -> None:
    headers = {"cookie": "session=ada's"}
    async with connect(server.ws, additional_headers=headers) as socket:
        for number in range(2):
            text = await answer(socket, {**TEXT, "id": f"i{number}"})
            assert text == "ada Ada L. ['admin'] websocket"
    (connection,) = ASKED
    assert (connection.kind, connection.path) == ("websocket", "/_arp/v1")


async def test_token_in_a_hello_is_asked_with_the_same_handshake(server: Serving) -> None:
    hello = {"v": 1, "type": "hello", "token": "ada's", "capabilities": {"components": ["text"]}}
    async with connect(f"{server.ws}?a=1") as socket:
        text = await answer(socket, hello, TEXT)
        assert text == "ada Ada L. ['admin'] websocket"
    before, shown = ASKED
    assert (before.token, shown.token) == ("", "ada's")
    assert before.query == shown.query == {"a": "1"}


async def test_program_that_begins_a_turn_is_its_user(server: Serving) -> None:
    async with rpc(server.port, additional_headers={"cookie": "session=ada's"}) as program:
        begun = await program.call("agentSession/turn/start", input={"text": "x"})
    async with httpx.AsyncClient(base_url=server.http, cookies=ADA) as client:
        url = f"/_api/runs/stream/{begun['sessionId']}.{begun['turnId']}"
        told = (await client.get(url)).text
    assert "ada Ada L. ['admin'] websocket" in told


async def test_who_is_not_known_is_refused_as_ever(server: Serving) -> None:
    async with httpx.AsyncClient(base_url=server.http) as client:
        refused = await client.get("/_api/chats?key=eve", headers={"cookie": "session=eve"})
    assert refused.status_code == 401
    assert len(ASKED) == 1


class SignedIn:
    """Middleware of an author's own application, which knows who is signed in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "user": {"login": "bob"}}, receive, send)


async def test_hook_of_a_mounted_app_sees_what_the_middleware_in_front_knows() -> None:
    mounted = App(access=Access(authenticate=lambda connection: connection.scope["user"]["login"]))

    @mounted.agent
    async def greet(turn: Turn) -> None:
        await turn.say(turn.user.name)

    outer = Starlette(routes=[Mount("/deep", mounted.asgi)], middleware=[Middleware(SignedIn)])
    transport = httpx.ASGITransport(outer)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answered = await client.post("/deep/greet", json={"message": "x"})
    await mounted.asgi.aclose()
    assert answered.json()["text"] == "bob"
