"""JSON-RPC frames, as its specification has them (sections 4 to 7)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from arp.control.jsonrpc import (
    Frame,
    InvalidRequest,
    RpcError,
    RpcRequest,
    batch_frame,
    error_frame,
    event_frame,
    notification,
    parse,
    result_frame,
)

DEEP = '{"a":' * 60 + "1" + "}" * 60


def entry(frame: str) -> RpcRequest | InvalidRequest:
    (only,) = parse(frame).entries
    return only


def code_of(frame: str) -> int:
    refused = entry(frame)
    assert isinstance(refused, InvalidRequest)
    return refused.error.code


def test_request_has_method_params_and_id() -> None:
    asked = entry('{"jsonrpc": "2.0", "method": "a/b", "params": {"x": 1}, "id": "q"}')
    assert asked == RpcRequest("a/b", {"x": 1}, "q")


def test_params_may_be_left_out() -> None:
    assert entry('{"jsonrpc": "2.0", "method": "m", "id": 3}') == RpcRequest("m", {}, 3)


def test_request_without_id_is_a_notification_and_one_with_null_is_not() -> None:
    assert entry('{"jsonrpc": "2.0", "method": "m"}') == RpcRequest("m", {}, UNSET)
    assert entry('{"jsonrpc": "2.0", "method": "m", "id": null}') == RpcRequest("m", {}, None)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", -32700),
        ("", -32700),
        ("[" * 100_000, -32700),
        ('"\\ud800', -32700),
        ("[]", -32600),
        ("1", -32600),
        ('{"jsonrpc": "1.0", "method": "m", "id": 1}', -32600),
        ('{"method": "m", "id": 1}', -32600),
        ('{"jsonrpc": "2.0", "id": 1}', -32600),
        ('{"jsonrpc": "2.0", "method": 1, "id": 1}', -32600),
        ('{"jsonrpc": "2.0", "method": "m", "id": {}}', -32600),
        ('{"jsonrpc": "2.0", "method": "m", "id": true}', -32600),
        ('{"jsonrpc": "2.0", "method": "m", "params": [1], "id": 1}', -32602),
        (f'{{"jsonrpc": "2.0", "method": "m", "params": {DEEP}, "id": 1}}', -32602),
    ],
)
def test_what_is_no_request_is_refused_with_its_number(frame: str, code: int) -> None:
    assert code_of(frame) == code


def test_refusal_names_the_request_if_that_can_be_told() -> None:
    refused = entry('{"jsonrpc": "2.0", "method": 1, "id": "q"}')
    assert isinstance(refused, InvalidRequest)
    assert refused.id == "q"


def test_batch_is_read_entry_by_entry() -> None:
    frame = parse('[{"jsonrpc": "2.0", "method": "a", "id": 1}, 2]')
    assert frame.is_batch
    first, second = frame.entries
    assert first == RpcRequest("a", {}, 1)
    assert isinstance(second, InvalidRequest)


def test_batch_beyond_100_is_refused_as_a_whole() -> None:
    one = {"jsonrpc": "2.0", "method": "a", "id": 1}
    assert len(parse(json.dumps([one] * 100)).entries) == 100
    assert code_of(json.dumps([one] * 101)) == -32600


def test_parameters_have_a_bounded_number_of_values() -> None:
    """The object, the array and its items: 20,000 in all may come."""
    asked = {"jsonrpc": "2.0", "method": "m", "id": "q"}
    assert isinstance(entry(json.dumps(asked | {"params": {"a": [0] * 19_998}})), RpcRequest)
    refused = entry(json.dumps(asked | {"params": {"a": [0] * 19_999}}))
    data = {"code": 4, "name": "RESOURCE_LIMIT", "detail": "params"}
    message = "params: more than 20000 values; send less in one frame"
    assert refused == InvalidRequest(RpcError(-32004, message, data), "q")


def test_requests_of_a_batch_have_as_many_values_together_as_one() -> None:
    one = {"jsonrpc": "2.0", "method": "m", "params": {"a": [0] * 9_998}}
    first, second, third = parse(json.dumps([one | {"id": number} for number in range(3)])).entries
    assert isinstance(first, RpcRequest)
    assert isinstance(second, RpcRequest)
    assert isinstance(third, InvalidRequest)
    assert (third.id, third.error.code) == (2, -32004)


def test_depth_and_numbers_of_parameters_are_refused_with_the_code_of_the_protocol() -> None:
    refused = entry(f'{{"jsonrpc": "2.0", "method": "m", "params": {DEEP}, "id": 1}}')
    assert isinstance(refused, InvalidRequest)
    assert refused.error.data["name"] == "INVALID_MESSAGE"


@given(st.binary(max_size=200))
def test_any_bytes_end_in_requests_or_refusals(data: bytes) -> None:
    frame = parse(data)
    assert isinstance(frame, Frame)
    assert frame.entries


def test_answers_say_whose_they_are() -> None:
    assert json.loads(result_frame(7, {"a": 1})) == {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}}
    refused: Any = json.loads(error_frame(None, RpcError(-32600, "no")))
    assert refused == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}


def test_result_may_hold_json_that_is_written_already() -> None:
    frame = result_frame(1, {"events": [msgspec.Raw(b'{"a":1}')]})
    assert frame == b'{"jsonrpc":"2.0","id":1,"result":{"events":[{"a":1}]}}'


def test_batch_of_answers_is_one_array() -> None:
    assert batch_frame([b"1", b"2"]) == b"[1,2]"


def test_event_holds_the_fact_byte_for_byte() -> None:
    assert event_frame("sub1", b'{"sequence": 3}') == (
        b'{"jsonrpc":"2.0","method":"agentSession/event",'
        b'"params":{"subscriptionId":"sub1","event":{"sequence": 3}}}'
    )


def test_notification_has_no_id() -> None:
    assert notification("a/b", {}) == b'{"jsonrpc":"2.0","method":"a/b","params":{}}'
