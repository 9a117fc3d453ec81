"""WebSocket frames as bytes (RFC 6455, 5.2), read back by a library that knows."""

from __future__ import annotations

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from arp.transport.wire import BINARY, PIECE_BYTES, TEXT, WireBacklog, one_piece
from arp.view.frames import Frames


def read(data: bytes | None) -> list[tuple[Opcode, bytes]]:
    """Return the messages that a client reads."""
    assert data is not None
    client = ClientProtocol(parse_uri("ws://localhost/"), state=OPEN, max_size=None)
    client.receive_data(data)
    assert client.parser_exc is None
    frames = [event for event in client.events_received() if isinstance(event, Frame)]
    assert all(frame.fin for frame in frames)
    return [(frame.opcode, bytes(frame.data)) for frame in frames]


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65_535, 65_536])
def test_message_of_any_length_is_read_back(length: int) -> None:
    """Each way of writing the length, and both sides of its bounds."""
    message = b"x" * length
    assert read(one_piece([message], TEXT)) == [(Opcode.TEXT, message)]
    assert read(one_piece([message], BINARY)) == [(Opcode.BINARY, message)]


def test_what_is_too_large_for_one_piece_is_made_by_nobody() -> None:
    """It waits in a backlog, which makes a piece when the socket takes one."""
    assert one_piece([b"x" * PIECE_BYTES, b"y"], TEXT) is None
    assert one_piece(Frames([b"x" * PIECE_BYTES, b"y"]), TEXT) is None


def test_several_messages_are_read_back_in_order() -> None:
    """One write carries them all."""
    messages = [b"a", b"b" * 300, b"", b"c"]
    assert [data for _, data in read(one_piece(messages, TEXT))] == messages


def test_bytes_are_made_once_for_frames_that_are_shared() -> None:
    """For all sockets that get the same."""
    frames = Frames([b"a", b"b"])
    assert one_piece(frames, TEXT) is one_piece(frames, TEXT)
    assert read(one_piece(frames, TEXT)) == [(Opcode.TEXT, b"a"), (Opcode.TEXT, b"b")]


@pytest.mark.parametrize("length", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES, 500_000])
def test_backlog_gives_messages_in_pieces_that_join_to_the_same(length: int) -> None:
    """RFC 6455, 5.4: between two pieces anything else may be sent, since each is whole frames."""
    backlog = WireBacklog(TEXT)
    messages = [b"first", b"x" * length, b"y" * (length // 2), b"last"]
    backlog.add(messages)
    sizes: list[int] = []
    received: list[bytes] = []
    parts = b""
    protocol = ClientProtocol(parse_uri("ws://localhost/"), state=OPEN, max_size=None)
    while backlog:
        piece = backlog.dequeue_piece()
        sizes.append(len(piece))
        protocol.receive_data(piece)
        for frame in protocol.events_received():
            assert isinstance(frame, Frame)
            assert frame.opcode in ((Opcode.CONT,) if parts else (Opcode.TEXT, Opcode.CONT))
            parts += bytes(frame.data)
            if frame.fin:
                received.append(parts)
                parts = b""
    assert received == messages
    assert backlog.size == 0
    assert max(sizes) <= PIECE_BYTES + 100


def test_backlog_that_is_cleared_in_the_middle_of_a_message_begins_anew() -> None:
    backlog = WireBacklog(BINARY)
    backlog.add([b"x" * (2 * PIECE_BYTES)])
    backlog.dequeue_piece()
    backlog.clear()
    backlog.add([b"a", b"b"])
    assert (backlog.frames(), backlog.size) == ([b"a", b"b"], 2)
    assert backlog.dequeue() == b"a"
    assert backlog.dequeue_piece() == b"\x82\x01b"
    assert (bool(backlog), backlog.size) == (False, 0)


def test_message_that_goes_first_overtakes_whole_messages_and_no_part_of_one() -> None:
    """A data message may not stand between two fragments of another (RFC 6455, 5.4)."""
    backlog = WireBacklog(TEXT)
    backlog.add([b"x" * (PIECE_BYTES + 1), b"second"])
    begun = backlog.dequeue_piece()
    backlog.add_first(b"pong")
    rest = [backlog.dequeue_piece(), backlog.dequeue_piece(), backlog.dequeue_piece()]
    assert begun[0] == TEXT & 0x7F
    assert rest[0][0] == 0x80  # the end of the first message
    assert [data for piece in rest[1:] for _, data in read(piece)] == [b"pong", b"second"]
    assert not backlog
    assert backlog.size == 0


def test_of_messages_that_go_first_only_the_newest_waits() -> None:
    """However many come, as much waits as before."""
    backlog = WireBacklog(TEXT)
    backlog.add([b"waits"])
    for number in range(1000):
        backlog.add_first(b"%03d" % number)
    assert backlog.size == len(b"waits") + 3
    assert backlog.frames() == [b"999", b"waits"]
    assert [backlog.dequeue(), backlog.dequeue()] == [b"999", b"waits"]
    assert backlog.size == 0


def test_message_that_goes_first_alone_is_something_that_waits() -> None:
    """And is forgotten with the rest."""
    backlog = WireBacklog(TEXT)
    backlog.add_first(b"pong")
    assert backlog
    assert read(backlog.dequeue_piece()) == [(Opcode.TEXT, b"pong")]
    backlog.add_first(b"pong")
    backlog.clear()
    assert not backlog
    assert backlog.size == 0
