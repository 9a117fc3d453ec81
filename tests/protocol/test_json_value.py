"""What is let in is plain JSON, which survives every encoding unchanged."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.errors import InvalidMessage, ResourceLimit
from arp.protocol.json_value import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_VALUES,
    check_json_text,
    check_plain_json,
    count_values,
)

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER - 1, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@given(PLAIN)
def test_plain_json_passes_and_survives_every_encoding(value: Any) -> None:
    check_plain_json(value)
    assert msgspec.json.decode(msgspec.json.encode(value)) == value
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value)) == value
    assert cbor2.loads(cbor2.dumps(value)) == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "$: nan is not a JSON number"),
        ({"a": float("-inf")}, "$.a: -inf is not a JSON number"),
        ([2**63], "$[0]: integer beyond 64 bits"),
        ({"a": [0, -(2**63) - 1]}, "$.a[1]: integer beyond 64 bits"),
        ({1: 2}, "$: object key 1 is not a string"),
        ({"x": {None: 2}}, "$.x: object key None is not a string"),
        ([b"bytes"], "$[0]: bytes is not a JSON value"),
        ({"when": date(2026, 11, 21)}, "$.when: date is not a JSON value"),
        ((1, 2), "$: tuple is not a JSON value"),
    ],
)
def test_what_is_no_plain_json_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(InvalidMessage) as refused:
        check_plain_json(value)
    assert refused.value.message == message


def test_largest_and_smallest_integer_of_64_bits_pass() -> None:
    check_plain_json([2**63 - 1, -(2**63)])


def test_nesting_ends_at_fifty_levels() -> None:
    check_plain_json(nested(MAX_DEPTH))
    with pytest.raises(InvalidMessage, match=r"nested deeper than 50 levels$"):
        check_plain_json(nested(MAX_DEPTH + 1))


def test_a_hostile_key_does_not_fill_the_message() -> None:
    with pytest.raises(InvalidMessage) as refused:
        check_plain_json({"k" * 10_000: object()}, "message.data")
    assert refused.value.message == f"message.data.{'k' * 40}: object is not a JSON value"


@given(PLAIN)
def test_values_of_a_text_are_counted_as_those_of_what_it_holds(value: Any) -> None:
    """Whatever brackets, commas and quotes stand in its strings."""
    text = json.dumps([value, *[{}] * MAX_DEPTH], indent=1).encode()
    count = count_values(json.loads(text))
    assert check_json_text(text, "body", count) == count
    assert check_json_text(json.dumps(value).encode(), "body") >= count_values(value)
    with pytest.raises(ResourceLimit):
        check_json_text(text, "body", count - 1)


def test_nesting_of_a_text_is_bounded_as_that_of_what_it_holds() -> None:
    check_json_text(json.dumps(nested(MAX_DEPTH)).encode(), "body")
    with pytest.raises(InvalidMessage, match="body: nested deeper than 50 levels"):
        check_json_text(json.dumps(nested(MAX_DEPTH + 1)).encode(), "body")


@pytest.mark.parametrize(
    "bomb",
    [b"[" + b"[]," * 2_000_000, b'[""' + b',""' * 2_000_000, b'{"a":1' + b',"a":1' * 2_000_000],
    ids=["arrays", "texts", "fields"],
)
def test_bomb_is_refused_without_reading_all_of_it(bomb: bytes) -> None:
    with pytest.raises(ResourceLimit, match=f"body: more than {MAX_VALUES} values; send a file"):
        check_json_text(bomb, "body", instead="send a file")


@pytest.mark.parametrize(
    "text", [b"]" + b"[" * 100, b'"' + b"[" * 100, b'{"a":' * 40_000, b"[" * 20]
)
def test_what_is_no_json_costs_no_more(text: bytes) -> None:
    with suppress(InvalidMessage):
        check_json_text(text, "body")
