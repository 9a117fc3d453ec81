"""The wire format of Protocol Buffers: any bytes are fields, or are refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    ProtoError,
    encode_field,
    encode_tag,
    encode_varint,
    read_varint,
    split_fields,
)


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (150, b"\x96\x01"),
        (2**64 - 1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_number_has_seven_bits_in_each_byte_the_lowest_first(number: int, data: bytes) -> None:
    """protobuf.dev, "Encoding", "Base 128 Varints"."""
    assert encode_varint(number) == data
    assert read_varint(b"x" + data + b"x", 1) == (number, 1 + len(data))


def test_fields_of_every_wire_type_are_read_in_order() -> None:
    data = (
        encode_tag(1, VARINT)
        + encode_varint(300)
        + encode_tag(2, FIXED64)
        + b"12345678"
        + encode_field(encode_tag(500, BYTES), b"text")
        + encode_tag(4, FIXED32)
        + b"1234"
    )
    assert list(split_fields(data)) == [
        (1, VARINT, 300),
        (2, FIXED64, b"12345678"),
        (500, BYTES, b"text"),
        (4, FIXED32, b"1234"),
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a", "ends within a number"),
        (b"\x0a\x80", "ends within a number"),
        (b"\x0a\x05abcd", "ends within a field of 5 bytes"),
        (b"\x21\x00", "ends within a field of 8 bytes"),
        (b"\x08" + b"\xff" * 9 + b"\x02", "more than 64 bits"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "more than 64 bits"),
        (b"\x0b", "no wire type 3"),
        (b"\x02\x00", "field 0: there is no such number"),
        (encode_tag(2**29, BYTES) + b"\x00", "field 536870912: there is no such number"),
    ],
)
def test_bytes_that_are_no_fields_are_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(ProtoError, match=why):
        list(split_fields(data))


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.binary(max_size=200)), max_size=5))
def test_written_fields_are_read_again(fields: list[tuple[int, bytes]]) -> None:
    data = b"".join(encode_field(encode_tag(number, BYTES), value) for number, value in fields)
    assert list(split_fields(data)) == [(number, BYTES, value) for number, value in fields]


@given(st.integers(0, 2**64 - 1))
def test_written_number_is_read_again(number: int) -> None:
    data = encode_varint(number)
    assert read_varint(data, 0) == (number, len(data))
