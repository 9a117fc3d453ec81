"""A token that expires or is revoked closes what is open with it, on every transport (T06, T11)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from arp import Access, App, IncomingConnection, Turn, User
from arp.access.tokens import IssuedToken, TokenFile, new_token_id
from arp.live.settings import HubSettings
from arp.protocol.errors import ErrorCode
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

BOUND_S = 1.0
"""Within which everything is closed; half of it is for a machine under load."""

BRIEF = HubSettings(stop_grace_s=0.1)
"""The agent never ends by itself."""

app = App("Expiry", settings=BRIEF)


@app.agent
async def agent(turn: Turn) -> None:
    """Talks until it is stopped, or says who asks."""
    if turn.text == "who":
        await turn.say(turn.user.name)
        return
    while True:
        await turn.say("secret ")
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expiry") / "app.db"


@pytest.fixture(scope="module")
def tokens(ledger: Path) -> TokenFile:
    return TokenFile(ledger.with_suffix(".tokens"))


@pytest.fixture(scope="module")
def server(ledger: Path, tokens: TokenFile) -> Iterator[Serving]:
    issue(tokens, "nobody")
    with serving(app, ledger=f"sqlite:{ledger}") as running:
        yield running


def issue(tokens: TokenFile, user: str = "ann", for_s: float = 600) -> tuple[str, str]:
    """Creates a token; returns its text and its id."""
    now = time.time()
    issued = IssuedToken(new_token_id(), user, now, now + for_s)
    return tokens.create(issued), issued.id


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def frame(**message: Any) -> str:
    return json.dumps({"v": 1, **message})


TALK = frame(type="input", input_type="text", data={"text": "talk"}, id="i")


@asynccontextmanager
async def by_header(server: Serving, token: str) -> AsyncIterator[ClientConnection]:
    async with connect(server.ws, additional_headers=bearer(token)) as socket:
        yield socket


@asynccontextmanager
async def by_hello(server: Serving, token: str) -> AsyncIterator[ClientConnection]:
    async with connect(server.ws) as socket:
        hello = {"capabilities": {"components": ["text"]}, "token": token}
        await socket.send(frame(type="hello", **hello))
        yield socket


async def until_closed(socket: ClientConnection) -> tuple[int, float]:
    """Reads until the server closes; returns its code, and when that was."""
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else 0, time.time()


async def delta(socket: ClientConnection) -> None:
    """Reads until the agent has said something."""
    while json.loads(await socket.recv())["type"] != "delta":
        pass


@pytest.mark.parametrize("way", [by_header, by_hello])
async def test_revoked_token_closes_its_websocket_while_an_agent_talks(
    server: Serving, tokens: TokenFile, way: Any
) -> None:
    token, name = issue(tokens)
    async with way(server, token) as socket:
        await socket.send(TALK)
        await delta(socket)
        revoked = time.time()
        tokens.revoke(name, revoked)
        code, closed = await until_closed(socket)
    assert code == 1008
    assert closed - revoked < BOUND_S
    async with way(server, token) as socket:
        answers = [json.loads(await socket.recv())]
        await socket.send(TALK)
        while answers[-1]["type"] != "error":
            answers.append(json.loads(await socket.recv()))
    assert [one["type"] for one in answers] == ["hello", "error"]
    assert answers[1]["payload"]["code"] == ErrorCode.UNAUTHENTICATED


async def test_expired_token_closes_its_websocket_at_that_moment(
    server: Serving, tokens: TokenFile
) -> None:
    token, _ = issue(tokens, for_s=0.6)
    until = time.time() + 0.6
    async with by_header(server, token) as socket:
        await socket.send(TALK)
        await delta(socket)
        code, closed = await until_closed(socket)
    assert code == 1008
    assert -0.1 < closed - until < BOUND_S


async def test_client_that_does_not_leave_is_heard_no_longer(
    server: Serving, tokens: TokenFile
) -> None:
    """A client may ignore the close frame, and go on sending over the same connection."""
    token, name = issue(tokens, "mute")
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"GET /_arp/v1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
    head += "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    head += f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(head.encode())
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    tokens.revoke(name, time.time())
    read = b""
    while b"the token or the login has ended" not in read:
        read += await reader.read(65536)
    with contextlib.suppress(ConnectionError):
        for _ in range(3):
            writer.write(Frame(Opcode.TEXT, TALK.encode()).serialize(mask=True))
            await writer.drain()
        writer.write(Frame(Opcode.CLOSE, b"\x03\xf0").serialize(mask=True))
        assert await reader.read() == b""
    writer.close()
    other, _ = issue(tokens, "mute")
    async with httpx.AsyncClient(base_url=server.http, headers=bearer(other)) as client:
        assert (await client.get("/_api/runs")).json() == []


async def test_revoked_token_ends_the_control_plane(server: Serving, tokens: TokenFile) -> None:
    token, name = issue(tokens)
    url = server.ws.replace("/_arp/v1", "/_api/rpc")
    async with connect(url, additional_headers=bearer(token)) as socket:
        begin = {"input": {"text": "talk"}, "sessionId": "rpc"}
        await socket.send(rpc(1, "agentSession/turn/start", begin))
        assert "result" in json.loads(await socket.recv())
        await socket.send(rpc(2, "agentSession/subscribe", {"sessionId": "rpc"}))
        while json.loads(await socket.recv()).get("method") != "agentSession/event":
            pass
        revoked = time.time()
        tokens.revoke(name, revoked)
        code, closed = await until_closed(socket)
    assert code == 1008
    assert closed - revoked < BOUND_S


def rpc(number: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


STREAMS = {
    "renderer": ("GET", "/_arp/v1/events?session_id=sse", None),
    "workflow": ("POST", "/agent", {"message": "talk"}),
    "chats": ("GET", "/_api/chat-events", None),
    "facts": ("GET", "/_api/sessions/sse/events", None),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_revoked_token_ends_every_event_stream_and_says_so(
    server: Serving, tokens: TokenFile, name: str
) -> None:
    method, path, body = STREAMS[name]
    token, token_id = issue(tokens)
    headers = {**bearer(token), "accept": "text/event-stream"}
    async with httpx.AsyncClient(base_url=server.http, headers=headers) as client:
        asked = {"message": "who", "session_id": "sse"}
        (await client.post("/agent", json=asked, headers=bearer(token))).raise_for_status()
        async with client.stream(method, path, json=body) as stream:
            chunks = stream.aiter_text()
            text = await anext(chunks)
            revoked = time.time()
            tokens.revoke(token_id, revoked)
            async for chunk in chunks:
                text += chunk
            closed = time.time()
        assert stream.status_code == 200
        if name == "workflow":
            assert "secret" in text
        else:
            assert text.endswith(
                'event: close\ndata: {"code":1008,"reason":"the token or the login has ended"}\n\n'
            )
        assert closed - revoked < BOUND_S
        assert (await client.request(method, path, json=body)).status_code == 401


def running(server: Serving, user: str) -> bool:
    """Return whether a turn of a user has begun."""
    sessions = list(server.application.state.running.sessions.values())  # type: ignore[union-attr]
    return any(live.session.head.owner == user and live.session.running for live in sessions)


async def test_answer_that_is_not_there_yet_is_refused(server: Serving, tokens: TokenFile) -> None:
    token, name = issue(tokens, "ann3")
    async with httpx.AsyncClient(base_url=server.http, headers=bearer(token)) as client:
        waiting = asyncio.create_task(client.post("/agent", json={"message": "talk"}))
        await becomes(lambda: running(server, "ann3"))
        tokens.revoke(name, time.time())
        answered = await waiting
    assert answered.status_code == 401
    assert answered.json()["payload"]["error"] == "the token or the login has ended"
    assert "secret" not in answered.text


async def test_cookie_for_files_ends_with_its_token(server: Serving, tokens: TokenFile) -> None:
    token, name = issue(tokens)
    async with httpx.AsyncClient(base_url=server.http) as client:
        given = await client.post("/_api/blobs/cookie", headers=bearer(token))
        assert given.status_code == 204
        cookie = {"cookie": given.headers["set-cookie"].partition(";")[0]}
        path = "/_api/blobs/sc3Nl/" + "0" * 64 + "/x.txt"
        assert (await client.get(path, headers=cookie)).status_code == 404
        tokens.revoke(name, time.time())
        assert (await client.get(path, headers=cookie)).status_code == 401


async def test_each_user_of_a_token_has_sessions_of_their_own(
    server: Serving, tokens: TokenFile
) -> None:
    (ann, _), (bob, _) = issue(tokens, "ann2"), issue(tokens, "bob2")
    async with httpx.AsyncClient(base_url=server.http) as client:
        asked = {"message": "who", "session_id": "of-ann"}
        answered = await client.post("/agent", json=asked, headers=bearer(ann))
        assert answered.json()["text"] == "ann2"
        refused = await client.post("/agent", json=asked, headers=bearer(bob))
        assert refused.status_code == 404
        assert (await client.get("/_api/chats", headers=bearer(bob))).json() == []


async def test_first_token_closes_a_server_that_was_open(tmp_path: Path) -> None:
    with serving(app, ledger=f"sqlite:{tmp_path / 'open.db'}") as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            assert (await client.get("/_api/chats")).status_code == 200
            token, _ = issue(TokenFile(tmp_path / "open.tokens"))
            assert (await client.get("/_api/chats")).status_code == 401
            assert (await client.get("/_api/chats", headers=bearer(token))).status_code == 200


async def test_file_of_tokens_that_is_broken_lets_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broken.tokens"
    token, _ = issue(TokenFile(path))
    path.write_bytes(b"nothing that SQLite reads" * 200)
    with serving(app, ledger=f"sqlite:{tmp_path / 'broken.db'}") as server:
        async with httpx.AsyncClient(base_url=server.http) as client:
            assert (await client.get("/_api/chats", headers=bearer(token))).status_code == 401
            assert (await client.get("/_api/chats")).status_code == 401
    assert "the tokens cannot be read" in caplog.text
    assert token not in caplog.text


async def test_user_of_a_hook_may_come_in_until_their_time_is_over() -> None:
    until = time.time() + 0.5

    def authenticate(connection: IncomingConnection) -> User | None:
        return User("ada", expires_at=until) if connection.token == "a" else None

    hooked = App(access=Access(authenticate=authenticate), settings=BRIEF)
    hooked.agent(agent)
    with serving(hooked) as server:
        async with by_header(server, "a") as socket:
            code, closed = await until_closed(socket)
        assert code == 1008
        assert -0.1 < closed - until < BOUND_S
        async with httpx.AsyncClient(base_url=server.http, headers=bearer("a")) as client:
            assert (await client.get("/_api/chats")).status_code == 401
