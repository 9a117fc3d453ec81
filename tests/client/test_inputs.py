from __future__ import annotations

import re

import pytest

from arp.client.events import Event
from arp.client.inputs import Inputs, check_input, most_bytes
from arp.protocol.codec import agent_decoder
from arp.protocol.errors import InvalidMessage, RateLimited, ResourceLimit, UnknownObject
from arp.protocol.json_value import Json
from arp.protocol.messages import AgentCapabilities, AgentHello, Input, InputAck
from tests.client import agent_messages as say
from tests.client.agent_messages import Message, encoded

TEXT = Input(input_type="text", data={"text": "hi"})


def event(plain: Message) -> Event:
    (made,) = agent_decoder("json").decode(encoded(plain))
    return made


def opened(inputs: Inputs, message: Input = TEXT) -> str:
    return inputs.open(message, 1 << 20)


def test_ids_are_random_of_128_bits_and_fit_the_wire() -> None:
    inputs = Inputs()
    ids = {opened(inputs) for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", input_id) for input_id in ids)


def test_input_is_open_until_its_ack() -> None:
    inputs = Inputs()
    input_id = opened(inputs)
    assert inputs.newest == input_id
    assert inputs.outcome(input_id) is None
    inputs.apply(event(say.ack(input_id, "t9")))
    assert inputs.outcome(input_id) == InputAck(id=input_id, session_id="s1", turn_id="t9")
    assert inputs.turn_of(input_id) == "t9"


def test_refused_input_raises_the_coded_error() -> None:
    inputs = Inputs()
    input_id = opened(inputs)
    inputs.apply(event(say.error("too fast", 16, input_id=input_id)))
    with pytest.raises(RateLimited, match="too fast"):
        inputs.outcome(input_id)


def test_first_answer_stands() -> None:
    inputs = Inputs()
    input_id = opened(inputs)
    inputs.apply(event(say.ack(input_id)))
    inputs.apply(event(say.error("late", 16, input_id=input_id)))
    assert inputs.outcome(input_id) == InputAck(id=input_id, session_id="s1", turn_id="t1")


def test_turn_is_known_from_the_echo_if_the_ack_does_not_say() -> None:
    inputs = Inputs()
    input_id = opened(inputs)
    inputs.apply(event(say.ack(input_id, None)))
    assert inputs.turn_of(input_id) is None
    inputs.apply(event(say.echo("hi", 1, "t7", input_id)))
    assert inputs.turn_of(input_id) == "t7"


def test_answers_to_others_are_not_noted() -> None:
    inputs = Inputs()
    inputs.apply(event(say.ack("theirs")))
    inputs.apply(event(say.echo("hi", 1, "t7", "theirs")))
    inputs.apply(event(say.echo("hi", 1, "t7")))
    inputs.apply(event(say.error("general", 11)))
    assert inputs.turn_of("theirs") is None
    with pytest.raises(UnknownObject, match="'theirs'"):
        inputs.outcome("theirs")


def test_only_the_newest_1000_answers_are_kept() -> None:
    inputs = Inputs()
    ids = []
    for _ in range(1001):
        ids.append(opened(inputs))
        inputs.apply(event(say.ack(ids[-1])))
    assert inputs.outcome(ids[1]) is not None
    with pytest.raises(UnknownObject):
        inputs.outcome(ids[0])
    assert inputs.turn_of(ids[0]) is None


def test_more_than_1000_open_inputs_are_refused_until_one_is_answered() -> None:
    inputs = Inputs()
    first = opened(inputs)
    for _ in range(999):
        opened(inputs)
    newest = inputs.newest
    with pytest.raises(ResourceLimit, match="1000 inputs wait"):
        opened(inputs)
    assert inputs.newest == newest
    inputs.apply(event(say.ack(first)))
    opened(inputs)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"text": float("nan")}, "data.text: nan is not a JSON number"),
        ({"text": {1, 2}}, "data.text: set is not a JSON value"),
        ({"text": b"x"}, "data.text: bytes is not a JSON value"),
        ({"text": 2**64}, "data.text: integer beyond 64 bits"),
        ({"text": "\ud800"}, "surrogate"),
    ],
)
def test_data_that_would_never_arrive_is_refused_here(data: Json, said: str) -> None:
    inputs = Inputs()
    with pytest.raises(InvalidMessage, match=re.escape(said)):
        opened(inputs, Input(input_type="text", data=data))
    assert inputs.newest is None


def test_message_that_the_server_could_not_read_is_refused_here() -> None:
    with pytest.raises(InvalidMessage, match="source_component"):
        opened(Inputs(), Input(input_type="text", data={}, source_component="x" * 257))
    with pytest.raises(InvalidMessage, match="input_type"):
        opened(Inputs(), Input(input_type="shout", data={}))  # type: ignore[arg-type]  # on purpose


def test_message_that_is_too_long_is_refused_here() -> None:
    fits = Input(input_type="text", data={"text": "x" * 600})
    check_input(fits, 1024)
    with pytest.raises(ResourceLimit, match="the server accepts 768"):
        check_input(Input(input_type="text", data={"text": "x" * 800}), 1024)


@pytest.mark.parametrize(
    ("told", "expected"),
    [({}, 1 << 20), ({"max_message_bytes": 5}, 5), ({"max_message_bytes": "5"}, 1 << 20)],
)
def test_limit_of_the_agent_side_counts_if_it_is_a_number(told: Json, expected: int) -> None:
    agent = AgentHello(capabilities=AgentCapabilities([], limits=told))
    assert most_bytes(agent, "max_message_bytes") == expected


def test_protocols_own_limit_counts_before_the_agent_side_has_told_its() -> None:
    assert most_bytes(None, "max_upload_bytes") == 25 << 20
