"""Three encodings, one meaning; what is not readable is refused in words (protocol.md 1)."""

from __future__ import annotations

import contextlib
import datetime
import uuid
from decimal import Decimal
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import (
    ARRAY_BYTES,
    ENCODINGS,
    MAX_BATCH,
    Encoding,
    UnreadableMessage,
    agent_decoder,
    cursor_after,
    encode,
    encode_json,
    join_frames,
    recode,
    renderer_decoder,
)
from arp.protocol.errors import ErrorPayload, InvalidMessage
from arp.protocol.messages import (
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    InputAck,
    Ping,
    RendererAck,
    SessionReady,
    TurnMessage,
)
from tests.protocol.sample_messages import FROM_AGENT, FROM_RENDERER

INPUT = {"type": "input", "input_type": "text", "data": {"text": "hi"}}


def packed(value: Any, encoding: Encoding) -> bytes:
    """A value in an encoding, by the libraries themselves."""
    if encoding == "json":
        return msgspec.json.encode(value)
    return msgspec.msgpack.encode(value) if encoding == "msgpack" else cbor2.dumps(value)


def refused(frame: bytes, encoding: Encoding = "json") -> str:
    with pytest.raises(InvalidMessage) as error:
        renderer_decoder(encoding).decode(frame)
    return error.value.message


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("message", FROM_AGENT, ids=lambda m: type(m).__name__)
def test_message_of_the_agent_side_survives(message: Any, encoding: Encoding) -> None:
    """style.md: decode(encode(m)) == m."""
    frame = recode(encode_json(message), encoding)
    assert agent_decoder(encoding).decode(frame) == [message]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("message", FROM_RENDERER, ids=lambda m: type(m).__name__)
def test_message_of_a_renderer_survives(message: Any, encoding: Encoding) -> None:
    frame = recode(encode_json(message), encoding)
    assert renderer_decoder(encoding).decode(frame) == [message]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_frame_may_be_an_array_of_messages(encoding: Encoding) -> None:
    """Feature `batch`."""
    frame = recode(encode_json(FROM_RENDERER), encoding)
    assert renderer_decoder(encoding).decode(frame) == FROM_RENDERER
    assert renderer_decoder(encoding).decode(packed([], encoding)) == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_newer_fields_are_ignored_in_every_encoding(encoding: Encoding) -> None:
    frame = packed({**INPUT, "mood": {"happy": [1, None]}}, encoding)
    assert renderer_decoder(encoding).decode(frame) == [
        Input(input_type="text", data={"text": "hi"})
    ]


def test_json_of_a_message_has_no_line_breaks() -> None:
    """stdio: NDJSON, one message a line."""
    delta = Delta(session_id="s", payload=DeltaPayload("a\r\nb\u2028c"))
    assert b"\n" not in encode_json(delta)
    assert b"\r" not in encode_json(delta)


@given(
    st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1)
)
def test_values_survive_every_encoding(text: str, number: float, whole: int) -> None:
    message = Input(input_type="action", data={"action": text, "payload": [number, whole]})
    for encoding in ENCODINGS:
        frame = recode(encode_json(message), encoding)
        assert renderer_decoder(encoding).decode(frame) == [message]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "message: expected object or array, got number"),
        ("text", "message: expected object or array, got string"),
        (None, "message: expected object or array, got null"),
        ({}, "message.type: missing"),
        ({"type": 5}, "message.type: expected string, got number"),
        (
            {"type": "explode"},
            "message.type: 'explode' is not one of hello, input, ack, ping, pong",
        ),
        ([INPUT, 7], "message[1]: expected object, got number"),
        ([INPUT, {"type": None}], "message[1].type: missing"),
        ({**INPUT, "data": []}, "message.data: expected object, got array"),
        ({**INPUT, "v": "1"}, "message.v: expected number, got string"),
        ({"type": "ack"}, "message.seq: missing"),
        ({"type": "ack", "seq": -1}, "message.seq: expected a number in 0…2⁵³"),
        ({**INPUT, "id": ""}, "message.id: expected 1…128 printable ASCII characters"),
        (
            {"type": "hello", "capabilities": {"limits": {"max_table_rows": 0}}},
            "message.capabilities.limits.max_table_rows: expected a number from 1",
        ),
    ],
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_message_that_does_not_fit_is_refused_in_words(
    value: Any, message: str, encoding: Encoding
) -> None:
    if value == {"type": "explode"}:
        assert renderer_decoder(encoding).decode(packed(value, encoding)) == []
        (only,) = renderer_decoder(encoding).read(packed(value, encoding))
        assert isinstance(only, UnreadableMessage)
        assert (only.error.message, only.of_unknown_type) == (message, True)
    else:
        assert refused(packed(value, encoding), encoding) == message


def test_unknown_input_type_is_told_with_the_known_ones() -> None:
    told = refused(packed({**INPUT, "input_type": "telepathy"}, "json"))
    assert told.startswith(
        "message.input_type: 'telepathy' is not one of text, action, form_submit"
    )


def test_good_messages_of_a_frame_are_read_beside_bad_ones() -> None:
    frame = packed([{"type": "ack", "seq": 1}, {**INPUT, "id": "i1", "data": 1}, INPUT], "json")
    first, second, third = renderer_decoder("json").read(frame)
    assert first == RendererAck(seq=1)
    assert isinstance(second, UnreadableMessage)
    assert second.error.message == "message[1].data: expected object, got number"
    assert second.input_id == "i1"
    assert third == Input(input_type="text", data={"text": "hi"})


@pytest.mark.parametrize("given_id", [5, None, "x" * 129, ["i"]])
def test_an_id_that_is_none_is_not_repeated(given_id: Any) -> None:
    (only,) = renderer_decoder("json").read(packed({**INPUT, "data": 1, "id": given_id}, "json"))
    assert isinstance(only, UnreadableMessage)
    assert only.input_id is None


def test_id_of_the_greatest_length_is_repeated() -> None:
    (only,) = renderer_decoder("json").read(packed({**INPUT, "data": 1, "id": "x" * 128}, "json"))
    assert isinstance(only, UnreadableMessage)
    assert only.input_id == "x" * 128


def test_only_message_of_a_frame_is_named_by_its_type() -> None:
    """A renderer knows by it whether something of a commit is missing."""
    bad = {"type": "render", "session_id": "s", "components": 5}
    with pytest.raises(InvalidMessage) as alone:
        agent_decoder("json").decode(packed(bad, "json"))
    with pytest.raises(InvalidMessage) as among:
        agent_decoder("json").decode(packed([bad, bad], "json"))
    assert (alone.value.detail, among.value.detail) == ("render", None)


def test_types_of_a_newer_peer_are_passed_over() -> None:
    commit = Commit(session_id="s", seq=4)
    frame = packed([{"type": "hologram", "x": 1}, msgspec.to_builtins(commit)], "json")
    assert agent_decoder("json").decode(frame) == [commit]


@pytest.mark.parametrize(
    ("frame", "encoding"),
    [
        (b"", "json"),
        (b"{", "json"),
        (b"\xff\xfe", "json"),
        (b'{"type":"input","input_type":"text","data":{"n":NaN}}', "json"),
        (b'{"type":"input","input_type":"text","data":{"s":"\\ud800"}}', "json"),
        (b'{"type":"input","input_type":"text","data":{"s":"\xed\xa0\x80"}}', "json"),
        (b'{"type":"ack","seq":1} trailing', "json"),
        (b"", "msgpack"),
        (b"\xc1", "msgpack"),
        (b"\x81\xa1", "msgpack"),
        (msgspec.msgpack.encode({"type": "ack", "seq": 1}) + b"\x00", "msgpack"),
        (msgspec.msgpack.encode({**INPUT, "data": {"s": msgspec.msgpack.Ext(5, b"x")}}), "msgpack"),
        (msgspec.msgpack.encode({**INPUT, "data": {"s": b"bytes"}}), "msgpack"),
        (msgspec.msgpack.encode({**INPUT, "data": {"s": float("inf")}}), "msgpack"),
        (msgspec.msgpack.encode({**INPUT, "data": {1: 2}}), "msgpack"),
        (b"\xa3\xed\xa0\x80", "msgpack"),
        (b"", "cbor"),
        (b"\x5f\xff", "cbor"),
        (b"\x9b" + b"\xff" * 8, "cbor"),
        (b"\xff", "cbor"),
        (b"\x63\xed\xa0\x80", "cbor"),
        (b"\xa2\x61a\x01\x61a\x02", "cbor"),
        (cbor2.dumps({**INPUT, "data": {"s": b"bytes"}}), "cbor"),
        (cbor2.dumps({**INPUT, "data": {"s": cbor2.undefined}}), "cbor"),
        (cbor2.dumps({**INPUT, "data": {"s": cbor2.CBORSimpleValue(99)}}), "cbor"),
        (cbor2.dumps({**INPUT, "data": {"s": float("nan")}}), "cbor"),
        (cbor2.dumps({**INPUT, "data": {1: 2}}), "cbor"),
        (cbor2.dumps({**INPUT, "data": {"s": 2**63}}), "cbor"),
    ],
)
def test_bytes_that_are_no_plain_json_are_refused(frame: bytes, encoding: Encoding) -> None:
    assert refused(frame, encoding).startswith("message")


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC),
        datetime.date(2026, 11, 21),
        uuid.UUID(int=1),
        Decimal("1.5"),
        2**70,
        -(2**70),
        cbor2.CBORTag(25, 0),
        cbor2.CBORTag(28, ["shared"]),
        cbor2.CBORTag(29, 0),
        cbor2.CBORTag(35, "(a+)+"),
        cbor2.CBORTag(256, ["aaaa", cbor2.CBORTag(25, 0)]),
        cbor2.CBORTag(258, [1]),
        cbor2.CBORTag(55799, "x"),
        cbor2.CBORTag(70_000, "x"),
    ],
    ids=repr,
)
def test_cbor_tags_are_refused(value: Any) -> None:
    """A tag could become an object, or make a large message of a small frame."""
    told = refused(cbor2.dumps({**INPUT, "data": {"s": value}}), "cbor")
    assert told == "CBOR tags are not used in ARP; send plain maps, arrays and strings"


@pytest.mark.parametrize("depth", [51, 1_000, 100_000])
@pytest.mark.parametrize(
    ("encoding", "head", "tail"),
    [("json", b"[", b"]"), ("msgpack", b"\x91", b""), ("cbor", b"\x81", b"")],
)
def test_deep_nesting_is_refused(encoding: Encoding, head: bytes, tail: bytes, depth: int) -> None:
    assert refused(head * depth + tail * depth, encoding).startswith("message")


@pytest.mark.parametrize(("encoding", "head"), [("json", b"["), ("msgpack", b"\x91")])
def test_nesting_without_end_is_told_in_words(encoding: Encoding, head: bytes) -> None:
    assert refused(head * 100_000, encoding) == "message: nested too deep to be read"


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(frame=st.binary(max_size=60))
def test_any_bytes_end_in_messages_or_a_refusal(encoding: Encoding, frame: bytes) -> None:
    for decoder in (renderer_decoder(encoding), agent_decoder(encoding)):
        with contextlib.suppress(InvalidMessage):
            decoder.read(frame)


# -- places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([Delta(session_id="s", seq=4, payload=DeltaPayload("x"))], (None, 4, False)),
        ([Delta(session_id="s", payload=DeltaPayload("x"))], (None, None, True)),
        ([ErrorMessage(payload=ErrorPayload("x", 1))], (None, None, False)),
        ([ErrorMessage(payload=ErrorPayload("x", 1), turn_id="t1")], (None, None, True)),
        ([InputAck(id="i1", turn_id="t1")], (None, None, False)),
        ([TurnMessage(session_id="s", turn_id="t1", status="queued")], (None, None, False)),
        ([SessionReady(session_id="s", epoch="e", seq=9, resume="replay")], ("e", None, False)),
        (
            [
                SessionReady(session_id="s", epoch="e", seq=9, resume="snapshot"),
                Delta(session_id="s", payload=DeltaPayload("x")),
                Commit(session_id="s", seq=9),
            ],
            ("e", 9, False),
        ),
    ],
)
def test_place_after_a_frame_is_what_it_completes(messages: list[Any], place: Any) -> None:
    assert cursor_after(encode_json(messages)) == place
    if len(messages) == 1:
        assert cursor_after(encode_json(messages[0])) == place


@pytest.mark.parametrize("kind", ["render", "patch"])
def test_render_and_patch_count_with_their_commit(kind: str) -> None:
    assert cursor_after(msgspec.json.encode({"type": kind, "seq": 5})) == (None, None, False)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("count", [1, 2, 15, 16, 23, 24, MAX_BATCH])
def test_frames_that_are_joined_are_read_as_one(encoding: Encoding, count: int) -> None:
    pings = [Ping(id=f"p{number}") for number in range(count)]
    frames = [encode(ping, encoding) for ping in pings]
    joined = join_frames(frames, encoding)
    assert len(joined) <= sum(map(len, frames)) + ARRAY_BYTES
    assert renderer_decoder(encoding).decode(joined) == pings
