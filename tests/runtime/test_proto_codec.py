"""The bytes are those that any other implementation of Protocol Buffers writes and reads."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.protobuf import ProtoError
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, ErrorStatus
from arp.runtime.remote.proto_codec import decode, encode
from arp.runtime.remote.proto_fields import REMOTE_METHODS, fields_of

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the module that protoc makes of the `.proto` file."""
    folder = tmp_path_factory.mktemp("protoc")
    file = "ari/runtime/v1/api.proto"
    assert protoc.main(["protoc", f"-I{SCHEMAS}", f"--python_out={folder}", file]) == 0
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("ari.runtime.v1.api_pb2")
    finally:
        sys.path.remove(str(folder))


EVENT = ari.Event(
    ari.EventType.PERMISSION_REQUEST,
    "s-1",
    2**53 + 1,
    1_700_000_000_000_000_000,
    content="größer 🙂",
    tool_input_raw={},
    permission=ari.PermissionRequest(
        "shell",
        kind=ari.PermissionKind.COMMAND,
        tool_input_raw={"big": 2**60, "list": [1, None, 0.5]},
        deny_continues=False,
        rules=(ari.PermissionRule("r", "ls *"), ari.PermissionRule("q", "", "always")),
    ),
    lifecycle=ari.Lifecycle.STDERR,
    usage=ari.Usage(input_tokens=-1, cost=0.0),
    error=ErrorStatus(AriCode.INTERNAL, "broken", details={"http_status": 500}),
    done=True,
)


def test_an_event_is_read_by_the_official_library(official: Any) -> None:
    read = official.Event.FromString(encode(EVENT))
    assert (read.sequence, read.content) == (2**53 + 1, "größer 🙂")
    assert official.EventType.Name(read.type) == "EVENT_TYPE_PERMISSION_REQUEST"
    assert read.HasField("tool_input_raw")
    assert read.tool_input_raw == "{}"
    assert json.loads(read.permission.tool_input_raw) == {"big": 2**60, "list": [1, None, 0.5]}
    assert read.permission.HasField("deny_continues")
    assert read.permission.deny_continues is False
    assert [(rule.rule_id, rule.scope) for rule in read.permission.rules] == [
        ("r", "session"),
        ("q", "always"),
    ]
    assert read.usage.input_tokens == -1
    assert read.usage.HasField("cost")
    assert official.AriCode.Name(read.error.code) == "ARI_CODE_INTERNAL"
    assert decode(ari.Event, read.SerializeToString()) == EVENT


def test_a_request_of_the_official_library_is_read(official: Any) -> None:
    written = official.ListSessionsRequest(
        filter=official.SessionFilter(
            session_ids=["a", "b"],
            states=[official.SESSION_STATE_IDLE, official.SESSION_STATE_WAITING],
            limit=0,
        )
    )
    assert decode(ari.ListSessionsRequest, written.SerializeToString()) == ari.ListSessionsRequest(
        ari.SessionFilter(("a", "b"), (ari.SessionState.IDLE, ari.SessionState.WAITING), limit=0)
    )
    written = official.CreateSessionRequest(metadata={"k": "v", "": ""}, permission_timeout_s=1.5)
    read = decode(ari.CreateSessionRequest, written.SerializeToString())
    assert (read.metadata, read.permission_timeout_s) == ({"k": "v", "": ""}, 1.5)


def test_what_is_absent_has_the_default_of_its_field() -> None:
    assert decode(ari.VersionRequest, b"") == ari.VersionRequest("v1")
    assert decode(ari.Capability, b"").enabled is True
    assert decode(ari.GetSessionRequest, b"") == ari.GetSessionRequest("")
    assert decode(ari.StatusResponse, b"") == ari.StatusResponse(healthy=False, ready=False)
    assert decode(ari.SessionEventsRequest, b"").after is None
    after_0 = ari.SessionEventsRequest("", after=0)
    assert decode(ari.SessionEventsRequest, encode(after_0)) == after_0


def test_what_is_unknown_is_skipped_and_a_message_in_parts_is_one(official: Any) -> None:
    unknown = b"\xa0\x1f\x05" + b"\xa2\x1f\x02xy" + b"\xa1\x1f" + bytes(8) + b"\xa5\x1f" + bytes(4)
    assert decode(ari.Event, encode(EVENT) + unknown) == EVENT
    parts = b"".join(
        official.SendMessageRequest(message=part).SerializeToString()
        for part in (
            official.RuntimeMessage(content="a", parts=[official.ContentPart(type="text")]),
            official.RuntimeMessage(content="b", parts=[official.ContentPart(type="image")]),
        )
    )
    read = decode(ari.SendMessageRequest, parts)
    assert read.message.content == "b"
    assert [part.type for part in read.message.parts] == ["text", "image"]


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (ari.GetSessionRequest, b"\x0a\x05ab", "ends within a field of 5 bytes"),
        (ari.GetSessionRequest, b"\x0a", "ends within a number"),
        (ari.GetSessionRequest, b"\x02\x00", "field 0: there is no such number"),
        (ari.GetSessionRequest, b"\x0b", "there is no wire type 3"),
        (ari.GetSessionRequest, b"\x0a\x01\xff", "GetSessionRequest.session_id"),
        (ari.GetSessionRequest, b"\xff" * 11, "more than 64 bits"),
        (ari.RespondPermissionRequest, b"\x1a\x00", "decision"),
        (ari.RespondPermissionRequest, b"", "response"),
        (ari.Event, b"\x08\x63", r"Event.type: expected one of 1 \(text\), 2 .*; got 99"),
        (ari.Event, b"", "type"),
        (ari.Event, b"\x08\x01\x9a\x01\x01{", "Event.details"),
    ],
)
def test_bytes_that_are_no_message_are_refused(
    kind: type[msgspec.Struct], data: bytes, message: str
) -> None:
    with pytest.raises(ProtoError, match=message):
        decode(kind, data)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ProtoError, match=r"SessionEventsRequest\.after: .* more than 64 bits"):
        encode(ari.SessionEventsRequest("s", 2**63))
    with pytest.raises(ProtoError, match=r"GetSessionRequest\.session_id"):
        encode(ari.GetSessionRequest("\ud800"))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        read = decode(ari.SendMessageRequest, data)
    except ProtoError:
        return
    assert decode(ari.SendMessageRequest, encode(read)) == read


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def values(struct: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """Return a strategy for all values of a Struct."""
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(max_size=8),
        "bytes": st.binary(max_size=8),
        "bool": st.booleans(),
        "int64": st.integers(-(2**63), 2**63 - 1),
        "double": st.floats(allow_nan=False),
        "json": st.dictionaries(st.text(max_size=3), JSON, max_size=3),
        "map": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
    }
    given_by: dict[str, st.SearchStrategy[Any]] = {}
    for field, info in zip(fields_of(struct), msgspec.structs.fields(struct), strict=True):
        if field.kind == "message":
            one: st.SearchStrategy[Any] = values(field.of)
        elif isinstance(field.of, type) and issubclass(field.of, StrEnum):
            one = st.sampled_from(field.of)
        else:
            one = st.sampled_from(field.of) if field.of else plain[field.kind]
        if field.is_repeated:
            one = st.lists(one, max_size=2).map(tuple)
        given_by[field.name] = one if info.default is not None else st.none() | one
    return st.builds(struct, **given_by)


@pytest.mark.parametrize("kind", [ari.Event, ari.CreateSessionRequest, ari.ListSessionsResponse])
def test_every_value_comes_back(kind: type[msgspec.Struct]) -> None:
    @given(values(kind))
    def check(value: msgspec.Struct) -> None:
        assert decode(kind, encode(value)) == value

    check()


def test_every_message_of_every_method_has_its_fields_in_the_file(official: Any) -> None:
    for method in REMOTE_METHODS:
        for struct in (method.request, method.response):
            message = official.DESCRIPTOR.message_types_by_name[struct.__name__]
            own = {field.name for field in fields_of(struct)}
            assert set(message.fields_by_name) == own
        service = official.DESCRIPTOR.services_by_name[method.service.__name__]
        assert method.name.title().replace("_", "") in service.methods_by_name
