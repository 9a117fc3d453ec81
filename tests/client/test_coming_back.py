"""The whole client against servers that go away, over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arp.client.callbacks import Callbacks
from arp.client.client import ArpClient, connect
from arp.client.errors import SessionDeleted
from arp.client.events import Disconnected
from arp.protocol.errors import (
    ArpError,
    PermissionDenied,
    SessionNotFound,
    Unauthenticated,
    UnknownObject,
)
from tests.client import agent_messages as say
from tests.client.agent_messages import STORY, STORY_SCREEN
from tests.client.loopback import Peer, websocket_server
from tests.client.talks import (
    AT_ONCE,
    connections,
    cut_at_once,
    seen,
    shout,
)


async def test_cut_connection_is_resumed_where_it_was() -> None:
    """Source: protocol.md 2.3."""
    hellos: list[Any] = []

    async def first(peer: Peer) -> None:
        hellos.append(await peer.welcome())
        await peer.say(*STORY[:4])
        await peer.hear()
        peer.cut()

    async def second(peer: Peer) -> None:
        hellos.append(await peer.welcome("replay", 11))
        heard = await peer.hear()
        await peer.say(say.ack(heard["id"]), *STORY[4:])
        await peer.socket.wait_closed()

    async with websocket_server(connections(first, second)) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            await seen(events, lambda event: getattr(event, "seq", 0) == 4)
            input_id = await client.send_text("still there?")
            assert (await client.acknowledged(input_id)).turn_id == "t1"
            await client.turn_done("t1")
            assert client.screen.canonical() == STORY_SCREEN
    assert "resume" not in hellos[0]
    assert hellos[1]["session_id"] == "s1"
    assert hellos[1]["resume"] == {"epoch": "e1", "seq": 4}


async def test_input_sent_while_offline_is_delivered_once_connected() -> None:
    async with websocket_server(connections(cut_at_once, shout)) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        input_id = await client.send_text("early")
        assert not client.connected
        async with client:
            assert await client.turn_of(input_id) == "t0"
            await client.turn_done()
            assert client.screen.text("t0") == "EARLY"


@pytest.mark.parametrize("code", [1001, 1011, 1012, 1013])
async def test_server_that_restarts_is_come_back_to(code: int) -> None:
    async def stop(peer: Peer) -> None:
        await peer.welcome()
        await peer.socket.close(code, "restarting")

    async with websocket_server(connections(stop, shout)) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            lost = await seen(events, lambda event: isinstance(event, Disconnected))
            assert lost[-1].reason == f"closed with {code}: restarting"
            assert lost[-1].retry_in_s is not None
            assert (await client.ask("hi")).status == "completed"


async def test_session_that_was_deleted_ends_the_client_and_is_not_made_anew() -> None:
    """Source: protocol.md 5, close codes: 1000 comes back only to a new session."""
    opened: list[Any] = []

    async def delete(peer: Peer) -> None:
        opened.append(await peer.welcome())
        await peer.socket.close(1000, "the session was deleted")

    async with websocket_server(delete) as url, asyncio.timeout(30):
        client = ArpClient(url, session_id="mine", backoff=AT_ONCE)
        events = client.events()
        async with client:
            lost = await seen(events, lambda event: isinstance(event, Disconnected))
            with pytest.raises(SessionDeleted, match="the session was deleted") as ended:
                await client.ask("anyone?")
    assert lost[-1] == Disconnected("closed with 1000: the session was deleted", None)
    assert isinstance(ended.value, SessionNotFound)
    assert client.failure is ended.value
    assert len(opened) == 1


async def test_refusal_ends_the_client_and_everyone_who_waits() -> None:
    errors: list[Any] = []

    async def refuse(peer: Peer) -> None:
        await peer.welcome()
        await peer.hear()
        await peer.socket.close(1008, "not yours")

    async with websocket_server(refuse) as url, asyncio.timeout(30):
        client = ArpClient(url, callbacks=Callbacks(on_error=errors.append), backoff=AT_ONCE)
        events = client.events()
        async with client:
            waiting = asyncio.ensure_future(client.turn_done("t9"))
            with pytest.raises(PermissionDenied, match="not yours"):
                await client.ask("hi")
            with pytest.raises(PermissionDenied):
                await waiting
            with pytest.raises(PermissionDenied):
                await client.send_text("more")
            with pytest.raises(PermissionDenied):
                await client.ready()
            told = await seen(events, lambda _: False)
            assert told[-1] == Disconnected("closed with 1008: not yours", None)
            assert isinstance(client.failure, PermissionDenied)
            assert [error.code for error in errors] == [15]
        assert isinstance(client.failure, PermissionDenied)


@pytest.mark.parametrize(("code", "kind"), [(8, SessionNotFound), (14, Unauthenticated)])
async def test_refused_hello_ends_the_client_at_once(code: int, kind: type[ArpError]) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.say(say.HELLO)
        await peer.hear()
        await peer.say(say.error("no such session", code))
        await peer.socket.wait_closed()

    async with websocket_server(refuse) as url, asyncio.timeout(30):
        with pytest.raises(kind, match="no such session"):
            async with connect(url, session_id="theirs"):
                raise AssertionError


async def test_hello_that_is_refused_for_now_is_said_again() -> None:
    async def refuse(peer: Peer) -> None:
        await peer.say(say.HELLO, say.error("the disk is full", 19))
        await peer.socket.wait_closed()

    async with (
        websocket_server(connections(refuse, shout)) as url,
        asyncio.timeout(30),
        ArpClient(url, backoff=AT_ONCE) as client,
    ):
        assert (await client.ask("hi")).status == "completed"


async def test_snapshot_takes_the_place_of_the_screen() -> None:
    async def first(peer: Peer) -> None:
        await peer.welcome()
        await peer.say(say.delta("old", 1, "t0"), say.delta("old", 2, "t1"))
        await peer.hear()
        peer.cut()

    async def second(peer: Peer) -> None:
        await peer.welcome("snapshot", 9)
        await peer.say(
            say.render(say.text("t1/1", "new"), None), say.commit(None, final=True), say.commit(9)
        )
        heard = await peer.hear()
        await peer.say(say.ack(heard["id"]))
        await peer.socket.wait_closed()

    texts: list[str] = []
    async with websocket_server(connections(first, second)) as url, asyncio.timeout(30):
        client = ArpClient(url, callbacks=Callbacks(on_delta=texts.append), backoff=AT_ONCE)
        events = client.events()
        async with client:
            await seen(events, lambda event: getattr(event, "seq", 0) == 2)
            before = client.screen
            gone = asyncio.ensure_future(client.turn_done("t0"))
            await asyncio.sleep(0)
            await client.acknowledged(await client.send_text("x"))
            assert client.screen is not before
            assert client.screen.text("t1") == "new"
            assert list(client.screen.turns) == ["t1"]
            with pytest.raises(UnknownObject, match="t0 is no longer on the screen"):
                await gone
    assert texts == ["old", "old"]
