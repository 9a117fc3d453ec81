"""Messages of the Tool Agent: the exact shapes of section 5 of the interface document."""

from __future__ import annotations

import json

import msgspec
import pytest

from arp.protocol.json_value import JsonObject
from arp.tools.build.messages import PAYLOADS, message_with
from arp.tools.registry.models import AgentBusMessage, MessageType

DOCUMENTED: list[JsonObject] = [
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


@pytest.mark.parametrize("document", DOCUMENTED, ids=lambda one: one["type"])
def test_each_message_of_the_document_round_trips_unchanged(document: JsonObject) -> None:
    message = msgspec.json.decode(json.dumps(document), type=AgentBusMessage)
    payload = msgspec.convert(message.payload, PAYLOADS[message.type])
    assert msgspec.json.decode(msgspec.json.encode(message_with(payload))) == document
    assert list(msgspec.to_builtins(payload)) == list(document["payload"])


def test_each_type_of_message_has_a_payload() -> None:
    assert list(PAYLOADS) == list(MessageType) == [one["type"] for one in DOCUMENTED]
