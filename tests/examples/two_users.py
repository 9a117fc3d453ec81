"""Two users of one service with a login of its own: what each sees, over real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arp import App
from arp.protocol.errors import ErrorCode

NOTE = "a note of Ann's"


def cookie_of(client: httpx.AsyncClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def renderer(client: httpx.AsyncClient, path: str) -> AbstractAsyncContextManager[ClientConnection]:
    """Connects a WebSocket as the browser of this client does."""
    address = str(client.base_url).rstrip("/")
    headers = {"cookie": cookie_of(client), "origin": address}
    return connect(address.replace("http", "ws") + path, additional_headers=headers)


async def call(client: httpx.AsyncClient, method: str, **params: Any) -> Any:
    """Asks the control plane as the inspector does; returns a result, or the code of an error."""
    async with renderer(client, "/agent/_api/rpc") as socket:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        await socket.send(json.dumps(body))
        answer = json.loads(await socket.recv())
    return answer["result"] if "result" in answer else answer["error"]["data"]["code"]


async def check_apart(ann: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    """Ann's session, history, files and facts are hers alone."""
    form = {"message": NOTE, "session_id": "of-ann"}
    files = {"files": ("photo.txt", b"her photo", "text/plain")}
    said = await ann.post("/agent/notes", data=form, files=files)
    assert NOTE in said.json()["text"]
    assert said.json()["text"].lower().startswith("ann, these are your notes")
    # Sessions and history
    assert [row["id"] for row in (await ann.get("/agent/_api/chats")).json()] == ["of-ann"]
    assert (await bob.get("/agent/_api/chats")).json() == []
    refused = await bob.post("/agent/notes", json={"message": "x", "session_id": "of-ann"})
    assert refused.status_code == 404
    for path in ("chats/of-ann", "sessions/of-ann/events", "runs?session_id=of-ann"):
        assert (await ann.get(f"/agent/_api/{path}")).status_code == 200, path
        assert (await bob.get(f"/agent/_api/{path}")).status_code == 404, path
    # Files
    messages = (await ann.get("/agent/_api/chats/of-ann")).json()["messages"]
    sha256 = json.dumps(messages).partition('"sha256": "')[2][:64]
    place = base64.urlsafe_b64encode(b"of-ann").decode().rstrip("=")
    file = f"/agent/_api/blobs/s{place}/{sha256}/photo.txt"
    assert (await ann.get(file)).text == "her photo"
    assert (await bob.get(file)).status_code == 404
    # The inspector
    listed = (await call(ann, "agentSession/list"))["sessions"]
    assert [row["sessionId"] for row in listed] == ["of-ann"]
    assert (await call(bob, "agentSession/list"))["sessions"] == []
    assert await call(bob, "agentSession/read", sessionId="of-ann") == ErrorCode.SESSION_NOT_FOUND
    # And Bob has his own.
    own = await bob.post("/agent/notes", json={"message": "a note of Bob's", "session_id": "his"})
    assert NOTE not in own.json()["text"]


async def check_nobody(url: str, login_url: str) -> None:
    """Who has not signed in gets the page, which says where to."""
    async with httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/agent/")).status_code == 200
        about = (await client.get("/agent/_api/user")).json()
        assert (about["user"], about["login_url"]) == (None, login_url)
        assert (await client.get("/agent/_api/chats")).status_code == 401
        forged = {"cookie": "session=x; sessionid=x"}
        assert (await client.get("/agent/_api/chats", headers=forged)).status_code == 401


async def check_leaving(
    app: App, ann: httpx.AsyncClient, leave: Callable[[], Awaitable[object]]
) -> None:
    """An open connection ends when the service has signed its user out."""
    leases = app.asgi.state.leases
    assert leases.recheck_s == 30
    leases.recheck_s = 0.1
    try:
        async with renderer(ann, "/agent/_arp/v1") as socket:
            assert json.loads(await socket.recv())["capabilities"]["title"] == "Notes"
            await leave()
            code = 0
            try:
                while True:
                    await socket.recv()
            except ConnectionClosed as closed:
                code = closed.rcvd.code if closed.rcvd is not None else 0
            assert code == 1008
        assert (await ann.get("/agent/_api/chats")).status_code == 401
    finally:
        leases.recheck_s = 30
