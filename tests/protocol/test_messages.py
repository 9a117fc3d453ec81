"""Messages look on the wire as the protocol says, and newer peers are understood."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import (
    CANCEL,
    FINAL_STATUSES,
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    Render,
    RendererCapabilities,
    RendererHello,
    RendererInfo,
    RendererMessage,
    ToolStart,
    ToolStartPayload,
    Viewport,
)
from tests.protocol.sample_messages import FROM_AGENT, FROM_RENDERER


def test_samples_hold_every_type_of_both_directions() -> None:
    assert {type(message) for message in FROM_AGENT} == set(get_args(AgentMessage))
    assert {type(message) for message in FROM_RENDERER} == set(get_args(RendererMessage))


def test_types_are_those_of_the_protocol() -> None:
    """protocol.md 2.1 and 2.2."""
    assert [struct.__struct_config__.tag for struct in get_args(AgentMessage)] == [
        "hello",
        "session",
        "delta",
        "tool_start",
        "tool_progress",
        "tool_end",
        "render",
        "patch",
        "commit",
        "error",
        "ack",
        "input",
        "turn",
        "commands",
        "surface",
        "state",
        "ping",
        "pong",
    ]
    assert [struct.__struct_config__.tag for struct in get_args(RendererMessage)] == [
        "hello",
        "input",
        "ack",
        "ping",
        "pong",
    ]


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (
            Delta(session_id="s", seq=3, turn_id="t1", payload=DeltaPayload("hi")),
            {
                "type": "delta",
                "v": 1,
                "session_id": "s",
                "seq": 3,
                "turn_id": "t1",
                "payload": {"delta": "hi"},
            },
        ),
        (
            ToolStart(session_id="s", payload=ToolStartPayload("query", '{"sql":"…"}', "c")),
            {
                "type": "tool_start",
                "v": 1,
                "session_id": "s",
                "payload": {"tool": "query", "args": '{"sql":"…"}', "call_id": "c"},
            },
        ),
        (
            Render(session_id="s", components=[Component("a", "text", {"content": "x"})]),
            {
                "type": "render",
                "v": 1,
                "session_id": "s",
                "components": [{"id": "a", "type": "text", "props": {"content": "x"}}],
            },
        ),
        (Commit(session_id="s"), {"type": "commit", "v": 1, "session_id": "s", "final": False}),
        (
            ErrorMessage(payload=ErrorPayload("no", 11)),
            {"type": "error", "v": 1, "payload": {"error": "no", "code": 11}},
        ),
        (
            Input(input_type="action", data={"action": CANCEL}),
            {"type": "input", "v": 1, "input_type": "action", "data": {"action": "arp.cancel"}},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_message_looks_as_the_protocol_says(message: Any, wire: dict[str, Any]) -> None:
    """`v: 1` and `type` always; what has its default is not sent."""
    assert msgspec.to_builtins(message) == wire


@pytest.mark.parametrize("message", [*FROM_AGENT, *FROM_RENDERER], ids=lambda m: type(m).__name__)
def test_field_of_a_newer_peer_is_ignored(message: Any) -> None:
    """protocol.md 3: new fields are optional. Spec: S9."""
    newer = {**msgspec.to_builtins(message), "from_the_future": {"x": [1]}}
    assert msgspec.convert(newer, type(message)) == message


@pytest.mark.parametrize(
    ("components", "versions"),
    [
        (["text", "table"], {"text": 1, "table": 1}),
        ({"text": 1, "table": 2}, {"text": 1, "table": 2}),
    ],
)
def test_components_are_named_with_or_without_versions(components: Any, versions: Any) -> None:
    assert RendererCapabilities(components).versions() == versions


def test_renderer_that_names_no_components_shows_text() -> None:
    """Spec: S12."""
    assert RendererHello().capabilities.versions() == {"text": 1}


def test_versions_are_a_copy() -> None:
    capabilities = RendererCapabilities({"text": 1})
    capabilities.versions()["text"] = 9
    assert capabilities.components == {"text": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"session_id": ""},
        {"session_id": "x" * 129},
        {"session_id": "line\nbreak"},
        {"session_id": " leading"},
        {"session_id": "ümlaut"},
        {"locale": "x" * 65},
        {"viewport": {"width": -1, "height": 2}},
        {"viewport": {"width": 1}},
        {"resume": {"epoch": "e", "seq": -1}},
        {"resume": {"epoch": "e", "seq": 2**53 + 1}},
        {"capabilities": {"components": {"text": "1"}}},
    ],
)
def test_hello_with_a_value_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "hello", **wrong}, RendererHello)


def test_final_statuses_are_those_after_which_nothing_comes() -> None:
    assert {"completed", "failed", "cancelled"} == FINAL_STATUSES


def test_hello_says_what_agents_may_know_of_its_renderer() -> None:
    """protocol.md 2.2; the token is not among it."""
    hello = RendererHello(
        locale="de-CH",
        time_zone="Europe/Zurich",
        theme="dark",
        viewport=Viewport(800, 600),
        token="secret",
    )
    assert hello.info == RendererInfo("de-CH", "Europe/Zurich", "dark", Viewport(800, 600))
    assert RendererHello().info == RendererInfo()
