"""The envelope of gRPC: what any other implementation of Protocol Buffers writes and reads."""

from __future__ import annotations

import importlib
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.envelope import (
    CONNECT,
    DIALECTS,
    SERVICE,
    UPLOAD,
    Dialect,
    Envelope,
    FileStart,
    PartKind,
    seal,
    seal_answer,
    seal_file_start,
    seal_part,
    unseal,
    unseal_answer,
    unseal_file_start,
    unseal_part,
)

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"

dialects = st.sampled_from(DIALECTS)


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the module that protoc makes of `schemas/arp.proto`."""
    folder = tmp_path_factory.mktemp("protoc")
    arguments = ["protoc", f"-I{SCHEMAS}", f"--python_out={folder}", "arp.proto"]
    assert protoc.main(arguments) == 0
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("arp_pb2")
    finally:
        sys.path.remove(str(folder))


def test_the_service_and_its_methods_are_those_of_the_schema(official: Any) -> None:
    (service,) = official.DESCRIPTOR.services_by_name.values()
    assert service.full_name == SERVICE
    found = {
        f"/{service.full_name}/{method.name}": (method.client_streaming, method.server_streaming)
        for method in service.methods
    }
    assert found == {CONNECT: (True, True), UPLOAD: (True, False)}


def test_the_messages_of_an_upload_are_those_of_protocol_buffers(official: Any) -> None:
    start = FileStart("täble.csv", "text/csv", "report")
    theirs = official.FileStart(name="täble.csv", mime="text/csv", field="report")
    assert unseal_file_start(seal_file_start(start)) == start
    assert official.FileStart.FromString(seal_file_start(start)) == theirs
    assert unseal_file_start(official.FileStart(name="a").SerializeToString()) == ("a", "", "")
    parts: dict[PartKind, Any] = {
        "input": official.UploadPart(input=b"{}"),
        "file": official.UploadPart(file=theirs),
        "data": official.UploadPart(data=b"\xff" * 300),
    }
    for kind, part in parts.items():
        kind_, data = unseal_part(part.SerializeToString())
        assert kind_ == kind
        assert seal_part(kind, data) == part.SerializeToString()
    answer = official.UploadAnswer(messages=b"[]")
    assert seal_answer(b"[]") == answer.SerializeToString()
    assert unseal_answer(answer.SerializeToString()) == b"[]"


def test_an_upload_without_content_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="an empty part; set input, file or data"):
        unseal_part(b"\x30\x01")
    with pytest.raises(InvalidMessage, match="the answer is empty"):
        unseal_answer(b"")
    with pytest.raises(InvalidMessage, match="field 1 is no UTF-8"):
        unseal_file_start(b"\x0a\x01\xff")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_part_or_are_refused(data: bytes) -> None:
    for read in (unseal_part, unseal_file_start, unseal_answer):
        with suppress(InvalidMessage):
            read(data)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_bytes_are_those_of_protocol_buffers(
    official: Any, dialect: Dialect, size: int
) -> None:
    frame = b"\xff" * size
    theirs = official.ArpMessage(**{dialect: frame})
    assert seal(frame, dialect) == theirs.SerializeToString()
    assert official.ArpMessage.FromString(seal(frame, dialect)) == theirs
    assert unseal(theirs.SerializeToString()) == Envelope(dialect, frame)


@given(dialects, st.binary(max_size=500))
def test_what_is_sealed_comes_out_the_same(dialect: Dialect, frame: bytes) -> None:
    assert unseal(seal(frame, dialect)) == (dialect, frame)


def test_fields_that_are_not_known_are_skipped_and_the_last_frame_counts() -> None:
    """As Protocol Buffers demand of a reader that is older than the writer."""
    varint, fixed64, fixed32 = b"\x18\x96\x01", b"\x21" + bytes(8), b"\x2d" + bytes(4)
    text = b"\x32\x03abc"
    data = varint + seal(b"old") + fixed64 + text + seal(b"new", "object") + fixed32
    assert unseal(data) == ("object", b"new")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no frame in it"),
        (b"\x18\x01", "no frame in it"),
        (b"\x0a", "ends within a number"),
        (b"\x0a\x05abcd", "7 bytes announced, 6 there"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "bytes announced, 11 there"),
        (b"\x0a" + b"\xff" * 10, "more than 64 bits"),
        (b"\x0a" + b"\x80" * 11 + b"\x01", "more than 64 bits"),
        (b"\x08\x01", "expected bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "no such number"),
        (b"\x21\x00", "9 bytes announced, 2 there"),
    ],
)
def test_what_is_no_envelope_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        unseal(data)


@given(
    st.one_of(
        st.binary(max_size=60), st.builds(lambda f, n: seal(f)[:n], st.binary(), st.integers(0, 40))
    )
)
def test_any_bytes_are_an_envelope_or_refused(data: bytes) -> None:
    try:
        found = unseal(data)
    except InvalidMessage:
        return
    assert found.dialect in DIALECTS
    assert len(found.frame) <= len(data)


def test_a_length_bomb_is_refused_without_allocation() -> None:
    bomb = b"\x0a\xff\xff\xff\xff\x7f" + b"x" * 10
    tracemalloc.start()
    try:
        for _ in range(100):
            with pytest.raises(InvalidMessage):
                unseal(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000
