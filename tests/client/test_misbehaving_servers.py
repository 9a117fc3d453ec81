"""Servers that break the rules, over real sockets: the client says so, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

import pytest

from arp.client.client import ArpClient
from arp.client.errors import printable
from arp.client.events import Connected, Disconnected
from arp.protocol.errors import ErrorCode
from arp.protocol.messages import Delta, ErrorMessage
from tests.client import agent_messages as say
from tests.client.agent_messages import STORY, STORY_SCREEN
from tests.client.loopback import Answer, Peer, Request, http_server, websocket_server
from tests.client.talks import AT_ONCE, connections, is_final, seen

RESUMES: Any = {
    **say.HELLO,
    "capabilities": {**say.HELLO["capabilities"], "features": ["resume"]},
}
"""The hello of a server from which a whole screen can be had again."""


def session_of(hello: Any) -> list[Any]:
    """What brings the story, to one who comes with nothing: all of it under one commit."""
    assert "resume" not in hello
    told = [{name: value for name, value in one.items() if name != "seq"} for one in STORY]
    return [say.session("snapshot", 11), *told, say.message("commit", 11, turn=None)]


async def tell_whole_story(peer: Peer) -> None:
    await peer.say(RESUMES)
    await peer.say(*session_of(await peer.hear()))
    await peer.socket.wait_closed()


BAD = [
    pytest.param("{", id="not JSON"),
    pytest.param(b"\xff\xfe", id="no Unicode"),
    pytest.param("[" * 100_000, id="nested without end"),
    pytest.param('{"v":1,"type":"delta","session_id":"s1","payload":7}', id="wrong type"),
    pytest.param('{"v":1,"type":"commit","session_id":"s1","seq":"x"}', id="no number"),
    pytest.param('{"type":7}', id="no type"),
    pytest.param('[{"v":1,"type":"delta","payload":{"delta":"lost"}},7]', id="bad part of a batch"),
]


@pytest.mark.parametrize("frame", BAD)
async def test_malformed_message_is_told_and_the_screen_is_fetched_anew(frame: str | bytes) -> None:
    """What it said is not known, so what follows cannot be trusted to stand where it should."""

    async def broken(peer: Peer) -> None:
        await peer.say(RESUMES)
        await peer.hear()
        await peer.say(say.session(), *STORY[:4])
        await peer.socket.send(frame, text=True)
        await peer.say(*STORY[6:])
        await peer.socket.wait_closed()

    async with websocket_server(connections(broken, tell_whole_story)) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            told = await seen(events, lambda event: isinstance(event, Disconnected))
            errors = [event.payload for event in told if isinstance(event, ErrorMessage)]
            assert [error.code for error in errors] == [ErrorCode.INVALID_MESSAGE]
            assert errors[0].error == printable(errors[0].error)
            await seen(events, lambda event: isinstance(event, Connected))
            await client.turn_done("t1")
            assert client.screen.canonical() == STORY_SCREEN


async def test_waits_grow_for_a_server_that_desynchronises_us_each_time() -> None:
    async def broken(peer: Peer) -> None:
        await peer.say(RESUMES)
        await peer.hear()
        await peer.say(say.session())
        await peer.socket.send("{")
        await peer.socket.wait_closed()

    backoff = type(AT_ONCE)(draw=lambda: 1.0, sleep=AT_ONCE.sleep)
    async with websocket_server(broken) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=backoff)
        events = client.events()
        waits: list[float | None] = []
        async with client:
            while len(waits) < 6:
                told = await seen(events, lambda event: isinstance(event, Disconnected))
                waits.append(told[-1].retry_in_s)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 16.0]


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_unknown_types_in_a_batch_are_passed_over_and_the_rest_is_applied(
    encoding: Any,
) -> None:
    """A newer server says more than this client knows."""
    news = {"v": 1, "type": "hologram", "session_id": "s1", "seq": 3, "beam": [1, {"x": None}]}

    async def newer(peer: Peer) -> None:
        await peer.welcome()
        await peer.say([news, *STORY[:4], news])
        await peer.say(news)
        await peer.say([news])
        await peer.say([*STORY[4:], news])
        await peer.socket.wait_closed()

    async with websocket_server(newer) as url, asyncio.timeout(30):
        client = ArpClient(url, encoding=encoding, backoff=AT_ONCE)
        events = client.events()
        async with client:
            told = await seen(events, is_final)
            errors = [event.payload.error for event in told if isinstance(event, ErrorMessage)]
            assert errors == ["slow"]  # which the story tells
            assert client.screen.canonical() == STORY_SCREEN


async def test_server_that_goes_in_the_middle_of_a_websocket_message_is_resumed() -> None:
    """Neither half of the message shows, and it comes whole."""

    async def half(peer: Peer) -> None:
        await peer.welcome()
        await peer.say(*STORY[:4])
        message = json.dumps(STORY[4]).encode()
        head = b"\x81" + bytes([126]) + struct.pack("!H", len(message))
        peer.socket.transport.write(head + message[: len(message) // 2])
        await peer.hear()
        peer.cut()

    async def rest(peer: Peer) -> None:
        heard = await peer.welcome("replay", 11)
        assert heard["resume"] == {"epoch": "e1", "seq": 4}
        await peer.say(say.ack((await peer.hear())["id"]), *STORY[4:])
        await peer.socket.wait_closed()

    async with websocket_server(connections(half, rest)) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            await seen(events, lambda event: getattr(event, "seq", 0) == 4)
            await client.send_text("now go")
            await client.turn_done("t1")
            assert client.screen.canonical() == STORY_SCREEN


async def test_server_that_goes_in_the_middle_of_an_event_is_resumed() -> None:
    """Source: the WHATWG HTML standard: an event that has not ended is none."""
    asked: list[str | None] = []

    async def serve(request: Request, answer: Answer) -> None:
        last = request.headers.get("Last-Event-ID")
        asked.append(last)
        await answer.stream()
        await answer.event(say.HELLO)
        await answer.event(say.session("replay" if last else "new", 11 if last else 0))
        place = int(last.rpartition("-")[2]) if last else 0
        for message in STORY:
            if (message.get("seq") or 99) <= place:
                continue
            if not last and (message.get("seq") or 0) > 4:
                await answer.raw(b"id: e1-5\ndata: " + json.dumps(message).encode()[:20])
                answer.cut()
                return
            await answer.event(message)
        await asyncio.sleep(10)

    async with (
        http_server(serve) as url,
        asyncio.timeout(30),
        ArpClient(url, transport="sse", backoff=AT_ONCE) as client,
    ):
        await client.turn_done("t1")
        assert client.screen.canonical() == STORY_SCREEN
    assert asked == [None, "e1-4"]


async def test_message_that_comes_twice_is_applied_and_told_once() -> None:
    """protocol.md 2.3: `seq` never falls; each message once, in order."""

    async def stammer(peer: Peer) -> None:
        await peer.welcome()
        for message in STORY[:7]:
            await peer.say(message)
        await peer.say(*STORY[:7])
        await peer.say(STORY[:7], *STORY[7:], STORY)
        await peer.say(say.status("completed", None, "t1"))
        await peer.socket.wait_closed()

    async with websocket_server(stammer) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            told = await seen(events, is_final)
            assert client.screen.canonical() == STORY_SCREEN
            deltas = [event.seq or 0 for event in told if isinstance(event, Delta)]
            assert deltas == sorted(set(deltas))


async def test_refused_commit_in_a_batch_is_told_too() -> None:
    """Otherwise nobody knew that the screen is not what the agent takes it to be."""
    op = {"op": "update", "target": "nowhere", "path": "props.x", "value": 1}
    bad = say.message("patch", 5, ops=[op])

    async def broken(peer: Peer) -> None:
        await peer.welcome()
        await peer.say([*STORY[:4], bad, say.commit(5)])
        await peer.socket.wait_closed()

    async with websocket_server(broken) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            told = await seen(events, lambda event: isinstance(event, ErrorMessage))
            assert told[-1].payload.code == ErrorCode.INVALID_PATCH
