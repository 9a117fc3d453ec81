"""The messages API of Anthropic, without I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence

from arp.protocol.json_value import Json, JsonObject
from errors import ModelFailed
from model_messages import Event, Message, ToolSpec, ToolUse
from model_settings import ModelSettings

MAX_TOKENS = 4096
"""Most tokens of one answer; the API requires a number."""


def headers(settings: ModelSettings) -> dict[str, str]:
    """Return the headers that carry the key and the version of the API."""
    return {"x-api-key": settings.key, "anthropic-version": "2023-06-01"}


def body(
    settings: ModelSettings, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> JsonObject:
    """Return the request for the next answer."""
    return {
        "model": settings.model,
        "max_tokens": MAX_TOKENS,
        "system": system,
        "messages": [{"role": message.role, "content": _content(message)} for message in messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
            for tool in tools
        ],
        "stream": True,
    }


def _content(message: Message) -> list[JsonObject]:
    told: list[JsonObject] = [
        {
            "type": "tool_result",
            "tool_use_id": output.id,
            "content": output.text,
            "is_error": output.failed,
        }
        for output in message.outputs
    ]
    if message.text:
        told.append({"type": "text", "text": message.text})
    told += [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": _input(use.arguments)}
        for use in message.uses
    ]
    return told


def _input(arguments: str) -> JsonObject:
    """Return arguments for the API: an object, also if the model wrote none."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class AnthropicStream:
    """Reads one answer; a tool use is complete when its block stops."""

    def __init__(self) -> None:
        self.done = False
        self._blocks: dict[int, tuple[str, str, list[str]]] = {}

    def feed(self, data: Json) -> list[Event]:
        """Return the content of one event; unknown types have none.

        Raises:
            ModelFailed: The event is an error.
        """
        match data:
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                return self._start(index, block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                return self._delta(index, delta)
            case {"type": "content_block_stop", "index": int(index)} if index in self._blocks:
                name, use_id, parts = self._blocks.pop(index)
                return [ToolUse(use_id, name, "".join(parts))]
            case {"type": "message_stop"}:
                self.done = True
            case {"type": "error", "error": {"message": str(text)}}:
                raise ModelFailed(f"The model's server says: {text[:300]}")
        return []

    def _start(self, index: int, block: JsonObject) -> list[Event]:
        if block.get("type") == "tool_use":
            self._blocks[index] = str(block.get("name")), str(block.get("id")), []
            return []
        text = block.get("text")
        return [text] if isinstance(text, str) and text else []

    def _delta(self, index: int, delta: JsonObject) -> list[Event]:
        match delta:
            case {"type": "text_delta", "text": str(text)} if text:
                return [text]
            case {"type": "input_json_delta", "partial_json": str(part)} if index in self._blocks:
                self._blocks[index][2].append(part)
        return []
