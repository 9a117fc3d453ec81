"""The whole client against scripted servers on real sockets and pipes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from arp.client.backoff import Backoff
from arp.client.callbacks import Callbacks
from arp.client.client import ArpClient, connect
from arp.client.errors import (
    ClientClosed,
    InvalidAddress,
    ServerRefused,
    ServerUnreachable,
    UploadUnavailable,
)
from arp.client.events import Connected, Disconnected, EventStream, Skipped
from arp.protocol.errors import (
    InternalError,
    InvalidMessage,
    PermissionDenied,
    ResourceLimit,
    SessionBusy,
    UnknownObject,
)
from arp.protocol.messages import Commit, RendererCapabilities
from tests.client import agent_messages as say
from tests.client.agent_messages import STORY, STORY_SCREEN
from tests.client.loopback import Answer, Peer, Request, http_server, websocket_server


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


AT_ONCE = Backoff(sleep=no_wait)


def turn_of_text(heard: Any, turn: str, seq: int) -> list[Any]:
    """A turn that answers a text with its capitals."""
    said = heard["data"]["text"]
    return [
        say.ack(heard["id"], turn),
        say.echo(said, seq, turn, heard["id"]),
        say.status("running", seq + 1, turn),
        say.delta(said.upper(), seq + 2, turn),
        say.status("completed", None, turn),
        say.commit(seq + 3, turn, final=True),
    ]


async def shout(peer: Peer) -> None:
    """Answers every text with its capitals."""
    await peer.welcome()
    number = 0
    while True:
        heard = await peer.hear()
        await peer.say(*turn_of_text(heard, f"t{number}", 4 * number + 1))
        number += 1


async def tell_story(peer: Peer) -> None:
    await peer.welcome()
    await peer.say(*STORY)
    await peer.socket.wait_closed()


async def seen(stream: EventStream, wanted: Callable[[Any], bool]) -> list[Any]:
    """Reads until an event is there, and gives all up to it."""
    events: list[Any] = []
    async with asyncio.timeout(5):
        async for event in stream:
            events.append(event)
            if wanted(event):
                break
    return events


def is_final(event: Any) -> bool:
    return isinstance(event, Commit) and event.final


# -- asking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_question_is_answered_in_each_encoding(encoding: Any) -> None:
    async with (
        websocket_server(shout) as url,
        asyncio.timeout(5),
        connect(url, encoding=encoding) as client,
    ):
        turn = await client.ask("hällo")
        assert (turn.id, turn.status, turn.final) == ("t0", "completed", True)
        assert client.screen.text("t0") == "HÄLLO"
        assert (await client.ask("again")).id == "t1"


async def test_screen_shows_what_the_server_tells() -> None:
    async with websocket_server(tell_story) as url, asyncio.timeout(5), connect(url) as client:
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
        async with asyncio.timeout(5):
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

    async with websocket_server(talk) as url, asyncio.timeout(5), connect(url) as client:
        with pytest.raises(SessionBusy, match="a turn is running"):
            await client.ask("now")
        assert (await client.ask("again")).status == "completed"


async def test_turn_done_waits_for_the_turn_of_the_newest_input() -> None:
    async with websocket_server(shout) as url, asyncio.timeout(5), connect(url) as client:
        await client.send_text("one")
        await client.send_text("two")
        assert (await client.turn_done()).id == "t1"
        assert (await client.turn_done("t0")).id == "t0"
        with pytest.raises(UnknownObject):
            await client.acknowledged("not-mine")


async def test_what_no_server_would_take_is_refused_and_never_sent() -> None:
    async with websocket_server(shout) as url, asyncio.timeout(5), connect(url) as client:
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


# -- coming back --------------------------------------------------------------------------------


def connections(*talks: Callable[[Peer], Awaitable[None]]) -> Callable[[Peer], Awaitable[None]]:
    """Talks differently with each connection; the last way for all that follow."""
    left = list(talks)

    async def talk(peer: Peer) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(peer)

    return talk


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

    async with websocket_server(connections(first, second)) as url, asyncio.timeout(5):
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
    async with websocket_server(connections(cut_at_once, shout)) as url, asyncio.timeout(5):
        client = ArpClient(url, backoff=AT_ONCE)
        input_id = await client.send_text("early")
        assert not client.connected
        async with client:
            assert await client.turn_of(input_id) == "t0"
            await client.turn_done()
            assert client.screen.text("t0") == "EARLY"


async def cut_at_once(peer: Peer) -> None:
    peer.cut()


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013])
async def test_server_that_restarts_is_come_back_to(code: int) -> None:
    async def stop(peer: Peer) -> None:
        await peer.welcome()
        await peer.socket.close(code, "restarting")

    async with websocket_server(connections(stop, shout)) as url, asyncio.timeout(5):
        client = ArpClient(url, backoff=AT_ONCE)
        events = client.events()
        async with client:
            lost = await seen(events, lambda event: isinstance(event, Disconnected))
            assert lost[-1].reason == f"closed with {code}: restarting"
            assert lost[-1].retry_in_s is not None
            assert (await client.ask("hi")).status == "completed"


async def test_refusal_ends_the_client_and_everyone_who_waits() -> None:
    errors: list[Any] = []

    async def refuse(peer: Peer) -> None:
        await peer.welcome()
        await peer.hear()
        await peer.socket.close(1008, "not yours")

    async with websocket_server(refuse) as url, asyncio.timeout(5):
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
    async with websocket_server(connections(first, second)) as url, asyncio.timeout(5):
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
            with pytest.raises(UnknownObject, match="t0 shows no more"):
                await gone
    assert texts == ["old", "old"]


# -- closing ------------------------------------------------------------------------------------


async def test_closed_client_ends_waits_and_takes_nothing_more() -> None:
    async with websocket_server(tell_story) as url, asyncio.timeout(5):
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
    async with asyncio.timeout(5), client:
        (event,) = await seen(events, lambda _: True)
        assert event.retry_in_s == 1000


async def test_fault_of_the_client_itself_reaches_those_who_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(self: object, upload: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("arp.client.driver.Driver.run", fail)
    async with asyncio.timeout(5), ArpClient("ws://127.0.0.1:9") as client:
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


# -- the other transports -----------------------------------------------------------------------


class SseAgent:
    """Answers texts with their capitals, over SSE and POST; cuts streams after some messages."""

    def __init__(self, *cuts: int) -> None:
        self.cuts = list(cuts)
        self.log: list[Any] = []
        self.posts: dict[str, list[Any]] = {}
        self.last_event_ids: list[str | None] = []
        self.upgrades = 0
        self.news = asyncio.Condition()

    async def serve(self, request: Request, answer: Answer) -> None:
        if request.headers.get("Upgrade"):
            self.upgrades += 1
            await answer.send(400, b"no upgrades here")
        elif request.method == "GET":
            await self.stream(request, answer)
        else:
            await self.take(json.loads(request.body), answer)

    async def stream(self, request: Request, answer: Answer) -> None:
        last = request.headers.get("Last-Event-ID")
        self.last_event_ids.append(last)
        await answer.stream()
        await answer.event(say.HELLO)
        await answer.event(say.session("replay" if last else "new", len(self.log)))
        place = int(last.rpartition("-")[2]) if last else 0
        left = self.cuts.pop(0) if self.cuts else None
        while left != 0:
            await answer.event(await self.message(place))
            place += 1
            left = left and left - 1
        answer.cut()

    async def message(self, place: int) -> Any:
        async with self.news:
            await self.news.wait_for(lambda: len(self.log) > place)
        return self.log[place]

    async def take(self, heard: Any, answer: Answer) -> None:
        first = heard["id"] not in self.posts
        self.posts.setdefault(heard["id"], []).append(heard)
        turn = f"t{list(self.posts).index(heard['id'])}"
        if first:
            seq, said = len(self.log), heard["data"]["text"]
            self.log += [
                say.echo(said, seq + 1, turn, heard["id"]),
                say.delta(said.upper(), seq + 2, turn),
                say.commit(seq + 3, turn, final=True),
            ]
            async with self.news:
                self.news.notify_all()
        await answer.send(200, json.dumps([say.ack(heard["id"], turn)]).encode())


async def test_sse_takes_over_where_websocket_is_refused() -> None:
    agent = SseAgent()
    async with http_server(agent.serve) as url, asyncio.timeout(5), connect(url) as client:
        await client.ask("one")
        await client.ask("two")
        assert client.screen.text("t0") == "ONE"
        assert client.screen.text("t1") == "TWO"
    assert agent.upgrades == 1


async def test_sse_stream_that_is_cut_anywhere_goes_on_where_it_was() -> None:
    agent = SseAgent(0, 1, 1, 2)
    async with (
        http_server(agent.serve) as url,
        asyncio.timeout(10),
        ArpClient(url.replace("http:", "http+sse:"), backoff=AT_ONCE) as client,
    ):
        await client.ask("one")
        await client.ask("two")
        assert client.screen.text("t0") == "ONE"
        assert client.screen.text("t1") == "TWO"
    assert agent.upgrades == 0
    assert agent.last_event_ids == [None, "e1-0", "e1-1", "e1-2", "e1-4"]
    assert [len({m["id"] for m in posts}) for posts in agent.posts.values()] == [1, 1]


async def test_files_go_by_http_beside_the_websocket() -> None:
    requests: list[Request] = []

    async def serve(request: Request, answer: Answer) -> None:
        requests.append(request)
        message = json.loads(request.parts()[0][3])
        await answer.send(200, json.dumps([say.ack(message["id"], "t5")]).encode())

    async with http_server(serve) as http, websocket_server(shout) as url, asyncio.timeout(5):
        client = ArpClient(url, token="tok", encoding="cbor")
        client._uploads._dialer.address = client._uploads._dialer.address.__class__(
            ("websocket",), url, "", f"{http}/_arp/v1/input", True
        )
        input_id = await client.send_files([("a.txt", b"A")], text="read this")
        async with client:
            assert (await client.acknowledged(input_id)).turn_id == "t5"
            assert (await client.ask("hi")).status == "completed"
    (request,) = requests
    message, file = request.parts()
    assert json.loads(message[3])["data"] == {"text": "read this"}
    assert json.loads(message[3])["session_id"] == "s1"
    assert file[1:] == ("a.txt", "text/plain", b"A")


CHILD = """
import json, sys

def say(**message):
    print(json.dumps({"v": 1, **message}), flush=True)

say(type="hello", capabilities={"components": ["text"]})
hello = json.loads(sys.stdin.readline())
resume = "replay" if "resume" in hello else "new"
say(type="session", session_id="s1", epoch="e1", seq=0, resume=resume)
for line in sys.stdin:
    heard = json.loads(line)
    if heard["data"]["text"] == "die" and resume == "new":
        raise SystemExit(3)
    where = {"session_id": "s1", "turn_id": heard["id"]}
    say(type="ack", id=heard["id"], **where)
    say(type="delta", seq=1, payload={"delta": heard["data"]["text"].upper()}, **where)
    say(type="commit", seq=2, final=True, **where)
"""


async def test_child_process_is_spoken_to_and_ends_with_the_client() -> None:
    async with asyncio.timeout(10):
        async with connect("stdio:", command=[sys.executable, "-c", CHILD]) as client:
            turn = await client.ask("hi")
            assert client.screen.text(turn.id) == "HI"
            with pytest.raises(UploadUnavailable):
                await client.send_files([("a", b"")])


async def test_child_that_dies_is_started_again_and_gets_the_input() -> None:
    async with asyncio.timeout(10):
        client = ArpClient("stdio:", command=[sys.executable, "-c", CHILD], backoff=AT_ONCE)
        events = client.events()
        async with client:
            turn = await client.ask("die")
            assert client.screen.text(turn.id) == "DIE"
            told = await seen(events, is_final)
    (lost,) = [event for event in told if isinstance(event, Disconnected)]
    assert lost.reason.endswith("ended with exit code 3")


def test_importing_the_client_loads_no_network_library() -> None:
    """Each is loaded by the first connection that needs it."""
    program = "import arp.client.client, sys; print(*sys.modules.keys() & {'httpx', 'websockets'})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
