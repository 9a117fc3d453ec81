"""What is logged of frames: types and sizes in every encoding, never what is in them."""

from __future__ import annotations

import logging

import cbor2
import msgspec
import pytest

from arp.live.trace import log_received, traced
from arp.protocol.codec import ENCODINGS, Encoding
from arp.protocol.connection.agent_connection import AgentConnection
from arp.protocol.limits import Limits
from tests.hub.rig import Box

DELTA = {"type": "delta", "v": 1, "session_id": "s", "seq": 7, "turn_id": "t1"}
FRAMES: dict[Encoding, bytes] = {
    "json": msgspec.json.encode({**DELTA, "payload": {"delta": "secret"}}),
    "msgpack": msgspec.msgpack.encode({**DELTA, "payload": {"delta": "secret"}}),
    "cbor": cbor2.dumps({**DELTA, "payload": {"delta": "secret"}}),
}


def test_outbox_is_left_alone_where_nobody_reads_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Tracing must cost nothing where it is off."""
    caplog.set_level(logging.INFO, "arp")
    box = Box()
    assert traced(box, "r", "json") is box


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_frame_that_leaves_is_logged_by_type_place_and_size(
    encoding: Encoding, caplog: pytest.LogCaptureFixture
) -> None:
    """style.md: DEBUG a line per frame."""
    caplog.set_level(logging.DEBUG, "arp")
    box, frame = Box(), FRAMES[encoding]
    outbox = traced(box, "r", encoding)
    outbox.send([frame])
    outbox.close(1012, "restarting")
    assert box.frames == [frame]
    assert outbox.buffered == 0
    assert box.closed == (1012, "restarting")
    assert caplog.messages == [
        f"renderer r > delta seq=7 turn=t1, {len(frame)} bytes",
        "renderer r > close 1012: restarting",
    ]


def test_long_batch_is_cut_and_an_error_shows_its_code(caplog: pytest.LogCaptureFixture) -> None:
    """A line stays a line."""
    caplog.set_level(logging.DEBUG, "arp")
    error = {"type": "error", "v": 1, "payload": {"error": "secret", "code": 12}}
    frame = msgspec.json.encode([error, *[{"type": "commit", "v": 1, "seq": 2}] * 5])
    traced(Box(), "r", "json").send([frame])
    shown = "error code=12, commit seq=2, commit seq=2, commit seq=2 and 2 more"
    assert caplog.messages == [f"renderer r > {shown}, {len(frame)} bytes"]


def test_frame_that_comes_is_logged_by_what_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """What is refused too, by its code."""
    caplog.set_level(logging.DEBUG, "arp")
    frame = (
        b'[{"type":"hello","v":1,"token":"secret"},{"type":"ack","v":1,"seq":3},{"type":"input",'
        b'"v":1,"input_type":"text","data":{"text":"secret"}},{"type":"secret","v":1}]'
    )
    log_received("r", AgentConnection("json", Limits()).receive(frame), 99)
    assert caplog.messages == [
        "renderer r < hello, ack seq=3, input text, refused, code 11, 99 bytes"
    ]
