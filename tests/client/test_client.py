"""The whole client against scripted servers on real sockets and pipes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from arp.client.callbacks import Callbacks
from arp.client.client import ArpClient, connect
from arp.client.errors import (
    ClientClosed,
    InvalidAddress,
    ServerRefused,
    ServerUnreachable,
)
from arp.client.events import Connected, Disconnected, Skipped
from arp.client.options import Backoff
from arp.protocol.errors import (
    InternalError,
    InvalidMessage,
    ResourceLimit,
    SessionBusy,
    UnknownObject,
)
from arp.protocol.messages import RendererCapabilities
from tests.client import agent_messages as say
from tests.client.agent_messages import STORY_SCREEN
from tests.client.loopback import Answer, Peer, Request, http_server, websocket_server
from tests.client.talks import (
    is_final,
    seen,
    shout,
    tell_story,
    turn_of_text,
)

# -- asking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_question_is_answered_in_each_encoding(encoding: Any) -> None:
    async with (
        websocket_server(shout) as url,
        asyncio.timeout(30),
        connect(url, encoding=encoding) as client,
    ):
        turn = await client.ask("hällo")
        assert (turn.id, turn.status, turn.final) == ("t0", "completed", True)
        assert client.screen.text("t0") == "HÄLLO"
        assert (await client.ask("again")).id == "t1"


async def test_screen_shows_what_the_server_tells() -> None:
    async with websocket_server(tell_story) as url, asyncio.timeout(30), connect(url) as client:
        assert (await client.turn_done()).status == "completed"
        assert client.screen.canonical() == STORY_SCREEN
        assert client.session_id == "s1"
        assert client.connected
        assert client.agent is not None
        assert client.agent.capabilities.components == ["text", "table"]
        assert client.failure is None


async def test_hello_says_what_this_renderer_is() -> None:
    heard: list[Any] = []

    async def talk(peer: Peer) -> None:
        heard.append(await peer.welcome())
        await peer.socket.wait_closed()

    async with (
        websocket_server(talk) as url,
        connect(
            url,
            session_id="mine",
            capabilities=RendererCapabilities(["text"], ["batch"]),
            locale="de-CH",
            token="tok",
        ),
    ):
        pass
    assert heard == [
        {
            "v": 1,
            "type": "hello",
            "capabilities": {"components": ["text"], "features": ["batch"], "limits": {}},
            "session_id": "mine",
            "locale": "de-CH",
        }
    ]


async def test_every_kind_of_input_has_its_data() -> None:
    """Source: protocol.md 2.2."""
    heard: list[Any] = []

    async def talk(peer: Peer) -> None:
        await peer.welcome()
        while True:
            message = await peer.hear()
            heard.append(message)
            await peer.say(say.ack(message["id"]))

    async with websocket_server(talk) as url, connect(url) as client:
        ids = [
            await client.send_text("hi", source="name"),
            await client.send_action("confirm", source="sure"),
            await client.send_action("open", {"row": 3}, source="table", surface="side"),
            await client.send_form({"a": 1}, source="form"),
            await client.send_form({"a": 1}, source="form", action="save"),
            await client.send_selection(("x", "y"), source="pick"),
            await client.send_input("resize", {"width": 80, "height": 24}),
            await client.cancel(),
        ]
        async with asyncio.timeout(30):
            for input_id in ids:
                await client.acknowledged(input_id)
    assert [message["id"] for message in heard] == ids
    assert [(m["input_type"], m["data"], m.get("source_component")) for m in heard] == [
        ("text", {"text": "hi"}, "name"),
        ("action", {"action": "confirm"}, "sure"),
        ("action", {"action": "open", "payload": {"row": 3}}, "table"),
        ("form_submit", {"fields": {"a": 1}}, "form"),
        ("form_submit", {"action": "save", "fields": {"a": 1}}, "form"),
        ("selection", {"selected": ["x", "y"]}, "pick"),
        ("resize", {"width": 80, "height": 24}, None),
        ("action", {"action": "arp.cancel"}, None),
    ]
    surfaces = [message.get("surface", "main") for message in heard]
    assert surfaces == ["main", "main", "side", "main", "main", "main", "main", "main"]
    assert {message["session_id"] for message in heard} == {"s1"}


async def test_refused_input_raises_the_coded_error_and_the_client_lives_on() -> None:
    async def talk(peer: Peer) -> None:
        await peer.welcome()
        heard = await peer.hear()
        await peer.say(say.error("a turn is running", 17, input_id=heard["id"]))
        await peer.say(*turn_of_text(await peer.hear(), "t1", 1))
        await peer.socket.wait_closed()

    async with websocket_server(talk) as url, asyncio.timeout(30), connect(url) as client:
        with pytest.raises(SessionBusy, match="a turn is running"):
            await client.ask("now")
        assert (await client.ask("again")).status == "completed"


async def test_turn_done_waits_for_the_turn_of_the_newest_input() -> None:
    async with websocket_server(shout) as url, asyncio.timeout(30), connect(url) as client:
        await client.send_text("one")
        await client.send_text("two")
        assert (await client.turn_done()).id == "t1"
        assert (await client.turn_done("t0")).id == "t0"
        with pytest.raises(UnknownObject):
            await client.acknowledged("not-mine")


async def test_what_no_server_would_take_is_refused_and_never_sent() -> None:
    async with websocket_server(shout) as url, asyncio.timeout(30), connect(url) as client:
        with pytest.raises(InvalidMessage):
            await client.send_text("\ud800")
        with pytest.raises(ResourceLimit):
            await client.send_text("x" * (1 << 20))
        assert (await client.ask("fine")).status == "completed"


# -- listening ----------------------------------------------------------------------------------


async def test_each_consumer_gets_the_events_and_callbacks_are_called() -> None:
    texts: list[str] = []
    calls: list[str] = []
    callbacks = Callbacks(
        on_connect=lambda capabilities: calls.append("connect"),
        on_delta=texts.append,
        on_done=lambda: calls.append("done"),
        on_disconnect=lambda: calls.append("disconnect"),
    )
    async with websocket_server(tell_story) as url:
        client = ArpClient(url, callbacks=callbacks)
        first, second = client.events(), client.events()
        async with client:
            events = await seen(first, is_final)
            assert await seen(second, is_final) == events
        assert await seen(first, lambda _: False) == [Disconnected("closed by this side", None)]
    assert [type(event).__name__ for event in events] == [
        *("AgentHello", "Connected", "InputEcho", "TurnMessage", "Delta", "Delta", "ToolStart"),
        *("ToolEnd", "Render", "Commit", "Delta", "Patch", "Render", "Commit", "ErrorMessage"),
        *("TurnMessage", "Commit"),
    ]
    assert events[1] == Connected("s1", "new")
    assert texts == ["Let me ", "look.", "After."]
    assert calls == ["connect", "done", "disconnect"]


async def test_slow_consumer_loses_events_and_the_screen_is_right_all_the_same() -> None:
    async def talk(peer: Peer) -> None:
        await peer.welcome()
        for seq in range(1, 5001):
            await peer.say(say.delta("x", seq))
        await peer.say(say.commit(5001, final=True))
        await peer.socket.wait_closed()

    async with websocket_server(talk) as url:
        client = ArpClient(url)
        slow = client.events()
        async with client:
            async with asyncio.timeout(15):
                await client.turn_done("t1")
            events = await seen(slow, is_final)
            assert client.screen.text("t1") == "x" * 5000
    assert isinstance(events[0], Skipped)
    assert len(events) <= 1001
    assert events[0].count + len(events) - 1 == 5003


# -- closing ------------------------------------------------------------------------------------


async def test_closed_client_ends_waits_and_takes_nothing_more() -> None:
    async with websocket_server(tell_story) as url, asyncio.timeout(30):
        client = ArpClient(url)
        async with client:
            await client.ready()
            waiting = asyncio.ensure_future(client.turn_done("never"))
            await asyncio.sleep(0)
        with pytest.raises(ClientClosed):
            await waiting
        with pytest.raises(ClientClosed):
            await client.send_text("late")
        with pytest.raises(ClientClosed, match="started once"):
            await client.__aenter__()
        assert not client.connected
        await client.aclose()
        assert await seen(client.events(), lambda _: True) == []


async def test_client_that_never_was_started_can_be_closed() -> None:
    client = ArpClient("ws://127.0.0.1:9")
    await client.aclose()
    assert isinstance(client.failure, ClientClosed)


async def test_client_that_waits_to_come_back_closes_at_once(unused_tcp_port: int) -> None:
    client = ArpClient(f"ws://127.0.0.1:{unused_tcp_port}", backoff=Backoff(1000, 1000, lambda: 1))
    events = client.events()
    async with asyncio.timeout(30), client:
        (event,) = await seen(events, lambda _: True)
        assert event.retry_in_s == 1000


async def test_fault_of_the_client_itself_reaches_those_who_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: object, upload: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("arp.client.driver.Driver.run", fail)
    async with asyncio.timeout(30), ArpClient("ws://127.0.0.1:9") as client:
        with pytest.raises(InternalError, match="its log has the traceback"):
            await client.ready()
    assert "ZeroDivisionError" in caplog.text


# -- connecting ---------------------------------------------------------------------------------


async def test_connect_to_nobody_says_so(unused_tcp_port: int) -> None:
    with pytest.raises(ServerUnreachable, match="cannot connect: ") as failed:
        async with connect(f"http://127.0.0.1:{unused_tcp_port}"):
            raise AssertionError
    assert failed.value.retryable


async def test_connect_where_nothing_speaks_arp_says_so() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.send(404, b"no such page")

    async with http_server(serve) as url:
        with pytest.raises(ServerRefused, match=r"nothing there speaks ARP.*no such page"):
            async with connect(url):
                raise AssertionError


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(InvalidAddress):
        ArpClient("localhost:8080")
    with pytest.raises(TypeError, match="unknown options tokens"):
        ArpClient("http://h", tokens="x")  # type: ignore[call-arg]  # on purpose
    with pytest.raises(InvalidMessage, match="session_id"):
        ArpClient("http://h", session_id="ä")


def test_importing_the_client_loads_no_network_library() -> None:
    """Each is loaded by the first connection that needs it."""
    program = "import arp.client.client, sys; print(*sys.modules.keys() & {'httpx', 'websockets'})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
