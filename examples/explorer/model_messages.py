"""A conversation with a model that uses tools, in no API's own form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from arp.protocol.json_value import Json, JsonObject


@dataclass(frozen=True)
class ToolUse:
    """The model wants a tool to run."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it; may be anything."""


@dataclass(frozen=True)
class ToolOutput:
    """What came of a tool."""

    id: str
    """Of the `ToolUse`."""
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Message:
    """One side's part of the conversation; outputs of tools are the user's side."""

    role: Literal["user", "assistant"]
    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()


@dataclass(frozen=True)
class ToolSpec:
    """What the model is told about a tool."""

    name: str
    description: str
    properties: JsonObject
    """JSON Schemas of its arguments, by name."""
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of all arguments."""
        return {"type": "object", "properties": self.properties, "required": list(self.required)}


Event: TypeAlias = str | ToolUse
"""What a stream gives: a piece of text, or a tool use that is complete."""


class Stream(Protocol):
    """Reads one answer of a model, event by event. Without input or output of its own."""

    done: bool
    """The answer is complete; a stream that ends before was cut off."""

    def feed(self, data: Json) -> list[Event]:
        """Returns what the decoded `data:` of one server-sent event gives.

        Raises:
            ModelFailed: The server reports an error inside the stream.
        """
        ...


def joined(messages: list[Message]) -> list[Message]:
    """Returns the messages so that sides alternate, the user begins, and no text is empty."""
    out: list[Message] = []
    for message in messages:
        if not (message.text or message.uses or message.outputs):
            continue
        if not out and message.role == "assistant":
            continue
        last = out[-1] if out else None
        if last is not None and last.role == message.role and not (last.uses or message.outputs):
            out[-1] = Message(message.role, f"{last.text}\n\n{message.text}", message.uses)
        else:
            out.append(message)
    return out
