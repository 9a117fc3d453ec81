"""WebSocket over ASGI: sending costs what the socket costs, and closing waits for what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from arp.access.principal import Principal
from arp.hub.peers.peer import Peer
from arp.live.outbox import LOW_WATER_BYTES
from arp.transport.websocket import SocketOutbox, talk
from arp.transport.wire import PIECE_BYTES
from tests.hub.rig import running
from tests.support.waiting import becomes
from tests.transport.listener import Listener


class Socket:
    """The server's side of a socket: it takes events at once, or when a test lets it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.error: Exception | None = None
        self.free = asyncio.Event()
        self.free.set()

    async def send(self, event: Any) -> None:
        """As ASGI has it."""
        await self.free.wait()
        if self.error is not None:
            raise self.error
        self.sent.append(event)

    @property
    def texts(self) -> list[str]:
        """The data that was sent."""
        return [event["text"] for event in self.sent if event["type"] == "websocket.send"]


class DirectWire:
    """Takes ready frames when it can."""

    when_writable: Callable[[], None]

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.open = True
        self.room = 1000
        """How many pieces more it takes."""

    def can_write(self) -> bool:
        """Whether bytes may be written now."""
        return self.open and self.room > 0

    def write(self, data: bytes) -> None:
        """Takes them."""
        self.room -= 1
        self.written.append(data)


def tasks() -> int:
    return len(asyncio.all_tasks())


async def test_frame_that_the_socket_takes_at_once_needs_no_task() -> None:
    """One system call, no more."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    before = tasks()
    outbox.send([b"a", b"b"])
    assert socket.texts == ["a", "b"]
    assert tasks() == before
    assert outbox.buffered == 0


async def test_binary_encodings_go_out_as_binary() -> None:
    """protocol.md 1: text frames carry JSON, binary frames the others."""
    socket = Socket()
    SocketOutbox(socket.send, "msgpack").send([b"\x80"])
    assert socket.sent == [{"type": "websocket.send", "bytes": b"\x80"}]


async def test_frames_queue_behind_one_that_waits() -> None:
    """In order, counted in bytes, and the viewer is told when little is left."""
    socket, listener = Socket(), Listener()
    outbox = SocketOutbox(socket.send, "json")
    outbox.viewer = listener.viewer
    socket.free.clear()
    big = "ä" * LOW_WATER_BYTES
    for text in ("first", big, "last"):
        outbox.send([text.encode()])
    buffered, told = outbox.buffered, listener.told
    socket.free.set()
    await becomes(lambda: len(socket.texts) == 3)
    await becomes(lambda: outbox.buffered == 0)
    outbox.send([b"next"])
    assert buffered == 5 + 2 * LOW_WATER_BYTES + 4
    assert told == 0
    assert listener.told > 0
    assert socket.texts == ["first", big, "last", "next"]


async def test_count_of_what_waits_is_right_while_it_leaves() -> None:
    """Bytes, not characters, on the way in and on the way out."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    socket.free.clear()
    for _ in range(3):
        outbox.send(["ü".encode()])
    counts: list[int] = []

    async def take(event: Any) -> None:
        counts.append(outbox.buffered)
        socket.sent.append(event)

    outbox._send = take
    socket.free.set()
    await becomes(lambda: len(socket.texts) == 3)
    assert counts == [4, 2]


async def test_peer_that_is_gone_makes_no_noise() -> None:
    """Each server has an error of its own for it; the reading side ends the connection."""
    socket = Socket()
    socket.error = OSError("gone")
    outbox = SocketOutbox(socket.send, "json")
    outbox.send([b"a"])
    outbox.send([b"b"])
    assert (socket.sent, outbox.buffered) == ([], 0)


async def test_peer_that_goes_while_frames_wait_costs_nothing_more() -> None:
    """What waited is dropped, and nothing is kept for it."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    socket.free.clear()
    outbox.send([b"a", b"b", b"c"])
    socket.error = OSError("gone")
    socket.free.set()
    await becomes(lambda: outbox.buffered == 0)
    outbox.send([b"d"])
    assert socket.sent == []
    assert outbox.buffered == 0


async def test_close_comes_behind_what_waits_once() -> None:
    """And nothing comes behind the close."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    socket.free.clear()
    outbox.send([b"a", b"b"])
    outbox.close(1012, "restarting")
    outbox.close(1000, "again")
    outbox.send([b"late"])
    socket.free.set()
    await becomes(lambda: len(socket.sent) == 3)
    assert socket.texts == ["a", "b"]
    assert socket.sent[-1] == {"type": "websocket.close", "code": 1012, "reason": "restarting"}


async def test_close_does_not_wait_for_a_peer_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked of the server all the same, which ends the connection in its own time."""
    monkeypatch.setattr("arp.transport.websocket.FLUSH_S", 0.01)
    socket = Socket()
    asked: list[str] = []

    async def send(event: Any) -> None:
        asked.append(event["type"])
        await socket.send(event)

    outbox = SocketOutbox(send, "json")
    socket.free.clear()
    outbox.send([b"a"])
    outbox.close(1012, "restarting")
    await becomes(lambda: "websocket.close" in asked)
    socket.free.set()
    await becomes(lambda: len(socket.sent) == 2)


async def test_ready_frames_go_past_the_server_where_it_offers_that() -> None:
    """What the wire cannot take now goes when it can, without changing the order."""
    socket, wire, listener = Socket(), DirectWire(), Listener()
    outbox = SocketOutbox(socket.send, "json", wire)
    outbox.viewer = listener.viewer
    outbox.send([b"a"])
    wire.open = False
    outbox.send([b"b"])
    outbox.send([b"c", b"d"])
    waited, waiting = outbox.buffered, outbox.waiting()
    wire.open = True
    wire.when_writable()
    outbox.send([b"e"])
    outbox.close(1000, "done")
    outbox.send([b"f"])
    await becomes(lambda: len(socket.sent) == 1)
    assert (waited, waiting) == (3, [b"b", b"c", b"d"])
    assert (outbox.buffered, listener.told) == (0, 1)
    assert wire.written == [b"\x81\x01a", b"\x81\x01b\x81\x01c\x81\x01d", b"\x81\x01e"]
    assert socket.sent == [{"type": "websocket.close", "code": 1000, "reason": "done"}]


async def test_large_message_goes_in_pieces_each_when_the_last_was_taken() -> None:
    """So a socket that nobody reads holds one piece, whatever waits for it."""
    socket, wire, listener = Socket(), DirectWire(), Listener()
    outbox = SocketOutbox(socket.send, "json", wire)
    outbox.viewer = listener.viewer
    wire.room = 1
    frames = [b"x" * (3 * PIECE_BYTES), b"last"]
    outbox.send(frames)
    held, waiting = [len(piece) for piece in wire.written], outbox.waiting()
    counts = []
    while outbox.buffered:
        wire.room = 1
        wire.when_writable()
        counts.append(outbox.buffered)
    assert held == [PIECE_BYTES + 10]
    assert all(one is other for one, other in zip(waiting, frames, strict=True))
    assert counts == [PIECE_BYTES + 4, 4, 0]
    assert listener.told > 0


async def test_close_waits_for_the_wire_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited goes out before; of a peer that takes nothing it is dropped."""
    monkeypatch.setattr("arp.transport.websocket.FLUSH_S", 0.05)
    for takes in (True, False):
        socket, wire = Socket(), DirectWire()
        outbox = SocketOutbox(socket.send, "json", wire)
        wire.open = False
        outbox.send([b"a"])
        outbox.close(1012, "restarting")
        await asyncio.sleep(0)
        wire.open = takes
        wire.when_writable()
        await becomes(lambda socket=socket: len(socket.sent) == 1)  # type: ignore[misc]
        assert wire.written == ([b"\x81\x01a"] if takes else [])
        assert outbox.waiting() == []


async def test_ended_outbox_keeps_nothing_and_waits_for_nothing() -> None:
    socket, wire = Socket(), DirectWire()
    outbox = SocketOutbox(socket.send, "json", wire)
    wire.open = False
    outbox.send([b"a"])
    outbox.end()
    outbox.send([b"b"])
    assert (outbox.buffered, outbox.waiting()) == (0, [])
    assert not hasattr(wire, "when_writable")


async def test_send_that_is_cancelled_while_it_waits_lets_go_of_its_place() -> None:
    """A coroutine that was driven by hand goes on as if it had been awaited."""
    socket = Socket()
    ended: list[str] = []

    async def send(event: Any) -> None:
        try:
            await socket.send(event)
        finally:
            ended.append("ended")

    outbox = SocketOutbox(send, "json")
    socket.free.clear()
    outbox.send([b"a"])
    sending = outbox._task
    assert sending is not None
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])
    assert sending.cancelled()
    assert ended == ["ended"]


async def talked(events: list[Any]) -> tuple[Socket, dict[str, Any]]:
    """Serves one connection that sends these events, and goes."""
    socket, queue = Socket(), list(events)
    seen: dict[str, Any] = {}
    async with running() as hub:

        def make_peer(outbox: SocketOutbox) -> Peer:
            return Peer(hub, outbox, "json", "agent", Principal(), check)

        async def receive() -> Any:
            if queue:
                return queue.pop(0)
            await becomes(lambda: any('"final":true' in text for text in socket.texts))
            return {"type": "websocket.disconnect"}

        await talk({}, receive, socket.send, "json", "arp.session.v1.json", make_peer)
        seen["watching"] = len(hub.sessions["s"].viewers)
    return socket, seen


async def check(_: str) -> Principal | None:
    return None


SAID = {"v": 1, "type": "input", "session_id": "s", "input_type": "text", "data": {"text": "x"}}


@pytest.mark.parametrize("key", ["text", "bytes"])
async def test_one_message_is_one_frame_until_either_side_ends_it(key: str) -> None:
    """protocol.md 1; at the end the renderer is forgotten."""
    frame: Any = json.dumps(SAID) if key == "text" else json.dumps(SAID).encode()
    other = "bytes" if key == "text" else "text"
    socket, seen = await talked([{"type": "websocket.receive", key: frame, other: None}])
    types = [json.loads(text)["type"] for text in socket.texts]
    accepted = {"type": "websocket.accept", "subprotocol": "arp.session.v1.json"}
    assert socket.sent[0] == accepted
    assert types == ["hello", "turn", "commit"]
    assert seen["watching"] == 0


async def test_frame_that_goes_first_leaves_at_once_if_nothing_waits() -> None:
    """With a wire and without."""
    socket, wire = Socket(), DirectWire()
    SocketOutbox(socket.send, "json").send_first(b"pong")
    SocketOutbox(socket.send, "json", wire).send_first(b"pong")
    assert socket.texts == ["pong"]
    assert wire.written == [b"\x81\x04pong"]


async def test_frame_that_goes_first_overtakes_what_waits_for_the_wire() -> None:
    """Of a thousand the newest alone."""
    wire = DirectWire()
    outbox = SocketOutbox(Socket().send, "json", wire)
    wire.open = False
    outbox.send([b"a", b"b"])
    for number in range(1000):
        outbox.send_first(b"%03d" % number)
    assert outbox.buffered == len(b"ab999")
    assert outbox.waiting() == [b"999", b"a", b"b"]
    wire.open = True
    wire.when_writable()
    assert b"".join(wire.written) == b"\x81\x03999\x81\x01a\x81\x01b"
    assert outbox.buffered == 0


async def test_frame_that_goes_first_overtakes_what_waits_for_another_server() -> None:
    """What is on its way already goes before it."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    socket.free.clear()
    outbox.send([b"on its way", b"a"])
    for number in range(1000):
        outbox.send_first(b"%03d" % number)
    buffered = outbox.buffered
    socket.free.set()
    await becomes(lambda: outbox.buffered == 0)
    assert buffered == len(b"on its way" + b"a" + b"999")
    assert socket.texts == ["on its way", "999", "a"]


async def test_ended_outbox_sends_nothing_first() -> None:
    """The connection is gone."""
    socket = Socket()
    outbox = SocketOutbox(socket.send, "json")
    outbox.end()
    outbox.send_first(b"pong")
    assert socket.sent == []
