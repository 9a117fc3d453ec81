"""The languages that CLIs speak with a model: how a request is read, how an answer is written.

Anthropic Messages (Claude Code), OpenAI Responses (Codex) and OpenAI Chat Completions (OpenCode and
most others). Each is a class with the same methods, in one table, `DIALECTS`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tests.runtime.model_script import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Answer,
    Attachment,
    Call,
    Item,
    Text,
    ToolCall,
    ToolResult,
)

Object = dict[str, Any]


@dataclass(frozen=True)
class Pause:
    """Wait so long before the next event."""

    seconds: float


class Dialect(Protocol):
    """One language of models."""

    name: str

    def items(self, body: Object) -> list[Item]:
        """Return the conversation of a request, oldest first."""

    def tools(self, body: Object) -> list[str]:
        """Return the names of the tools that a request offers."""

    def events(self, answer: Answer, body: Object) -> Iterator[Object | Pause]:
        """Return the events of the answer's stream."""

    def frame(self, event: Object) -> str:
        """Return one event as server-sent event."""

    def end(self) -> str:
        """Return what ends the stream, behind the last event."""

    def whole(self, answer: Answer, body: Object) -> Object:
        """Return the answer to a request that wants no stream."""

    def error(self, status: int, message: str) -> Object:
        """Return the body of an error."""


class AnthropicMessages:
    """`POST /v1/messages`."""

    name = "messages"

    def items(self, body: Object) -> list[Item]:
        items = [Text("system", text) for text in _texts(body.get("system", []))]
        return items + [
            item
            for message in body["messages"]
            for block in _blocks(message["content"])
            if (item := self._item(message["role"], block)) is not None
        ]

    def _item(self, role: Any, block: Object) -> Item | None:
        kind = block["type"]
        if kind == "text":
            return Text(role, block["text"])
        if kind == "tool_use":
            return ToolCall(block["id"], block["name"], json.dumps(block["input"]))
        if kind == "tool_result":
            text = "\n".join(_texts(block.get("content", [])))
            return ToolResult(block["tool_use_id"], text, bool(block.get("is_error")))
        if kind in ("image", "document"):
            source = block["source"]
            return Attachment(source.get("media_type", "url"), _bytes_in(source.get("data", "")))
        return None

    def tools(self, body: Object) -> list[str]:
        return [tool["name"] for tool in body.get("tools") or []]

    def whole(self, answer: Answer, body: Object) -> Object:
        content: list[Object] = []
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": _id("toolu"), "name": call.name, "input": call.arguments}
            for call in answer.calls
        ]
        return {
            **self._message(body),
            "content": content,
            "stop_reason": self._reason(answer),
            "usage": self._usage(),
        }

    def _reason(self, answer: Answer) -> str:
        if answer.is_cut:
            return "max_tokens"
        return "tool_use" if answer.calls else "end_turn"

    def _message(self, body: Object) -> Object:
        return {
            "id": _id("msg"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _usage(self) -> Object:
        return {
            "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
            "cache_read_input_tokens": CACHED_TOKENS,
            "cache_creation_input_tokens": 0,
            "output_tokens": OUTPUT_TOKENS,
        }

    def events(self, answer: Answer, body: Object) -> Iterator[Object | Pause]:
        usage = {**self._usage(), "output_tokens": 1}
        yield {"type": "message_start", "message": {**self._message(body), "usage": usage}}
        for index, (block, deltas) in enumerate(self._content(answer)):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            for delta in deltas:
                if answer.step_s:
                    yield Pause(answer.step_s)
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = {"stop_reason": self._reason(answer), "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": self._usage()}
        yield {"type": "message_stop"}

    def _content(self, answer: Answer) -> Iterator[tuple[Object, Iterable[Object]]]:
        if answer.thinking:
            deltas: list[Object] = [
                {"type": "thinking_delta", "thinking": word} for word in _words(answer.thinking)
            ]
            deltas.append({"type": "signature_delta", "signature": "c2lnbmF0dXJl"})
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
        if answer.text:
            words = ({"type": "text_delta", "text": word} for word in _words(answer.text))
            yield {"type": "text", "text": ""}, words
        for call in answer.calls:
            block = {"type": "tool_use", "id": _id("toolu"), "name": call.name, "input": {}}
            parts = _halves(json.dumps(call.arguments))
            yield block, [{"type": "input_json_delta", "partial_json": part} for part in parts]

    def frame(self, event: Object) -> str:
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    def end(self) -> str:
        return ""

    def error(self, status: int, message: str) -> Object:
        kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
        kinds |= {429: "rate_limit_error", 529: "overloaded_error"}
        usual = "invalid_request_error" if status < 500 else "api_error"
        return {"type": "error", "error": {"type": kinds.get(status, usual), "message": message}}


class OpenAIResponses:
    """`POST /v1/responses`."""

    name = "responses"

    def items(self, body: Object) -> list[Item]:
        items: list[Item] = []
        if body.get("instructions"):
            items.append(Text("system", body["instructions"]))
        if isinstance(body["input"], str):
            return [*items, Text("user", body["input"])]
        for item in body["input"]:
            items += self._items(item)
        return items

    def _items(self, item: Object) -> list[Item]:
        kind = item.get("type", "message")
        if kind == "message":
            role = {"developer": "system"}.get(item["role"], item["role"])
            return [self._content(role, part) for part in _blocks(item["content"])]
        if kind == "function_call":
            return [ToolCall(item["call_id"], item["name"], item["arguments"])]
        if kind == "custom_tool_call":
            return [ToolCall(item["call_id"], item["name"], item["input"])]
        if kind in ("function_call_output", "custom_tool_call_output"):
            return [ToolResult(item["call_id"], "\n".join(_texts(item["output"])))]
        return []

    def _content(self, role: Any, part: Object) -> Item:
        if part["type"] == "input_image":
            return _data_url(part["image_url"])
        if part["type"] == "input_file":
            return _data_url(part.get("file_data", ""))
        return Text(role, part["text"])

    def tools(self, body: Object) -> list[str]:
        return [tool.get("name", tool["type"]) for tool in body.get("tools") or []]

    def whole(self, answer: Answer, body: Object) -> Object:
        output = [item for item, _ in self._output(answer)]
        return self._ended(answer, body, output)

    def _ended(self, answer: Answer, body: Object, output: list[Object]) -> Object:
        if not answer.is_cut:
            return self._response(body, "completed", output)
        why = {"incomplete_details": {"reason": "max_output_tokens"}}
        return {**self._response(body, "incomplete", output), **why}

    def _response(self, body: Object, status: str, output: list[Object]) -> Object:
        return {
            "id": _id("resp"),
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": body["model"],
            "output": output,
            "usage": {
                "input_tokens": INPUT_TOKENS,
                "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
                "output_tokens": OUTPUT_TOKENS,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
            },
        }

    def events(self, answer: Answer, body: Object) -> Iterator[Object | Pause]:
        yield {"type": "response.created", "response": self._response(body, "in_progress", [])}
        output = []
        for index, (item, deltas) in enumerate(self._output(answer)):
            place = {"item_id": item["id"], "output_index": index}
            opened = {**item, "status": "in_progress"}
            if item["type"] == "message":
                opened["content"] = []
            if item["type"] == "reasoning":
                opened["summary"] = []
            yield {"type": "response.output_item.added", "output_index": index, "item": opened}
            for delta in deltas:
                if answer.step_s and "delta" in delta:
                    yield Pause(answer.step_s)
                yield {**delta, **place}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
            output.append(item)
        kind = "response.incomplete" if answer.is_cut else "response.completed"
        yield {"type": kind, "response": self._ended(answer, body, output)}

    def _output(self, answer: Answer) -> Iterator[tuple[Object, list[Object]]]:
        if answer.thinking:
            kind = "response.reasoning_summary_part.added"
            part = {"type": "summary_text", "text": ""}
            deltas: list[Object] = [{"type": kind, "summary_index": 0, "part": part}]
            kind = "response.reasoning_summary_text.delta"
            deltas += [
                {"type": kind, "summary_index": 0, "delta": word}
                for word in _words(answer.thinking)
            ]
            summary = [{"type": "summary_text", "text": answer.thinking}]
            yield {"type": "reasoning", "id": _id("rs"), "summary": summary}, deltas
        if answer.text:
            kind, part = "response.content_part.added", {"type": "output_text", "text": ""}
            deltas = [{"type": kind, "content_index": 0, "part": part}]
            kind = "response.output_text.delta"
            deltas += [
                {"type": kind, "content_index": 0, "delta": word} for word in _words(answer.text)
            ]
            content = [{"type": "output_text", "text": answer.text, "annotations": []}]
            message = {"type": "message", "id": _id("msg"), "role": "assistant", "content": content}
            yield message, deltas
        for call in answer.calls:
            yield self._call(call), []

    def _call(self, call: Call) -> Object:
        named = {"id": _id("fc"), "call_id": _id("call"), "name": call.name, "status": "completed"}
        if call.text is not None:
            return {"type": "custom_tool_call", **named, "input": call.text}
        if call.namespace is not None:
            named["namespace"] = call.namespace
        return {"type": "function_call", **named, "arguments": json.dumps(call.arguments)}

    def frame(self, event: Object) -> str:
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    def end(self) -> str:
        return ""

    def error(self, status: int, message: str) -> Object:
        return _openai_error(status, message)


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    name = "chat"

    def items(self, body: Object) -> list[Item]:
        items: list[Item] = []
        for message in body["messages"]:
            items += self._items(message)
        return items

    def _items(self, message: Object) -> list[Item]:
        role = {"developer": "system"}.get(message["role"], message["role"])
        content = message.get("content") or []
        if role == "tool":
            return [ToolResult(message["tool_call_id"], "\n".join(_texts(content)))]
        items = [self._content(role, part) for part in _blocks(content)]
        for call in message.get("tool_calls") or []:
            function = call["function"]
            items.append(ToolCall(call["id"], function["name"], function["arguments"]))
        return items

    def _content(self, role: Any, part: Object) -> Item:
        if part["type"] == "image_url":
            return _data_url(part["image_url"]["url"])
        if part["type"] == "file":
            return _data_url(part["file"].get("file_data", ""))
        if part["type"] == "input_audio":
            audio = part["input_audio"]
            return Attachment(f"audio/{audio['format']}", _bytes_in(audio["data"]))
        return Text(role, part["text"])

    def tools(self, body: Object) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools") or []]

    def whole(self, answer: Answer, body: Object) -> Object:
        message: Object = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [self._call(call) for call in answer.calls]
        return {
            "id": _id("chatcmpl"),
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self._reason(answer)}],
            "usage": self._usage(),
        }

    def _reason(self, answer: Answer) -> str:
        if answer.is_cut:
            return "length"
        return "tool_calls" if answer.calls else "stop"

    def _usage(self) -> Object:
        return {
            "prompt_tokens": INPUT_TOKENS,
            "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }

    def _call(self, call: Call) -> Object:
        arguments = {"input": call.text} if call.text is not None else call.arguments
        function = {"name": call.name, "arguments": json.dumps(arguments)}
        return {"id": _id("call"), "type": "function", "function": function}

    def events(self, answer: Answer, body: Object) -> Iterator[Object | Pause]:
        answer_id = _id("chatcmpl")

        def chunk(choices: list[Object], usage: Object | None = None) -> Object:
            return {
                "id": answer_id,
                "object": "chat.completion.chunk",
                "created": 0,
                "model": body["model"],
                "choices": choices,
                "usage": usage,
            }

        def delta(delta: Object, reason: str | None = None) -> Object:
            return chunk([{"index": 0, "delta": delta, "finish_reason": reason}])

        yield delta({"role": "assistant", "content": ""})
        for word in _words(answer.thinking):
            yield delta({"reasoning_content": word})
        for word in _words(answer.text):
            if answer.step_s:
                yield Pause(answer.step_s)
            yield delta({"content": word})
        for index, call in enumerate(answer.calls):
            yield delta({"tool_calls": [{"index": index, **self._call(call)}]})
        yield delta({}, self._reason(answer))
        yield chunk([], self._usage())

    def frame(self, event: Object) -> str:
        return f"data: {json.dumps(event)}\n\n"

    def end(self) -> str:
        return "data: [DONE]\n\n"

    def error(self, status: int, message: str) -> Object:
        return _openai_error(status, message)


DIALECTS: dict[str, Dialect] = {
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAIResponses(),
    "/v1/chat/completions": OpenAIChat(),
}
"""The dialect of each path that a model answers on."""


def _openai_error(status: int, message: str) -> Object:
    # OpenCode takes "server_error" for a reason to try again for ever, whatever the status.
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _blocks(content: str | list[Object]) -> list[Object]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _texts(content: str | list[Object]) -> list[str]:
    return [block["text"] for block in _blocks(content) if "text" in block]


def _words(text: str) -> list[str]:
    """Return the text in pieces of one word with the blanks before it; joined they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def _halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _data_url(url: str) -> Attachment:
    found = re.match(r"data:([^;,]+)[^,]*,(.*)", url, re.DOTALL)
    return Attachment(found[1], _bytes_in(found[2])) if found else Attachment("url", 0)


def _bytes_in(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"
