"""A renderer can never make the agent side raise, only fail with a code."""

from __future__ import annotations

from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import ENCODINGS, MAX_BATCH, Encoding, agent_decoder, encode_json, recode
from arp.protocol.connection.agent_connection import (
    MAX_REJECTED,
    AgentConnection,
    ConnectionFailure,
    RejectedMessage,
)
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentHello,
    Input,
    InputAck,
    Ping,
    Pong,
    RendererAck,
    RendererHello,
)
from tests.protocol.hostile_frames import frames
from tests.protocol.sample_messages import FROM_RENDERER

HI = Input(input_type="text", data={"text": "hi"}, id="i1")
LIMITS = Limits(max_message_bytes=200_000)


def connection(encoding: Encoding = "json", limits: Limits = LIMITS) -> AgentConnection:
    return AgentConnection(encoding, limits)


def rejected(value: Any) -> tuple[int, str, str | None]:
    """Code, message and input id of the one thing that comes of a JSON value."""
    (event,) = connection().receive(msgspec.json.encode(value))
    assert isinstance(event, RejectedMessage)
    return int(event.error.code), event.error.message, event.input_id


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_messages_come_out_as_they_went_in(encoding: Encoding) -> None:
    agent = connection(encoding)
    for message in FROM_RENDERER:
        assert agent.receive(recode(encode_json(message), encoding)) == [message]
    assert agent.receive(recode(encode_json(FROM_RENDERER), encoding)) == FROM_RENDERER


def test_text_frame_may_be_a_string() -> None:
    agent = connection()
    assert agent.receive(encode_json(HI).decode()) == [HI]
    (event,) = agent.receive("half a pair: \ud800")
    assert isinstance(event, RejectedMessage)


def test_empty_batch_is_nothing() -> None:
    assert connection().receive(b"[]") == []


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ({**msgspec.to_builtins(HI), "v": 2}, 7, "version 2 is not spoken here; send v: 1"),
        ({"type": "explode"}, 11, "'explode' is not one of hello, input, ack"),
        ({**msgspec.to_builtins(HI), "data": {"n": 2**63}}, 11, "integer beyond 64 bits"),
        ({**msgspec.to_builtins(HI), "data": 1}, 11, "message.data: expected object"),
        ([1] * 65, 11, "batch of 65 messages; at most 64"),
    ],
)
def test_message_that_cannot_be_taken_gets_a_code(value: Any, code: int, message: str) -> None:
    """protocol.md 5: 11 INVALID_MESSAGE, 7 VERSION_MISMATCH. Spec: S9."""
    got = rejected(value)
    assert got[0] == code
    assert message in got[1]


def test_message_that_is_too_big_gets_a_code() -> None:
    """protocol.md 4: max_message_bytes; 4 RESOURCE_LIMIT."""
    agent = connection(limits=Limits(max_message_bytes=100))
    frame = encode_json(HI)
    assert agent.receive(frame + b" " * (100 - len(frame))) == [HI]
    (event,) = agent.receive(frame + b" " * (101 - len(frame)))
    assert isinstance(event, RejectedMessage)
    assert (int(event.error.code), event.error.detail) == (4, "max_message_bytes")
    assert event.error.message == "message of 101 bytes; at most 100"


def test_refusal_names_the_input_that_it_is_about() -> None:
    assert rejected({**msgspec.to_builtins(HI), "data": {"n": 2**63}})[2] == "i1"
    assert rejected({**msgspec.to_builtins(HI), "v": 9})[2] == "i1"
    assert rejected({**msgspec.to_builtins(HI), "input_type": "x"})[2] == "i1"


def test_bad_message_of_a_batch_takes_no_other_with_it() -> None:
    """Spec: W1."""
    batch = [HI, {"type": "input"}, RendererAck(seq=3)]
    first, second, third = connection().receive(msgspec.json.encode(batch))
    assert (first, third) == (HI, RendererAck(seq=3))
    assert isinstance(second, RejectedMessage)


def test_batch_of_the_largest_size_is_taken() -> None:
    assert len(connection().receive(encode_json([HI] * MAX_BATCH))) == MAX_BATCH


def test_peer_that_sends_nothing_but_nonsense_is_not_listened_to() -> None:
    """protocol.md 5: 1008 not allowed. Spec: E3."""
    agent = connection()
    for _ in range(MAX_REJECTED):
        (event,) = agent.receive(b"{")
        assert isinstance(event, RejectedMessage)
    assert agent.receive(b"{") == [ConnectionFailure(1008, "more than 1000 messages were refused")]
    assert agent.receive(encode_json(HI)) == [HI]


def test_renderer_may_say_hello_again() -> None:
    """Spec: S13."""
    agent = connection()
    again = RendererHello(session_id="other")
    assert agent.receive(encode_json(RendererHello())) == [RendererHello()]
    assert agent.receive(encode_json(again)) == [again]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_any_bytes_end_in_events_or_a_coded_rejection(
    encoding: Encoding, data: st.DataObject
) -> None:
    """style.md 3: the peer can never make us raise; and the next good message is taken."""
    agent = connection(encoding)
    for frame in data.draw(st.lists(frames(FROM_RENDERER, encoding), min_size=1, max_size=3)):
        for event in agent.receive(frame):
            if isinstance(event, RejectedMessage):
                assert int(event.error.code) in (4, 7, 11)
                assert event.error.message
            elif isinstance(event, Input):
                cbor2.dumps(event.data)
                assert msgspec.json.decode(msgspec.json.encode(event.data)) == event.data
    assert agent.receive(recode(encode_json(HI), encoding)) == [HI]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("capabilities", "message"),
    [
        ({"components": ["text"] * 513}, "components: expected at most 512 names"),
        (
            {"components": {f"c{n}": 1 for n in range(513)}},
            "components: expected at most 512 names",
        ),
        ({"features": ["batch"] * 513}, "features: expected at most 512 names"),
        ({"components": ["c" * 129]}, "components[0]: expected at most 128 characters"),
    ],
)
def test_renderer_names_a_bounded_number_of_components_and_features(
    encoding: Encoding, capabilities: dict[str, object], message: str
) -> None:
    hello = {"v": 1, "type": "hello", "capabilities": capabilities}
    (event,) = connection(encoding).receive(recode(encode_json(hello), encoding))
    assert isinstance(event, RejectedMessage)
    assert event.error.message == f"message.capabilities.{message}"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_input_has_a_bounded_number_of_values(encoding: Encoding) -> None:
    """`data`, `text`, the array and its items: 20,000 in all may come."""
    for count, is_taken in ((19_997, True), (19_998, False)):
        items: list[object] = [[0] if n % 2 else {"a": 0} for n in range(count // 2)]
        items += [0] * (count % 2)
        said = Input(input_type="text", data={"text": "hi", "items": items}, id="i1")
        (event,) = connection(encoding).receive(recode(encode_json(said), encoding))
        if is_taken:
            assert isinstance(event, Input)
        else:
            assert isinstance(event, RejectedMessage)
            assert (event.error.code, event.input_id) == (4, "i1")
            assert event.error.message == "message.data: more than 20000 values; send a file"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_one_renderer_alone_is_sent_is_in_its_encoding(encoding: Encoding) -> None:
    agent, decoder = connection(encoding), agent_decoder(encoding)
    (hello,) = decoder.decode(agent.hello(takes_input=False))
    assert isinstance(hello, AgentHello)
    assert hello.capabilities.limits["max_message_bytes"] == 200_000
    assert "input" not in hello.capabilities.features
    assert decoder.decode(agent.pong(Ping(id="p"))) == [Pong(id="p")]
    assert decoder.decode(agent.encode(InputAck(id="i"))) == [InputAck(id="i")]
