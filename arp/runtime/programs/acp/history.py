"""`AcpHistory`: the messages of a session, from the updates that a load repeats."""

from __future__ import annotations

import base64

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.programs.acp import messages as acp


class AcpHistory:
    """Collects updates in order, and joins them into messages."""

    def __init__(self) -> None:
        self._messages: list[ari.RuntimeMessage] = []
        self._calls: list[acp.AcpToolCall] = []
        """Tool calls of the last message."""
        self._chunk_of = ""
        """Message id of the newest text; another value after a tool call."""

    def add(self, update: JsonObject) -> None:
        """Apply one update; an update that is not part of a conversation is ignored."""
        match update.get("sessionUpdate"):
            case "user_message_chunk":
                self._user_content(update)
            case "agent_message_chunk":
                self._agent_text(update)
            case "agent_thought_chunk":
                thought = acp.text_of(update.get("content"))
                last = self._last("assistant")
                self._change(thinking=last.thinking + thought)
            case "tool_call" | "tool_call_update" as kind:
                self._tool(update, is_first=kind == "tool_call")

    def messages(self) -> tuple[ari.RuntimeMessage, ...]:
        """Return the messages, oldest first."""
        self._end_calls()
        return tuple(self._messages)

    def _last(self, role: str) -> ari.RuntimeMessage:
        """Return the last message of a role; begin a new one if the last one has another role."""
        if not self._messages or self._messages[-1].role != role:
            self._end_calls()
            new = ari.RuntimeMessage("user" if role == "user" else "assistant")
            self._messages.append(new)
            self._chunk_of = ""
        return self._messages[-1]

    def _change(self, **fields: object) -> None:
        self._messages[-1] = msgspec.structs.replace(self._messages[-1], **fields)

    def _user_content(self, update: JsonObject) -> None:
        last = self._last("user")
        part = part_of(update.get("content"))
        if part is None:
            self._change(content=self._joined(last.content, update))
        else:
            self._change(parts=(*last.parts, part))

    def _agent_text(self, update: JsonObject) -> None:
        last = self._last("assistant")
        self._change(content=self._joined(last.content, update))

    def _joined(self, before: str, update: JsonObject) -> str:
        """Return a text with a chunk appended.

        A chunk of another message begins a new paragraph.
        """
        message_id = str(update.get("messageId") or "")
        between = "\n\n" if before and self._chunk_of != message_id else ""
        self._chunk_of = message_id
        return before + between + acp.text_of(update.get("content"))

    def _tool(self, update: JsonObject, *, is_first: bool) -> None:
        self._last("assistant")
        call_id = str(update.get("toolCallId"))
        call = next((one for one in self._calls if one.id == call_id), None)
        if call is None:
            call = acp.AcpToolCall(call_id)
            self._calls.append(call)
        call.update(update, is_first=is_first)
        self._chunk_of = "(a tool)"

    def _end_calls(self) -> None:
        if self._calls:
            past = tuple(
                ari.PastToolCall(one.id, one.shown_name, one.input, one.result, one.has_failed)
                for one in self._calls
            )
            self._change(tool_calls=(*self._messages[-1].tool_calls, *past))
            self._calls.clear()


def part_of(block: Json) -> ari.ContentPart | None:
    """Return a block of a user's message as a part; `None` for text."""
    if not isinstance(block, dict) or block.get("type") == "text":
        return None
    if block.get("type") == "resource_link":
        name = str(block.get("name") or "")
        return ari.ContentPart("file", uri=str(block.get("uri") or ""), name=name)
    mime_type = str(block.get("mimeType") or "")
    if block.get("type") == "image":
        data = base64.b64decode(str(block.get("data") or ""))
        return ari.ContentPart("image", mime_type=mime_type, data=data)
    return ari.ContentPart("text", text=acp.text_of(block))
