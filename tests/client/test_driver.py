"""The driver over links in memory: cut anywhere, in any order, on a clock that does not pass."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.client.driver import Driver, FrameQueue, Outgoing
from arp.client.errors import LinkLost, ServerRefused
from arp.client.events import Connected, Disconnected, Event
from arp.client.options import Backoff, renderer_hello
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import Commit, Delta, ErrorMessage, Patch, RendererCapabilities
from tests.client import agent_messages as say
from tests.client.agent_messages import EPOCH, STORY, STORY_SCREEN, Message

CUT = LinkLost("cut")

END = LinkLost("the end", error=ServerRefused("the end"))


class Server:
    """An agent side in memory, with a session of its own and a log that can be resumed."""

    def __init__(
        self, plans: Sequence[tuple[int, int, bool]] = (), log: list[Message] = STORY
    ) -> None:
        self.plans = list(plans)
        """Of each connection but the last: frames until the cut, size, by snapshot or not."""
        self.connections = len(self.plans) + 1
        self.log = log
        self.hellos: list[Message] = []
        self.inputs: dict[str, list[Message]] = {}
        """Every arrival of each input, by id."""
        self.sent: list[Message] = []
        """All that came besides `hello`, in order."""
        self.last = END
        """How the last connection ends."""

    async def dial(self, hello: bytes) -> Link:
        self.hellos.append(json.loads(hello))
        if not self.plans:
            return Link(self, self.told(False), 1, None, self.last)
        frames, size, snapshot = self.plans.pop(0)
        return Link(self, self.told(snapshot), size, frames, CUT)

    def told(self, snapshot: bool) -> list[Message]:
        hello = self.hellos[-1]
        if "session_id" not in hello:
            return [say.HELLO, say.session("new"), *self.log]
        resume = hello.get("resume")
        if snapshot or resume is None:
            return [say.HELLO, say.session("snapshot", 9), *SNAPSHOT_AT_9, *after(self.log, 9)]
        assert resume["epoch"] == EPOCH
        return [say.HELLO, say.session("replay", 11), *after(self.log, resume["seq"])]


class Link:
    """One connection to it."""

    carries_acks = True
    is_remote = True

    def __init__(
        self, server: Server, told: list[Message], size: int, frames: int | None, end: LinkLost
    ) -> None:
        batches = [told[at : at + size] for at in range(0, len(told), size)]
        self.frames = [json.dumps(b if len(b) > 1 else b[0]).encode() for b in batches][:frames]
        self.server = server
        self.end = end
        self.closed = False
        self.acks: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(self) -> bytes:
        await asyncio.sleep(0)
        if self.frames:
            return self.frames.pop(0)
        if self.end is not END:
            raise self.end
        return await self.acks.get()

    async def send(self, frame: bytes) -> bytes | None:
        message = json.loads(frame)
        self.server.sent.append(message)
        if message["type"] == "input":
            self.server.inputs.setdefault(message["id"], []).append(message)
            self.acks.put_nowait(json.dumps(say.ack(message["id"])).encode())
        return None

    async def aclose(self) -> None:
        self.closed = True


def after(log: list[Message], seq: int) -> list[Message]:
    """What follows a place: whole groups, of which the last message carries the seq."""
    for index, message in enumerate(log):
        if message.get("seq", 0) > seq:
            start = index
            while start and "seq" not in log[start - 1]:
                start -= 1
            return log[start:]
    return []


SNAPSHOT_AT_9 = [
    STORY[0] | {"seq": None},
    say.status("running", None),
    STORY[4] | {"seq": None, "behind": {"component": "t1/1"}},
    STORY[5] | {"seq": None},
    say.message(
        "render",
        components=[
            {
                "id": "t1/1",
                "type": "text",
                "props": {"content": "Let me look.", "format": "markdown"},
            },
            say.text("a", "two"),
            {"id": "t1/2", "type": "text", "props": {"content": "After.", "format": "markdown"}},
            say.text("b", "three"),
        ],
    ),
    say.commit(9),
]


class Rig:
    """A driver on a server, with everything that it tells and waits for."""

    def __init__(self, server: Server, features: Sequence[str] = ()) -> None:
        hello = renderer_hello({"capabilities": RendererCapabilities(["text"], list(features))})
        self.connection = RendererConnection(hello)
        self.events: list[Event] = []
        self.waits: list[float] = []
        self.uploads: list[str] = []
        self.server = server
        self.driver = Driver(
            self.connection,
            server.dial,
            lambda event, weight: self.events.append(event),
            backoff=Backoff(draw=lambda: 1.0, sleep=self.sleep),
            answer_timeout_s=5,
            acks="frame-ack" in features,
        )

    async def sleep(self, delay_s: float) -> None:
        self.waits.append(delay_s)
        await asyncio.sleep(0)

    async def upload(self, session_id: str) -> None:
        self.uploads.append(session_id)
        await asyncio.Event().wait()

    async def run(self) -> object:
        async with asyncio.timeout(10):
            return await self.driver.run(self.upload)

    def send(self, input_id: str) -> None:
        self.driver.send(self.connection.input("text", {"text": "hi"}, input_id=input_id))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def until_answered(rig: Rig) -> None:
    """Runs until no more cuts are planned, every input has its answer, and the story is told."""

    def settled() -> bool:
        last = len(rig.server.hellos) == rig.server.connections and rig.driver.ready.is_set()
        return last and rig.connection.seq == 11 and not rig.connection.unacknowledged

    await until(rig, settled)


async def until(rig: Rig, reached: Callable[[], bool]) -> None:
    """Runs until something is reached."""
    running = asyncio.ensure_future(rig.run())
    async with asyncio.timeout(10):
        while not reached():  # noqa: ASYNC110 - no event tells of all that may be waited for
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])


async def test_undisturbed_connection_shows_the_story() -> None:
    rig = Rig(Server())
    await until_answered(rig)
    assert rig.connection.screen.canonical() == STORY_SCREEN
    assert rig.events[1] == Connected("s1", "new")
    assert rig.waits == []
    assert rig.uploads == ["s1"]


@pytest.mark.parametrize("cut", range(len(STORY) + 3))
async def test_connection_cut_after_any_message_comes_back_and_shows_the_story(cut: int) -> None:
    """Source: protocol.md 2.3: the screen afterwards equals one that never left."""
    server = Server([(cut, 1, False)])
    rig = Rig(server)
    rig.send("i1")
    await until_answered(rig)
    assert rig.connection.screen.canonical() == STORY_SCREEN
    assert rig.waits == [1.0]
    assert len(server.hellos) == 2
    assert list(server.inputs) == ["i1"]


@given(
    st.lists(
        st.tuples(st.integers(0, len(STORY) + 8), st.integers(1, 4), st.booleans()), max_size=6
    ),
    st.integers(0, 3),
)
def test_any_cuts_batches_and_snapshots_end_in_the_same_screen(
    plans: list[tuple[int, int, bool]], inputs: int
) -> None:
    async def scenario() -> None:
        server = Server(plans)
        rig = Rig(server)
        for number in range(inputs):
            rig.send(f"i{number}")
        await until_answered(rig)
        assert rig.connection.screen.canonical() == STORY_SCREEN
        assert rig.connection.seq == 11
        assert sorted(server.inputs) == [f"i{number}" for number in range(inputs)]
        assert len(server.hellos) == len(plans) + 1

    asyncio.run(scenario())


async def test_replay_tells_each_message_once() -> None:
    rig = Rig(Server([(cut, 1, False) for cut in (6, 4, 5, 3)]))
    await until_answered(rig)
    told = [event for event in rig.events if isinstance(event, Delta | Commit | Patch)]
    assert [type(event).__name__ for event in told] == [
        "Delta", "Delta", "Commit", "Delta", "Patch", "Commit", "Commit",
    ]  # fmt: skip


async def test_frame_is_told_whole_or_not_at_all() -> None:
    """Source: protocol.md 2.1: what is pending when the connection is lost is dropped."""
    cut_inside_the_second_commit = 2 + 11
    rig = Rig(Server([(cut_inside_the_second_commit, 1, False)]))
    await until_answered(rig)
    lost = rig.events.index(Disconnected("cut", 1.0))
    assert not any(isinstance(event, Patch) for event in rig.events[:lost])
    assert len(rig.of(Patch)) == 1


async def test_listeners_keep_what_they_were_told_while_the_screen_goes_on() -> None:
    log = [
        say.render(say.text("a", "one"), 1),
        say.commit(1),
        say.patch(2, {"op": "update", "target": "a", "path": "props.content", "value": "two"}),
        say.commit(2, final=True) | {"seq": 11},
    ]
    rig = Rig(Server([(9, 4, False)], log))
    await until_answered(rig)
    assert [event.components[0].props for event in rig.events if hasattr(event, "components")] == [
        {"content": "one"}
    ]
    assert rig.connection.screen.text("t1") == ""
    assert rig.connection.screen.output("t1")[0].props == {"content": "two"}


async def test_input_that_was_not_answered_is_sent_again_with_the_same_id() -> None:
    """Source: protocol.md 2.2: the same `id` twice is one input."""
    server = Server([(3, 1, False), (4, 1, False)])
    rig = Rig(server)
    rig.send("i1")
    await until_answered(rig)
    assert list(server.inputs) == ["i1"]
    assert {arrival["session_id"] for arrival in server.inputs["i1"]} == {"s1"}
    assert rig.connection.unacknowledged == {}


async def test_inputs_keep_their_order_over_a_reconnect() -> None:
    server = Server([(0, 1, False)])
    rig = Rig(server)
    for name in ("i1", "i2", "i3"):
        rig.send(name)
    await until_answered(rig)
    assert [message["id"] for message in server.sent] == ["i1", "i2", "i3"]


async def test_waits_grow_while_nothing_answers_and_begin_anew_after_a_session() -> None:
    plans = [(0, 1, False)] * 6 + [(2, 1, False)] * 2
    rig = Rig(Server(plans))
    await until_answered(rig)
    assert rig.waits == [1, 2, 4, 8, 16, 16, 1, 1]
    assert rig.of(Disconnected) == [Disconnected("cut", wait) for wait in rig.waits]


async def test_server_that_refuses_for_good_ends_it() -> None:
    server = Server()
    server.last = LinkLost("closed with 1008", error=ServerRefused("no"))
    rig = Rig(server)
    assert await rig.run() is server.last.error
    assert rig.events[-1] == Disconnected("closed with 1008", None)
    assert not rig.driver.ready.is_set()
    assert rig.waits == []


async def test_connection_that_does_not_come_about_is_tried_again() -> None:
    server, attempts = Server(), 0

    async def dial(hello: bytes) -> Link:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise LinkLost("connection refused")
        return await server.dial(hello)

    rig = Rig(server)
    rig.driver._dial = dial
    await until_answered(rig)
    assert rig.waits == [1, 2, 4]


async def test_peer_that_never_answers_the_hello_is_left() -> None:
    class Mute(Link):
        async def receive(self) -> bytes:
            return await self.acks.get()

    server = Server()
    links: list[Link] = []

    async def dial(hello: bytes) -> Link:
        if len(links) == 2:
            raise END
        links.append(Mute(server, [], 1, 0, CUT))
        return links[-1]

    rig = Rig(server)
    rig.driver._dial = dial
    rig.driver._answer_timeout_s = 0.01
    await rig.run()
    assert rig.of(Disconnected)[0].reason == "no answer to our hello within 0.01 s"
    assert all(link.closed for link in links)


async def test_fault_of_a_link_is_raised_and_not_taken_for_a_loss() -> None:
    class Faulty(Link):
        async def receive(self) -> bytes:
            raise ZeroDivisionError

    server = Server()
    link = Faulty(server, [], 1, 0, CUT)

    async def dial(hello: bytes) -> Link:
        return link

    rig = Rig(server)
    rig.driver._dial = dial
    with pytest.raises(ZeroDivisionError):
        await rig.run()
    assert link.closed


async def test_closing_in_mid_stream_closes_the_link() -> None:
    server = Server()
    links: list[Link] = []

    async def dial(hello: bytes) -> Link:
        links.append(await server.dial(hello))
        return links[-1]

    rig = Rig(server)
    rig.driver._dial = dial
    await until_answered(rig)
    assert links[0].closed
    assert not rig.driver.ready.is_set()


async def test_bad_frame_from_the_server_is_told_and_the_connection_lives_on() -> None:
    rig = Rig(Server())
    bad = [
        b"{",
        b"[]",
        b"7",
        b'{"v":1,"type":"new-thing","x":1}',
        b'{"type":"delta","payload":7}',
        b"\xff\xfe",
    ]

    def is_fed() -> bool:
        if rig.driver.ready.is_set():
            for frame in bad:
                rig.driver._receive(frame)
        return rig.driver.ready.is_set()

    await until(rig, is_fed)
    assert [event.payload.code for event in rig.of(ErrorMessage)] == [11, 11, 11, 11]


async def test_frame_ack_says_the_last_commit_where_both_sides_have_it() -> None:
    """Source: protocol.md 2.2, `ack`."""
    server = Server()
    rig = Rig(server, ["frame-ack"])
    await until(rig, lambda: bool(server.sent) and server.sent[-1]["seq"] == 11)
    places = [message["seq"] for message in server.sent]
    assert places == sorted(set(places))
    assert set(places) <= {7, 9, 11}


async def test_no_ack_without_the_feature_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Server()
    await until_answered(Rig(silent))
    assert silent.sent == []
    without = {**say.HELLO, "capabilities": {**say.HELLO["capabilities"], "features": []}}
    monkeypatch.setattr(say, "HELLO", without)
    other = Server()
    await until_answered(Rig(other, ["frame-ack"]))
    assert other.sent == []


async def test_answer_that_came_with_a_send_is_taken_like_any_frame() -> None:
    class Answering(Link):
        async def send(self, frame: bytes) -> bytes | None:
            await super().send(frame)
            return self.acks.get_nowait()

    server = Server()

    async def dial(hello: bytes) -> Link:
        server.hellos.append(json.loads(hello))
        return Answering(server, server.told(False), 1, None, END)

    rig = Rig(server)
    rig.driver._dial = dial
    rig.send("i1")
    await until_answered(rig)
    assert rig.connection.unacknowledged == {}


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
async def test_answer_from_beside_the_link_is_json_whatever_the_encoding(encoding: Any) -> None:
    rig = Rig(Server())
    rig.connection = RendererConnection(renderer_hello({}), encoding)
    rig.driver = Driver(
        rig.connection,
        Server().dial,
        lambda event, weight: rig.events.append(event),
        backoff=Backoff(),
        answer_timeout_s=5,
        acks=False,
    )
    rig.connection.input("text", {}, input_id="i1")
    rig.driver.ready.set()
    rig.driver.receive_json(json.dumps(say.ack("i1")).encode())
    assert rig.connection.unacknowledged == {}
    rig.driver.receive_json(b"<html>")
    assert len(rig.events) == (2 if encoding == "json" else 1)


async def dequeued(outbox: FrameQueue) -> list[Outgoing]:
    return await asyncio.wait_for(outbox.dequeue_all(), 5)


async def test_frames_leave_in_order_and_the_newest_ack_last() -> None:
    outbox = FrameQueue()
    outbox.enqueue_ack(b"ack 1")
    outbox.enqueue(b"a")
    outbox.enqueue_ack(b"ack 2")
    outbox.enqueue(b"b")
    assert await dequeued(outbox) == [b"a", b"b", b"ack 2"]
    outbox.enqueue(b"c")
    assert await dequeued(outbox) == [b"c"]


async def test_reader_waits_until_the_queue_is_not_empty() -> None:
    outbox = FrameQueue()
    waiting = asyncio.ensure_future(outbox.dequeue_all())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.enqueue(b"a")
    assert await asyncio.wait_for(waiting, 30) == [b"a"]


async def test_cleared_queue_is_empty() -> None:
    outbox = FrameQueue()
    outbox.enqueue(b"a")
    outbox.enqueue_ack(b"ack")
    outbox.clear()
    waiting = asyncio.ensure_future(outbox.dequeue_all())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_cancelled_dequeue_removes_nothing() -> None:
    outbox = FrameQueue()
    waiting = asyncio.ensure_future(outbox.dequeue_all())
    await asyncio.sleep(0)
    waiting.cancel()
    outbox.enqueue(b"a")
    await asyncio.wait([waiting])
    assert await dequeued(outbox) == [b"a"]
