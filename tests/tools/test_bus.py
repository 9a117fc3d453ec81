"""Messages of the Tool Agent: the exact shapes of section 5, in order, and bad ones named."""

from __future__ import annotations

import json

import pytest

from arp.tools.build.bus import (
    BadMessage,
    MessageBus,
    ToolError,
    ToolReady,
    ToolRequest,
    message_of,
    message_with,
    payload_of,
)
from arp.tools.run.runtime import HealthAlert

DOCUMENTED = [
    {
        "type": "tool_request",
        "payload": {
            "task_spec": '{"type":"repair_tool","tool_id":"x","error":"e"}',
            "task_id": "550e8400-e29b-41d4-a716-446655440000",
            "callback_url": "http://caller/callback",
        },
    },
    {
        "type": "tool_ready",
        "payload": {
            "tool_id": "image_compress_api",
            "result": "部署成功,工具已注册",
            "url": "http://localhost:9001/api/compress",
            "task_id": "550e8400-...",
        },
    },
    {
        "type": "tool_error",
        "payload": {
            "tool_id": "failed_tool",
            "error": "依赖安装失败:torch 需要 CUDA 但未检测到 GPU",
            "task_id": "550e8400-...",
        },
    },
    {
        "type": "health_alert",
        "payload": {
            "tool_id": "image_compress_api",
            "container_id": "abc123...",
            "error": "HTTP 503",
            "last_healthy": "2026-03-20T10:00:00Z",
        },
    },
]
KINDS = [ToolRequest, ToolReady, ToolError, HealthAlert]


@pytest.mark.parametrize("number", range(4))
def test_each_message_of_the_document_round_trips_unchanged(number: int) -> None:
    document = DOCUMENTED[number]
    payload = payload_of(message_of(json.dumps(document)))
    assert type(payload) is KINDS[number]
    made = message_with(payload)
    assert {"type": made.type, "payload": made.payload} == document


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "message: "),
        ('{"type": "tool_magic", "payload": {}}', "Invalid enum value 'tool_magic'"),
        ('{"type": "tool_ready", "payload": {"tool_id": 7}}', "tool_ready: payload: "),
        ('{"type": "tool_error", "payload": {"tool_id": "x"}}', "`error`"),
        ("[" * 100_000, "message: "),
    ],
)
def test_message_that_is_none_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(BadMessage, match=told.replace("`", "`")):
        message_of(text)


async def test_each_side_gets_its_own_messages_in_order() -> None:
    bus = MessageBus()
    await bus.send("coding", ToolRequest("{}", "1"))
    await bus.send("router", ToolError("x", "e", "1"))
    await bus.send("coding", ToolRequest("{}", "2"))
    assert (await bus.receive("coding")).payload == {"task_spec": "{}", "task_id": "1"}
    assert (await bus.receive("coding")).payload["task_id"] == "2"
    assert (await bus.receive("router")).payload["error"] == "e"
