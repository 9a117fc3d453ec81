"""How many messages a frame has, keys that stand twice, what follows: alike in all encodings."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import ENCODINGS, Encoding, recode, renderer_decoder
from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.frame_parts import MAX_BATCH, check_msgpack_keys

ACK = {"v": 1, "type": "ack", "seq": 7}
TWICE = "message: an object has the same key twice"


def read(frame: bytes, encoding: Encoding) -> list[Any]:
    return list(renderer_decoder(encoding).read(frame))


def refusal(frame: bytes, encoding: Encoding) -> str:
    with pytest.raises(InvalidMessage) as caught:
        read(frame, encoding)
    return caught.value.message


# -- how many --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("count", [0, 1, 15, 16, 23, 24, MAX_BATCH])
def test_batch_up_to_the_limit_is_read(encoding: Encoding, count: int) -> None:
    frame = recode(msgspec.json.encode([ACK] * count), encoding)
    assert len(read(frame, encoding)) == count


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("item", [ACK, {}, None, [], 0, "x"])
@pytest.mark.parametrize("count", [MAX_BATCH + 1, 300, 70_000])
def test_batch_beyond_the_limit_is_refused(encoding: Encoding, item: Any, count: int) -> None:
    frame = recode(msgspec.json.encode([item] * count), encoding)
    assert re.fullmatch(
        r"batch of (\d+|more than 64) messages; at most 64", refusal(frame, encoding)
    )


@pytest.mark.parametrize("space", [b" ", b"\n\t\r ", b" " * 1000])
def test_space_before_an_array_does_not_hide_how_long_it_is(space: bytes) -> None:
    assert len(read(space + b"[" + msgspec.json.encode(ACK) + b"]", "json")) == 1
    long = space + b"[" + b",".join([b"{}"] * 65) + b"]"
    assert refusal(long, "json") == "batch of 65 messages; at most 64"


def test_cbor_array_that_does_not_say_its_length_is_counted_too() -> None:
    item = cbor2.dumps(ACK)
    assert read(b"\x9f\xff", "cbor") == []
    assert len(read(b"\x9f" + item * 64 + b"\xff", "cbor")) == 64
    assert refusal(b"\x9f" + item * 65 + b"\xff", "cbor").startswith("batch of more than 64")
    assert refusal(b"\x9f" + b"\xf6" * 100_000, "cbor").startswith("batch of more than 64")
    assert refusal(b"\x9f" + item, "cbor").startswith("message is not cbor")
    assert refusal(b"\x9f" + item * 64, "cbor").startswith("message")
    assert refusal(b"\x9f" + item + b"\xa1", "cbor").startswith("message is not cbor")


@pytest.mark.parametrize("head", [b"\x9b" + b"\xff" * 8, b"\x9a\x00\x01\x00\x00", b"\x99\x01\x00"])
def test_cbor_array_that_only_says_that_it_is_long_cannot_be_read(head: bytes) -> None:
    assert refusal(head, "cbor").startswith("message")
    assert refusal(b"\x98\x41" + b"\xf6" * 65, "cbor") == "batch of 65 messages; at most 64"


def cpu_s(work: Callable[[], object]) -> float:
    """The least CPU time of several runs."""
    best = 1e9
    for _ in range(3):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


MIB = 1 << 20


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("item", [b"{}", b"null", b"[]", b"0", b'""', b'{"type":"ack","seq":0}'])
def test_array_of_a_million_costs_less_than_a_text_of_that_size(
    encoding: Encoding, item: bytes
) -> None:
    text = {"type": "input", "v": 1, "input_type": "text", "data": {"text": "x" * (MIB - 100)}}
    plain = recode(msgspec.json.encode(text), encoding)
    array = b"[" + b",".join([item] * (MIB // (len(item) + 1) - 1)) + b"]"
    frame = recode(array, encoding)
    decoder = renderer_decoder(encoding)

    def refuse() -> None:
        with pytest.raises(InvalidMessage):
            decoder.read(frame)

    assert cpu_s(refuse) <= 3 * max(cpu_s(lambda: decoder.read(plain)), 0.001)


# -- keys ------------------------------------------------------------------------------------------


def with_pair(pairs: Sequence[tuple[Any, Any]], encoding: Encoding) -> bytes:
    """An input whose `data` holds these pairs, in an encoding that lets any be written."""
    head = {"v": 1, "type": "input", "input_type": "text"}
    if encoding == "json":
        inner = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs)
        return json.dumps(head)[:-1].encode() + b',"data":{' + inner.encode() + b"}}"
    one = msgspec.msgpack.encode if encoding == "msgpack" else cbor2.dumps
    base = 0x80 if encoding == "msgpack" else 0xA0
    inner_bytes = b"".join(one(key) + one(value) for key, value in pairs)
    outer = b"".join(one(key) + one(value) for key, value in head.items())
    return bytes((base + 4,)) + outer + one("data") + bytes((base + len(pairs),)) + inner_bytes


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_key_that_stands_twice_is_refused(encoding: Encoding) -> None:
    assert len(read(with_pair([("text", "a"), ("b", 1)], encoding), encoding)) == 1
    twice = [("text", "a"), ("b", {"c": 1}), ("text", "z")]
    assert refusal(with_pair(twice, encoding), encoding).startswith(TWICE)
    same = [("text", "a"), ("text", "a")]
    assert refusal(with_pair(same, encoding), encoding).startswith(TWICE)


def test_refusal_names_the_key_where_it_can() -> None:
    assert refusal(b'{"a":1,"a":2}', "json") == f"{TWICE}: 'a'"
    assert refusal(b'[{"v":1,"type":"ack","seq":1,"x":{"k":[],"k":0}}]', "json") == f"{TWICE}: 'k'"
    assert refusal(b'{"\\u0061":1, "a":2}', "json") == f"{TWICE}: 'a'"


@pytest.mark.parametrize(
    "text",
    [
        b'{"v": 1, "type": "ack", "seq": 7}',
        b'{"seq":7,"type":"ack","later":{"seq":1,"type":[{"seq":2}]},"v":1}',
        b'{"v":1,"type":"ack","seq":7,"n":1.0,"m":1e3,"t":"\\u0061\\ud83d\\ude00"}',
        b'{"v":1,"type":"ack","seq":7,"n":99999999999999999999999999999999}',
        b'{"v":1,"type":"ack","seq":7,"t":"\\"a\\":1,\\"a\\":2"}',
    ],
)
def test_json_in_any_form_is_read_as_long_as_no_key_stands_twice(text: bytes) -> None:
    (message,) = read(text, "json")
    assert message.seq == 7


def test_messagepack_in_any_form_is_read_as_long_as_no_key_stands_twice() -> None:
    """Every head of the format, in forms that our own encoder does not choose."""
    text = b"text"
    values = [
        b"\xd9" + bytes((len(text),)) + text,
        b"\xda" + struct.pack(">H", len(text)) + text,
        b"\xdb" + struct.pack(">I", len(text)) + text,
        b"\xca" + struct.pack(">f", 1.5),
        b"\xcb" + struct.pack(">d", 1.5),
        b"\xcc\x01",
        b"\xcd\x00\x01",
        b"\xce\x00\x00\x00\x01",
        b"\xcf" + struct.pack(">Q", 1),
        b"\xd0\xff",
        b"\xd1\xff\xff",
        b"\xd2\xff\xff\xff\xff",
        b"\xd3" + struct.pack(">q", -1),
        b"\x05",
        b"\xff",
        b"\xc0",
        b"\xc2",
        b"\xc3",
        b"\xdc\x00\x01\x81\xa1a\x01",
        b"\xdd\x00\x00\x00\x01\xa1a",
        b"\xde\x00\x01\xa1a\x80",
        b"\xdf\x00\x00\x00\x01\xa1a\x91\x81\xa1a\x90",
    ]
    inner = b"".join(b"\xa3" + f"k{n:02}".encode() + value for n, value in enumerate(values))
    head = b"\x84\xa1v\x01\xa4type\xa3ack\xa3seq\x07\xa1x"
    body = b"\xde" + struct.pack(">H", len(values)) + inner
    (message,) = read(head + body, "msgpack")
    assert message.seq == 7
    twice = b"\xde" + struct.pack(">H", len(values) + 1) + inner + b"\xa3k00\x01"
    assert refusal(head + twice, "msgpack") == TWICE


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(width=32) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_keys_are_counted_as_they_are_written(value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    check_msgpack_keys(data, value)
    with pytest.raises(InvalidMessage, match="twice"):
        check_msgpack_keys(b"\x82\xa1a" + data + b"\xa1a" + data, {"a": value})


# -- what follows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("value", [ACK, [ACK], []])
@pytest.mark.parametrize("more", [b"\x00", b"\x01", b"{}", b"]", b"\xff", b"\xf6"])
def test_bytes_behind_the_value_are_refused(encoding: Encoding, value: Any, more: bytes) -> None:
    frame = recode(msgspec.json.encode(value), encoding)
    assert refusal(frame + more, encoding).startswith(f"message is not {encoding}: ")
