"""The WebSocket's handshake: path, subprotocol, agent; messages too big, and sessions too many."""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import cbor2
import httpx
import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from arp import Access, App, HubSettings, Limits, Turn
from tests.server.sockets import Raw, raw
from tests.support.serving import Serving, serving

LIMIT = 8192

app = App(title="Two", settings=HubSettings(limits=Limits(max_message_bytes=LIMIT)))


@app.agent("first")
async def first(turn: Turn) -> None:
    """The one that a session gets which names none."""
    await turn.say("first")


@app.agent("second")
async def second(turn: Turn) -> None:
    """Another."""
    await turn.say("second")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


async def count(server: Serving) -> int:
    """Return how many sessions the server holds."""
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.http}/metrics")).text
    line = next(line for line in text.splitlines() if line.startswith("arp_sessions "))
    return int(float(line.split()[1]))


async def storm(one: Raw, hello: dict[str, Any]) -> None:
    """Says hello 3,000 times, and once more under a name."""
    for _ in range(3_000):
        await one.send(hello)
    await one.send({**hello, "session_id": "behind the storm"})


async def test_thousands_of_hellos_on_one_connection_leave_one_session_and_room_for_others() -> (
    None
):
    """T29: each makes one, and the one before, in which nothing has happened, goes with it."""
    # How many of them are written before the next `hello` comes is up to the machine, and those
    # count as made: there is room for all within the minute.
    settings = HubSettings(max_sessions=4, max_new_sessions_per_minute=10_000)
    crowd = App(title="Crowd", settings=settings)
    crowd.agent("first")(first)
    hello = {"v": 1, "type": "hello", "capabilities": {"components": ["text"]}}
    with serving(crowd) as server:
        async with asyncio.timeout(60), raw(server) as one:
            async with asyncio.TaskGroup() as tasks:
                # It reads while it sends: the server stops reading where nobody takes its answers.
                tasks.create_task(storm(one, hello))
                await one.until("session", session_id="behind the storm")
            for name in [*"abcdefghij", "last"]:  # each is written, and then deleted
                await one.send({**hello, "session_id": name})
                last = await one.until("session", session_id=name)
            assert await count(server) == 1
            async with raw(server) as other:
                await other.hello("mine", ["text"], "input")
                await other.say("mine", "go")
                await other.until_final("t1")
            async with httpx.AsyncClient(base_url=server.http) as client:
                chats = (await client.get("/_api/chats")).json()
    assert {chat["id"] for chat in chats} == {"last", "mine"}
    assert (last["resume"], one.of("error")) == ("new", [])


async def test_hello_says_which_agents_there_are_and_a_session_which_it_has(
    server: Serving,
) -> None:
    """Spec: S14."""
    async with raw(server) as one:
        (told,) = one.of("hello")
        assert told["capabilities"]["title"] == "Two"
        assert told["capabilities"]["workflows"] == [
            {
                "name": "first",
                "title": "first",
                "description": "The one that a session gets which names none.",
            },
            {"name": "second", "title": "second", "description": "Another."},
        ]
        hello = {"v": 1, "type": "hello", "capabilities": {"components": ["text"]}}
        await one.send({**hello, "session_id": "of-first"})
        assert (await one.until("session"))["workflow"] == "first"
        await one.send({**hello, "session_id": "of-second", "workflow": "second"})
        assert (await one.until("session", session_id="of-second"))["workflow"] == "second"
        await one.say("of-second", "go")
        assert (await one.until("delta"))["payload"]["delta"] == "second"
        await one.until_final("t1")
    async with raw(server) as other:  # it keeps its own, whatever the hello says
        for workflow in ("first", "nobody"):
            await other.send({**hello, "session_id": "of-second", "workflow": workflow})
            ready = await other.until("session")
            assert (ready["workflow"], ready["resume"]) == ("second", "snapshot")


async def test_unknown_agent_in_a_hello_is_told_with_the_names_of_those_that_there_are(
    server: Serving,
) -> None:
    """Spec: S14, S15."""
    async with raw(server) as one:
        hello = {"v": 1, "type": "hello", "workflow": "third", "session_id": "of-nobody"}
        await one.send(hello)
        error = (await one.until("error"))["payload"]
        assert error["error"] == "No agent named 'third'. Available: first, second."
        assert (error["code"], error["detail"]) == (11, "workflow")
        await one.send({**hello, "workflow": "second"})
        assert (await one.until("session"))["workflow"] == "second"


async def test_agents_are_told_to_nobody_without_a_token() -> None:
    closed = App("Closed", access=Access(token="secret"))
    closed.agent("first")(first)
    with serving(closed) as server:
        async with connect(server.ws) as socket:
            before = msgspec.json.decode(await socket.recv())["capabilities"]
            assert (before["title"], before["workflows"]) == ("", [])
            await socket.send('{"v":1,"type":"hello","token":"secret"}')
            after = msgspec.json.decode(await socket.recv())
            assert after["type"] == "hello"
            assert after["capabilities"]["title"] == "Closed"
            assert [one["name"] for one in after["capabilities"]["workflows"]] == ["first"]
            assert msgspec.json.decode(await socket.recv())["type"] == "session"


async def test_lists_over_http_say_the_same(server: Serving) -> None:
    async with httpx.AsyncClient(base_url=server.http) as client:
        rows = (await client.get("/_api/workflows")).json()
        said = (await client.get("/_api/arp")).json()["capabilities"]
    assert [(row["name"], row["app_title"]) for row in rows] == [
        ("first", "Two"),
        ("second", "Two"),
    ]
    assert (said["title"], [one["name"] for one in said["workflows"]]) == (
        "Two",
        ["first", "second"],
    )


async def test_event_stream_takes_the_agent_of_its_hello_too(server: Serving) -> None:
    def address(workflow: str) -> str:
        hello = {"type": "hello", "v": 1, "workflow": workflow, "session_id": "by-events"}
        return "/_arp/v1/events?hello=" + urlsafe_b64encode(msgspec.json.encode(hello)).decode()

    async with httpx.AsyncClient(base_url=server.http) as client:
        refused = await client.get(address("third"))
        assert (refused.status_code, refused.json()["payload"]["detail"]) == (400, "workflow")
        async with client.stream("GET", address("second")) as stream:
            async for line in stream.aiter_lines():
                if '"type":"session"' in line:
                    break
            assert '"workflow":"second"' in line
            said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "go"}}
            await client.post("/_arp/v1/input", json={**said, "session_id": "by-events"})
        chat = (await client.get("/_api/chats/by-events")).json()
    assert chat["workflow_name"] == "second"


async def test_address_with_too_many_sessions_leaves_room_for_other_addresses() -> None:
    """They are watched, so none can leave the memory."""
    settings = HubSettings(max_sessions=10, max_sessions_per_address=3)
    crowd = App(title="Crowd", settings=settings)
    crowd.agent("first")(first)
    with serving(crowd) as server:
        async with asyncio.timeout(30), AsyncExitStack() as opened:
            for number in range(3):
                mine = await opened.enter_async_context(raw(server))
                await mine.hello(f"s{number}", ["text"])
            refused = await opened.enter_async_context(raw(server))
            await refused.say("one more", "go")
            error = await refused.until("error")
            there = raw(server, local_addr=("127.0.0.2", 0))
            elsewhere = await opened.enter_async_context(there)
            await elsewhere.say("theirs", "go")
            await elsewhere.until_final("t1")
    assert (error["payload"]["code"], error["payload"]["retryable"]) == (16, True)
    assert "address 127.0.0.1 has 3 open sessions" in error["payload"]["error"]


async def handshake(server: Serving, path: str = "/_arp/v1", **options: Any) -> str | None:
    """Return the subprotocol that was chosen."""
    async with connect(f"ws://127.0.0.1:{server.port}{path}", **options) as socket:
        await socket.recv()
        return socket.subprotocol


async def drain(socket: ClientConnection) -> None:
    """Reads until the server closes."""
    while True:
        await socket.recv()


@pytest.mark.parametrize("path", ["/_arp/v1", "/_api/rpc"])
@pytest.mark.parametrize("parts", [[b"\xff{}"], [b'{"v": "\xc3', b'"}']])
async def test_text_that_is_not_utf8_closes_without_a_traceback(
    server: Serving,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    parts: list[bytes],
) -> None:
    """RFC 6455, 8.1; also where it comes in pieces."""
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    async with connect(f"ws://127.0.0.1:{server.port}{path}") as socket:
        for at, part in enumerate(parts):
            opcode = Opcode.CONT if at else Opcode.TEXT
            frame = Frame(opcode, part, fin=at == len(parts) - 1)
            socket.transport.write(frame.serialize(mask=True, extensions=[]))
        with pytest.raises(ConnectionClosed):
            await drain(socket)
    assert socket.close_code == 1007
    assert "Traceback" not in caplog.text
    assert [one for one in caplog.records if one.levelname in ("ERROR", "CRITICAL")] == []


NAMES: list[tuple[list[Any], str]] = [
    (["arp.session.v1.json"], "arp.session.v1.json"),
    (["arp.session.v1.msgpack"], "arp.session.v1.msgpack"),
    (["arp.v9.xml", "arp.session.v1.cbor"], "arp.session.v1.cbor"),
    (["arp.session.v1.cbor", "arp.session.v1.json"], "arp.session.v1.cbor"),
]


@pytest.mark.parametrize(("offered", "chosen"), NAMES)
async def test_first_subprotocol_that_is_known_is_chosen(
    server: Serving, offered: list[Any], chosen: str
) -> None:
    """protocol.md 1."""
    assert await handshake(server, subprotocols=offered) == chosen


async def test_no_subprotocol_means_json(server: Serving) -> None:
    """protocol.md 1."""
    assert await handshake(server) is None


@pytest.mark.parametrize(
    ("path", "offered"),
    [
        ("/_arp/v1", ["arp.session.v2.json"]),
        ("/_arp/v1", ["arp.v2.json"]),
        ("/_arp/v1", ["ARP.SESSION.V1.JSON"]),
        ("/_arp/v2", None),
        ("/", None),
        ("/_arp/v1/", None),
        ("/_arp/v1?workflow=third", None),
    ],
)
async def test_handshake_that_asks_for_what_is_not_there_is_refused(
    server: Serving, path: str, offered: Any
) -> None:
    """protocol.md 1: a subprotocol that the server does not know is refused in the handshake.

    Spec: W5.
    """
    with pytest.raises(InvalidStatus) as refused:
        await handshake(server, path, subprotocols=offered)
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("query", "says"),
    [("", "first"), ("?workflow=second", "second"), ("?workflow=/second", "second")],
)
async def test_new_session_gets_the_agent_that_is_asked_for(
    server: Serving, query: str, says: str
) -> None:
    """A session stays with its agent, whoever comes to it later."""
    session = f"session-{query.strip('?=/')}"
    for _ in range(2):
        async with connect(server.ws + query) as socket:
            client = Raw(socket)
            await client.next()
            await client.say(session, "x")
            await client.until("commit", final=True)
        assert [one["payload"]["delta"] for one in client.of("delta")] == [says]
        query = ""


async def test_message_above_the_limit_gets_an_error_far_above_it_the_end(server: Serving) -> None:
    """protocol.md 4 and 6: RESOURCE_LIMIT, then 1009; the server lives on."""
    async with raw(server) as client:
        await client.say("big", "x" * LIMIT)
        error = await client.until("error")
        await client.say("big", "x")
        await client.until("commit", final=True)
        await client.say("big", "x" * LIMIT * 5)
        with pytest.raises(ConnectionClosed) as closed:
            await client.until("never")
    async with raw(server) as other:
        await other.hello("after", ["text"])
    assert error["payload"]["code"] == 4
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_text_that_is_no_utf8_ends_its_connection_alone(server: Serving) -> None:
    """T24: 1007."""
    async with connect(server.ws) as socket:
        await socket.recv()
        await socket.send(b"\xff\xfe", text=True)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_batch_comes_in_the_encoding_of_the_connection(
    server: Serving, encoding: str
) -> None:
    """Feature `batch`: arrays of messages, in one frame, of any encoding. Spec: W2."""
    decode: Any = {"json": msgspec.json.decode, "msgpack": msgspec.msgpack.decode}.get(
        encoding, cbor2.loads
    )
    encode: Any = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode}.get(
        encoding, cbor2.dumps
    )
    session_id = f"batch-{encoding}"
    hello = {"v": 1, "type": "hello", "session_id": session_id}
    capabilities = {"components": ["text"], "features": ["batch", "streaming"]}
    name: Any = f"arp.session.v1.{encoding}"
    async with connect(server.ws, subprotocols=[name]) as socket:
        data = encode({**hello, "capabilities": capabilities})
        await socket.send(data.decode() if encoding == "json" else data)
        said = {"v": 1, "type": "input", "session_id": session_id, "input_type": "text"}
        data = encode([{**said, "data": {"text": "x"}, "id": str(n)} for n in range(3)])
        await socket.send(data.decode() if encoding == "json" else data)
        frames: list[Any] = []
        while sum(one["type"] == "commit" and one["final"] for one in flat(frames)) < 3:
            frames.append(decode(await socket.recv()))
    acks = [one["id"] for one in flat(frames) if one["type"] == "ack"]
    assert acks == ["0", "1", "2"]
    assert any(isinstance(frame, list) and len(frame) > 1 for frame in frames)


def flat(frames: list[Any]) -> list[Any]:
    return [one for frame in frames for one in (frame if isinstance(frame, list) else [frame])]


async def test_batch_that_is_too_long_is_refused_whole(server: Serving) -> None:
    """More than 64 messages at once are more than a renderer has to say. Spec: W3."""
    async with raw(server) as client:
        await client.hello("long", ["text"], "batch")
        said = {"v": 1, "type": "input", "input_type": "focus", "data": {}}
        await client.send([{**said, "id": str(n)} for n in range(65)])
        error = await client.until("error")
        await client.send([{**said, "id": str(n)} for n in range(64)])
        await client.until("ack", id="63")
    assert "at most 64" in error["payload"]["error"]
    assert len(client.of("ack")) == 64


async def test_many_missed_messages_come_in_few_frames(server: Serving) -> None:
    """A renderer with `batch` that was away gets arrays, one without gets one message a frame."""
    async with raw(server) as client:
        ready = await client.hello("many", ["text"], "batch", "streaming")
        for _ in range(30):
            await client.say("many", "x")
        await client.until_final("t30")
    resume = {"epoch": ready["epoch"], "seq": ready["seq"]}
    counts = {}
    for features in (["batch", "streaming"], ["streaming"]):
        async with connect(server.ws) as socket:
            other = Raw(socket)
            hello = {"v": 1, "type": "hello", "session_id": "many", "resume": resume}
            capabilities = {"components": ["text"], "features": features}
            await other.send({**hello, "capabilities": capabilities})
            await other.until_final("t30")
            counts[len(features)] = (other.frames, len(other.seen))
    assert counts[1][0] == counts[1][1]
    assert counts[2][0] * 10 < counts[2][1]
