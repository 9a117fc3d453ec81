"""The chat-completions API of OpenAI and many local servers, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from arp.protocol.json_value import Json, JsonObject
from errors import ModelFailed
from model_messages import Event, Message, ToolSpec, ToolUse
from model_settings import ModelSettings


def headers(settings: ModelSettings) -> dict[str, str]:
    """Return the headers that carry the key, if there is one."""
    return {"authorization": f"Bearer {settings.key}"} if settings.key else {}


def body(
    settings: ModelSettings, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> JsonObject:
    """Return the request for the next answer."""
    told: list[JsonObject] = [{"role": "system", "content": system}]
    for message in messages:
        told += _message(message)
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        for tool in tools
    ]
    return {
        "model": settings.model,
        "messages": told,
        "tools": [{"type": "function", "function": function} for function in functions],
        "stream": True,
    }


def _message(message: Message) -> list[JsonObject]:
    if message.outputs:
        return [
            {"role": "tool", "tool_call_id": output.id, "content": output.text}
            for output in message.outputs
        ]
    told: JsonObject = {"role": message.role, "content": message.text}
    if message.uses:
        told["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": use.arguments or "{}"},
            }
            for use in message.uses
        ]
    return [told]


@dataclass
class _Call:
    """A tool use that is still being written."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class OpenAIStream:
    """Reads one answer; tool uses are complete when the answer is."""

    def __init__(self) -> None:
        self.done = False
        self._calls: dict[int, _Call] = {}

    def feed(self, data: Json) -> list[Event]:
        """Return the content of one chunk.

        Raises:
            ModelFailed: The chunk is an error.
        """
        if not isinstance(data, dict):
            return []
        if data.get("error"):
            error = data["error"]
            text = error.get("message") if isinstance(error, dict) else error
            raise ModelFailed(f"The model's server says: {str(text)[:300]}")
        choices = data.get("choices") or [{}]
        delta = choices[0].get("delta") or {}
        events: list[Event] = [delta["content"]] if delta.get("content") else []
        for position, part in enumerate(delta.get("tool_calls") or []):
            self._extend(part, position)
        if choices[0].get("finish_reason"):
            self.done = True
            events += self._uses()
        return events

    def _extend(self, part: JsonObject, position: int) -> None:
        index = part.get("index")
        call = self._calls.setdefault(index if isinstance(index, int) else position, _Call())
        function = part.get("function") or {}
        call.id = part.get("id") or call.id
        call.name = function.get("name") or call.name
        call.arguments.append(function.get("arguments") or "")

    def _uses(self) -> list[Event]:
        calls, self._calls = self._calls, {}
        return [
            ToolUse(call.id or f"call_{index}", call.name, "".join(call.arguments))
            for index, call in sorted(calls.items())
        ]
