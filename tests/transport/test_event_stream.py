"""Server-sent events: one frame, one event, named by its place (protocol.md 6)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from arp.protocol.framing.event_stream import SseParser
from arp.transport.event_stream import EventWriter, Pulse, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from tests.support.waiting import becomes
from tests.transport.listener import Listener


def written(message: Any, writer: EventWriter | None = None) -> bytes:
    return (writer or EventWriter("e1")).event(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"type": "delta", "seq": 7}, b"id: e1-7\n"),
        ({"type": "commit", "seq": 9}, b"id: e1-9\n"),
        ({"type": "render", "seq": 9}, b""),
        ({"type": "patch", "seq": 9}, b""),
        ({"type": "ack", "id": "x"}, b""),
        ([{"type": "delta", "seq": 7}, {"type": "render", "seq": 8}], b"id: e1-7\n"),
        ([{"type": "render", "seq": 8}, {"type": "commit", "seq": 8}], b"id: e1-8\n"),
    ],
)
def test_event_is_named_by_the_last_place_that_counts_as_applied(message: Any, name: bytes) -> None:
    """`render` and `patch` count with their commit, so a cut between them loses nothing."""
    assert written(message) == name + b"data: " + json.dumps(message).encode() + b"\n\n"


def test_epoch_of_the_session_names_what_follows() -> None:
    """A renderer that comes back says it again in Last-Event-ID."""
    writer = EventWriter()
    before = written({"type": "delta", "seq": 1}, writer)
    written({"type": "session", "epoch": "e2", "seq": 3, "resume": "new"}, writer)
    after = written({"type": "delta", "seq": 4}, writer)
    assert b"id:" not in before
    assert after.startswith(b"id: e2-4\n")


def test_snapshot_takes_back_the_place_until_it_is_whole() -> None:
    """A stream that breaks off in a snapshot must not resume in the middle of it."""
    writer = EventWriter("e1")
    session = b'{"type":"session","epoch":"e2","seq":9,"resume":"snapshot"}'
    parser = SseParser()
    ids = [
        one.id
        for frame in (b'{"type":"delta","seq":3}', session, b'{"type":"commit","seq":9}')
        for one in parser.feed(writer.event(frame))
    ]
    assert ids == ["e1-3", "", "e2-9"]


def test_catch_up_takes_back_the_place_until_it_is_whole() -> None:
    """What is told without a `seq` would be told again, if the stream resumed before it."""
    writer = EventWriter("e1")
    parser = SseParser()
    ids = [
        one.id
        for frame in (
            b'{"type":"delta","seq":3}',
            b'{"type":"turn","turn_id":"t1","status":"running"}',
            b'{"type":"delta","payload":{"delta":"more"}}',
            b'{"type":"render","components":[]}',
            b'{"type":"commit","seq":9}',
        )
        for one in parser.feed(writer.event(frame))
    ]
    assert ids == ["e1-3", "e1-3", "", "", "e1-9"]


def test_replay_keeps_the_place() -> None:
    """Nothing is missing before what follows."""
    session = {"type": "session", "epoch": "e1", "seq": 9, "resume": "replay"}
    assert not written(session).startswith(b"id:")


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "a\rb", "a\u2028b", "x\n\ndata: y", "\0", "data:"]
)
def test_one_message_in_is_one_event_out(text: str) -> None:
    """T50: nothing in a text ends an event, or begins another."""
    frame = json.dumps({"type": "delta", "seq": 1, "payload": {"delta": text}}, ensure_ascii=False)
    escaped = frame.encode()
    events = list(SseParser().feed(EventWriter("e").event(escaped)))
    assert len(events) == 1
    assert json.loads(events[0].data)["payload"]["delta"] == text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("abc-7", ("abc", 7)),
        ("a-b-7", ("a-b", 7)),
        ("", None),
        ("abc", None),
        ("abc-", None),
        ("-7", None),
        ("abc--7", ("abc-", 7)),
        ("abc-x", None),
        ("abc-1.5", None),
        ("abc-٣", None),
        ("abc-" + "9" * 17, None),
        ("x" * 65 + "-1", None),
    ],
)
def test_last_event_id_is_read_or_passed_over(text: str, place: tuple[str, int] | None) -> None:
    """T31: what is none of ours names no place."""
    assert parse_place(text) == place


class Client:
    """The client's side of a response."""

    def __init__(self) -> None:
        self.body = b""
        self.started: Any = None
        self.ended = False
        self.gone = asyncio.Event()

    async def receive(self) -> Any:
        """As ASGI has it: nothing comes until the client goes."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """As ASGI has it."""
        if message["type"] == "http.response.start":
            self.started = message
        else:
            self.body += message.get("body", b"")
            self.ended = not message.get("more_body", False)


async def test_stream_sends_what_comes_until_the_outbox_is_closed() -> None:
    """And tells the viewer what has left."""
    client, outbox, listener = Client(), QueueOutbox(), Listener()
    outbox.viewer = listener.viewer
    outbox.send([b'{"type":"ack"}'])
    outbox.close(1012, "restarting")
    await stream(client.receive, client.send, outbox, EventWriter())
    headers = dict(client.started["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"
    assert client.body == (
        b'data: {"type":"ack"}\n\nevent: close\ndata: {"code":1012,"reason":"restarting"}\n\n'
    )
    assert client.ended
    assert (outbox.buffered, listener.told) == (0, 1)


async def test_silent_stream_says_a_comment_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """protocol.md 6: it keeps proxies awake, and is no event."""
    monkeypatch.setattr("arp.transport.event_stream.KEEP_ALIVE_S", 0.005)
    client, outbox = Client(), QueueOutbox()
    streaming = asyncio.ensure_future(stream(client.receive, client.send, outbox, EventWriter()))
    await asyncio.sleep(0.05)
    outbox.close(1012, "restarting")
    await streaming
    assert client.body.count(b": \n\n") >= 2
    told = SseParser().feed(client.body)
    assert [event.name for event in told] == ["close"]


async def test_client_that_goes_ends_the_stream_and_leaves_no_task() -> None:
    """Also while nothing is to be sent."""
    client, outbox = Client(), QueueOutbox()
    before = len(asyncio.all_tasks())
    streaming = asyncio.ensure_future(stream(client.receive, client.send, outbox, EventWriter()))
    await asyncio.sleep(0)
    client.gone.set()
    async with asyncio.timeout(30):
        await streaming
    assert outbox.closed == (1001, "gone")
    assert len(asyncio.all_tasks()) == before


async def test_stream_that_is_cancelled_leaves_no_task() -> None:
    """The server stops."""
    client, outbox = Client(), QueueOutbox()
    before = len(asyncio.all_tasks())
    streaming = asyncio.ensure_future(stream(client.receive, client.send, outbox, EventWriter()))
    await asyncio.sleep(0)
    streaming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await streaming
    assert len(asyncio.all_tasks()) == before


QUICK_S = 0.02


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers are asked after 20 ms, and have 50 for the answer."""
    monkeypatch.setattr("arp.transport.event_stream.PING_S", QUICK_S)
    monkeypatch.setattr("arp.transport.event_stream.PONG_S", 0.05)


async def test_reader_that_does_not_answer_pings_is_no_reader(quick: None) -> None:
    """The stream says so, and ends; each ping shows meanwhile that we live."""
    client, pulse = Client(), Pulse(b'{"type":"ping"}')
    await stream(client.receive, client.send, QueueOutbox(), EventWriter(), pulse)
    events = SseParser().feed(client.body)
    assert client.ended
    assert len(events) >= 3
    assert {event.data for event in events[:-1]} == {'{"type":"ping"}'}
    assert (events[-1].name, json.loads(events[-1].data)["code"]) == ("close", 1001)


async def test_reader_that_answers_is_asked_for_as_long_as_it_does(quick: None) -> None:
    """A ping is no place: it has no id, so that it resumes nowhere."""
    client, pulse = Client(), Pulse(b'{"type":"ping"}')
    outbox = QueueOutbox()
    streaming = asyncio.ensure_future(
        stream(client.receive, client.send, outbox, EventWriter("e1"), pulse)
    )
    for count in range(1, 12):
        await becomes(lambda: client.body.count(b"ping") >= count)  # noqa: B023 - at once
        pulse.record_pong()
    assert not client.ended
    outbox.send([b'{"type":"delta","seq":3}'])
    await becomes(lambda: b"delta" in client.body)
    client.gone.set()
    await streaming
    assert b"id:" not in client.body.partition(b"delta")[0].replace(b"id: e1-3", b"")


async def test_reader_that_died_while_much_came_is_found_when_it_is_silent_again(
    quick: None,
) -> None:
    """Frames that go out are no answer."""
    client, pulse = Client(), Pulse(b'{"type":"ping"}')
    outbox = QueueOutbox()
    streaming = asyncio.ensure_future(
        stream(client.receive, client.send, outbox, EventWriter(), pulse)
    )
    await becomes(lambda: b"ping" in client.body)
    for number in range(20):
        outbox.send([b'{"type":"delta","seq":%d}' % number])
        await asyncio.sleep(QUICK_S / 4)
    async with asyncio.timeout(5):
        await streaming
    assert client.ended
