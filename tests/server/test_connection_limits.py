"""Connections count for a user and an address before they count for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from arp import Access, App, Bounds, Turn
from tests.support.serving import Serving, serving

USERS = {"a": "ada", "b": "bob"}


@pytest.fixture
def server() -> Iterator[Serving]:
    access = Access(
        authenticate=lambda connection: USERS.get(connection.token),
        bounds=Bounds(max_connections_per_user=2),
    )
    app = App(title="Two users", access=access)

    @app.agent
    async def agent(turn: Turn) -> None:
        await turn.say(turn.text)

    with serving(app) as running:
        yield running


def dial(server: Serving, token: str | None, path: str = "/_arp/v1") -> connect:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=headers)


async def told(socket: ClientConnection, type_name: str) -> dict[str, object]:
    async with asyncio.timeout(15):
        while True:
            message: dict[str, object] = json.loads(await socket.recv())
            if message["type"] == type_name:
                return message


async def test_user_with_too_many_connections_is_told_and_others_are_served(
    server: Serving,
) -> None:
    """By WebSocket, by the control plane, by HTTP; and one that leaves makes room."""
    async with asyncio.timeout(30), dial(server, "a") as first, dial(server, "a", "/_api/rpc"):
        for path in ("/_arp/v1", "/_api/rpc"):
            with pytest.raises(InvalidStatus) as refused:
                await dial(server, "a", path)
            answer = refused.value.response
            assert answer.status_code == 429
            assert json.loads(answer.body or b"")["payload"]["code"] == 16
        async with httpx.AsyncClient(base_url=server.http) as client:
            headers = {"authorization": "Bearer a"}
            assert (await client.get("/_api/chats", headers=headers)).status_code == 429
        async with dial(server, "b") as other:
            await told(other, "hello")
        await first.close()
        again = await until_served(server)
        async with again:
            await told(again, "hello")


async def until_served(server: Serving) -> ClientConnection:
    while True:
        try:
            return await dial(server, "a")
        except InvalidStatus:
            await asyncio.sleep(0.02)


async def test_token_in_a_hello_counts_for_its_user(server: Serving) -> None:
    hello = {"v": 1, "type": "hello", "token": "a", "capabilities": {"components": ["text"]}}
    async with asyncio.timeout(30), dial(server, "a"), dial(server, None) as second:
        await second.send(json.dumps(hello))
        await told(second, "session")
        async with dial(server, None) as third:
            await third.send(json.dumps(hello))
            error = await told(third, "error")
            await second.close()
            while error["type"] == "error":
                assert isinstance(error["payload"], dict)
                assert (error["payload"]["code"], error["payload"]["retryable"]) == (16, True)
                await third.send(json.dumps(hello))
                error = json.loads(await third.recv())
            assert error["type"] == "hello"  # once more: now it lists the agents
            assert isinstance(error["capabilities"], dict)
            assert [one["name"] for one in error["capabilities"]["workflows"]] != []
            await told(third, "session")
