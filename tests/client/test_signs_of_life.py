"""A network that dies without a word: noticed in time, and a server that lives is not left."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest

from arp import App, Turn
from arp.client.client import ArpClient
from arp.client.events import Disconnected, EventStream
from tests.client import agent_messages as say
from tests.client.loopback import Answer, Peer, Request, http_server, websocket_server
from tests.client.talks import AT_ONCE
from tests.support.holding import HoldingProxy
from tests.support.serving import serving
from tests.support.waiting import becomes

ANSWERS = {
    **say.HELLO,
    "capabilities": {**say.HELLO["capabilities"], "features": ["resume", "ping"]},
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is asked after 0.1 s of silence, and has 0.1 s for the answer."""
    monkeypatch.setattr("arp.client.driver.ASK_AFTER_S", 0.1)
    monkeypatch.setattr("arp.client.driver.ANSWER_WITHIN_S", 0.1)


async def welcome(peer: Peer, hello: Any = ANSWERS) -> Any:
    await peer.say(hello)
    heard = await peer.hear()
    await peer.say(say.session("new"))
    return heard


async def ended(events: EventStream) -> Disconnected:
    async for event in events:
        if isinstance(event, Disconnected):
            return event
    raise AssertionError("the client ended")


async def test_silent_server_is_asked_and_left(quick: None) -> None:
    heard: list[Any] = []

    async def talk(peer: Peer) -> None:
        heard.append(await welcome(peer))
        heard.extend([say.decoded(frame)["type"] async for frame in peer.socket])

    async with websocket_server(talk) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            lost = await ended(events)
    assert "silent for" in lost.reason
    assert lost.retry_in_s is not None
    assert "ping" in heard[0]["capabilities"]["features"]
    assert heard[1:].count("ping") >= 1


async def test_server_that_answers_is_kept(quick: None) -> None:
    """Each ping has an id of its own; pongs are nobody's events, and stand nowhere."""
    asked: list[str] = []

    async def talk(peer: Peer) -> None:
        await welcome(peer)
        while True:
            ping = await peer.hear()
            assert (ping["type"], ping["v"]) == ("ping", 1)
            asked.append(ping["id"])
            await peer.say({"v": 1, "type": "pong", "id": ping["id"]})

    async with websocket_server(talk) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            await client.ready()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.5):
                    await ended(events)
            assert client.connected
    assert len(asked) >= 5
    assert len(set(asked)) == len(asked)
    seen = [event async for event in events]
    assert not [event for event in seen if type(event).__name__ in ("Ping", "Pong")]


async def test_what_comes_is_a_sign_of_life(quick: None) -> None:
    """A server that says anything is alive."""
    heard: list[Any] = []

    async def talk(peer: Peer) -> None:
        await welcome(peer)
        for seq in range(1, 30):
            await peer.say(say.delta("x", seq))
            await asyncio.sleep(0.03)
        await peer.say(say.commit(30, final=True))
        heard.append(await peer.hear())

    async with websocket_server(talk) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        async with client:
            await client.ready()
            await becomes(lambda: bool(heard))
            text = client.screen.text("t1")
    assert text == "x" * 29
    assert heard[0]["type"] == "ping"


async def test_server_without_the_feature_is_never_asked(quick: None) -> None:
    heard: list[Any] = []

    async def talk(peer: Peer) -> None:
        await welcome(peer, say.HELLO)
        heard.append(await peer.hear())

    async with websocket_server(talk) as url, ArpClient(url, backoff=AT_ONCE) as client:
        await client.ready()
        await asyncio.sleep(0.6)
        assert client.connected
    assert heard == []


async def test_ping_of_the_server_is_answered(quick: None) -> None:
    """Over WebSocket in the same way, over an event stream by POST."""
    answers: list[Any] = []

    async def talk(peer: Peer) -> None:
        await welcome(peer, say.HELLO)
        await peer.say({"v": 1, "type": "ping", "id": "of the server"})
        answers.append(await peer.hear())

    async def stream(request: Request, answer: Answer) -> None:
        if request.method == "POST":
            answers.append(say.decoded(request.body))
            await answer.send(200, b"[]")
            return
        await answer.stream()
        for message in (say.HELLO, say.session(), {"v": 1, "type": "ping", "id": "by stream"}):
            await answer.event(message)
        await asyncio.sleep(60)

    async with websocket_server(talk) as url, http_server(stream) as http, asyncio.timeout(30):
        async with ArpClient(url, backoff=AT_ONCE):
            await becomes(lambda: len(answers) == 1)
        async with ArpClient(http, transport="sse", backoff=AT_ONCE):
            await becomes(lambda: len(answers) == 2)
    assert answers == [
        {"v": 1, "type": "pong", "id": "of the server"},
        {"v": 1, "type": "pong", "id": "by stream"},
    ]


async def test_loop_that_was_blocked_asks_again_before_it_leaves(quick: None) -> None:
    """The answer may be there, unread."""

    async def talk(peer: Peer) -> None:
        await welcome(peer)
        while True:
            ping = await peer.hear()
            await asyncio.sleep(0.05)
            await peer.say({"v": 1, "type": "pong", "id": ping["id"]})

    async with websocket_server(talk) as url, asyncio.timeout(30):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            await client.ready()
            for _ in range(3):
                await asyncio.sleep(0.12)
                time.sleep(1.3)  # noqa: ASYNC251 - as a machine that sleeps
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await ended(events)
            assert client.connected


app = App(title="Echo")


@app.agent
async def echo(turn: Turn) -> None:
    """Says it again."""
    await turn.say(turn.text)


async def longest_silence() -> float:
    """Hold all bytes of a WebSocket and of an event stream, and let them flow again.

    What was said meanwhile has to arrive once.

    Returns:
        The seconds until the slower one of the two clients noticed.
    """

    async def one(url: str, transport: Any) -> tuple[float, list[str]]:
        client = ArpClient(url, transport=transport)
        events = client.events()
        async with client:
            await client.ready()
            await client.ask("before")
            await both.wait()
            proxy.free.clear()
            began = time.monotonic()
            said = await client.send_text("meanwhile")
            await ended(events)
            took = time.monotonic() - began
            await both.wait()
            proxy.free.set()
            await client.turn_done(await client.turn_of(said))
            return took, [client.screen.text(turn_id) for turn_id in client.screen.turns]

    both = asyncio.Barrier(2)
    with serving(app) as server:
        proxy = HoldingProxy(server.port)
        async with proxy.running() as url, asyncio.timeout(90):
            results = await asyncio.gather(one(url, "websocket"), one(url, "sse"))
    assert [texts for _, texts in results] == [["before", "meanwhile"]] * 2
    return max(took for took, _ in results)


async def test_network_that_holds_all_bytes_is_noticed_by_each_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After 0.3 s of silence, and another second for the answer."""
    monkeypatch.setattr("arp.client.driver.ASK_AFTER_S", 0.3)
    monkeypatch.setattr("arp.client.driver.ANSWER_WITHIN_S", 1.0)
    assert 1 < await longest_silence() < 12


@pytest.mark.slow
async def test_network_that_holds_all_bytes_is_noticed_within_25_s_by_each_transport() -> None:
    """With the true times."""
    assert await longest_silence() < 25
