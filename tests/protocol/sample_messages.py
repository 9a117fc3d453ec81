"""At least one message of every type, with every field set and with none that has a default."""

from __future__ import annotations

from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Command,
    CommandChoice,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    InputAck,
    InputEcho,
    Patch,
    Ping,
    Pong,
    Render,
    RendererAck,
    RendererCapabilities,
    RendererHello,
    RendererMessage,
    Resume,
    SessionReady,
    StateMessage,
    SurfaceInfo,
    SurfaceMessage,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
    Viewport,
)
from arp.protocol.patch import Append, Insert, Remove, Reorder, Replace, Update

TEXT = Component("a", "text", {"content": "Grüße", "format": "plain"})
DIAL = Component("x", "x-acme-dial", {"deep": [{"n": 1.5, "none": None, "no": False}]}, 2, TEXT)

FROM_AGENT: list[AgentMessage] = [
    AgentHello(capabilities=AgentCapabilities(["text"])),
    AgentHello(
        capabilities=AgentCapabilities(
            ["text", "table"], {"text": 1}, ["batch"], {"max_surfaces": 10}, ["json"]
        )
    ),
    SessionReady(session_id="s", epoch="e", seq=0, resume="new"),
    SessionReady(session_id="s", epoch="e", seq=2**53, resume="snapshot", state={"k": [None]}),
    Delta(session_id="s", payload=DeltaPayload("")),
    Delta(
        session_id="s",
        seq=3,
        turn_id="t1",
        surface="side",
        payload=DeltaPayload("x", "t1/1", "thinking"),
    ),
    ToolStart(session_id="s", payload=ToolStartPayload("query", "{}", "t1.1")),
    ToolEnd(session_id="s", payload=ToolEndPayload("query", ok=True)),
    ToolProgress(session_id="s", payload=ToolProgressPayload("c", "reading", 1, 3)),
    ToolProgress(session_id="s", payload=ToolProgressPayload("c")),
    ToolEnd(session_id="s", payload=ToolEndPayload("query", ok=False, call_id="c", error="no")),
    ToolEnd(
        session_id="s",
        payload=ToolEndPayload("query", True, "c", None, "[1…", "/_api/blobs/scw/0/query.txt", 12),
    ),
    Render(session_id="s", components=[TEXT, DIAL], tool_name="query", replace=True),
    Render(session_id="s", components=[]),
    Patch(
        session_id="s",
        ops=[
            Update("a", "props.content", None),
            Append("a", "props.content", "x", 3),
            Insert(DIAL),
            Insert(TEXT, None),
            Insert(TEXT, "x", "g"),
            Remove("a"),
            Replace("a", TEXT),
            Reorder("a", None),
            Reorder("a", "x"),
        ],
    ),
    Commit(session_id="s"),
    Commit(session_id="s", seq=9, turn_id="t1", final=True, usage={"tokens": 5}),
    ErrorMessage(payload=ErrorPayload("wrong", 11)),
    ErrorMessage(
        payload=ErrorPayload("wrong", 17, "props.x", "i1", retryable=True),
        session_id="s",
        seq=4,
        turn_id="t1",
    ),
    InputAck(id="i1"),
    InputAck(id="i1", session_id="s", turn_id="t1", serial=7),
    InputEcho(session_id="s", input_type="text", data={"text": "hi"}),
    InputEcho(
        session_id="s",
        input_type="gesture",
        data={"gesture": "pinch"},
        source_component="a",
        id="i",
    ),
    TurnMessage(session_id="s", turn_id="t1", status="running"),
    TurnMessage(session_id="s", turn_id="t2", status="queued", position=1),
    SurfaceMessage(session_id="s", seq=4, surface="side"),
    SurfaceMessage(
        session_id="s",
        turn_id="t1",
        surface="t1-popup-1",
        payload=SurfaceInfo(role="popup", parent="main", component="rows", row=2, serial=3),
    ),
    SurfaceMessage(
        session_id="s",
        seq=9,
        surface="t1-overlay-1",
        payload=SurfaceInfo(role="overlay", title="Sent", anchor="top-right", timeout_ms=5000),
        closed="timeout",
    ),
    StateMessage(session_id="s", seq=5, state={"step": 2}),
    CommandsMessage(session_id="s", commands=()),
    CommandsMessage(
        session_id="s",
        seq=5,
        commands=(
            Command("compact"),
            Command(
                "model",
                "Switches the model",
                "name",
                (CommandChoice("small"), CommandChoice("large", "Large", "Slow", True)),
            ),
        ),
    ),
    Ping(id="p1"),
    Pong(id="p1"),
]

FROM_RENDERER: list[RendererMessage] = [
    RendererHello(),
    RendererHello(
        capabilities=RendererCapabilities(
            {"text": 1, "table": 2}, ["thinking"], RendererLimits(2.5, 4096, 10)
        ),
        session_id="s",
        resume=Resume("e", 7),
        viewport=Viewport(80, 24),
        locale="de-DE",
        time_zone="Europe/Berlin",
        theme="dark",
        token="secret",
    ),
    RendererHello(capabilities=RendererCapabilities(["text", "table"])),
    Input(input_type="text", data={"text": "hi"}),
    Input(
        input_type="form_submit",
        data={"fields": {"n": [1, {"x": None}]}},
        session_id="s",
        source_component="f",
        surface="side",
        id="i1",
    ),
    RendererAck(seq=0),
    RendererAck(seq=5, presented={"a": "native", "b": "fallback", "c": "failed"}),
    Ping(id="p1"),
    Pong(id="p1"),
]
