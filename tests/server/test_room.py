"""What is in use counts for a user and an address before it counts for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from arp import Access, App, Bounds, Turn
from arp.hub.directory import Principal
from arp.protocol.errors import RateLimited
from arp.server.room import Most, Room, Seat
from tests.serving import Serving, serving

ADA, BOB = ("user 'ada'", "address 1"), ("user 'bob'", "address 2")


def test_user_and_address_are_refused_before_all_are() -> None:
    room = Room("things", Most(2, 3, 4))
    room.take(ADA, 2)
    with pytest.raises(RateLimited, match="user 'ada' has things up to the bound"):
        room.take(ADA)
    room.take(ADA[1:])
    with pytest.raises(RateLimited, match="address 1 has things up to the bound"):
        room.take(("user 'eve'", "address 1"))
    room.take(BOB)
    with pytest.raises(RateLimited, match="there are things up to the bound"):
        room.take(BOB)
    room.give(BOB)
    room.take(("user 'eve'", "address 3"))
    assert room.used == 4


def test_what_is_given_back_leaves_nothing() -> None:
    room = Room("things", Most(9, 9, 9))
    room.take(ADA, 3)
    room.give(ADA, 3)
    assert (room.used, len(room._by_key)) == (0, 0)


def test_seat_counts_for_the_user_as_soon_as_that_is_known() -> None:
    room = Room("seats", Most(1, 9, 9))
    first, second = Seat(room, Principal("", "1")), Seat(room, Principal("", "1"))
    first.known("ada")
    with pytest.raises(RateLimited, match="user 'ada'"):
        second.known("ada")
    first.leave()
    second.known("ada")
    second.leave()
    assert (room.used, len(room._by_key)) == (0, 0)


USERS = {"Bearer a": "ada", "Bearer b": "bob"}


@pytest.fixture
def server() -> Iterator[Serving]:
    access = Access(
        authenticate=lambda headers: USERS.get(headers.get("authorization", "")),
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
        async with await until_served(server) as again:
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
