"""A conversation with a model that uses tools, independent of any API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from arp.protocol.json_value import Json, JsonObject


@dataclass(frozen=True)
class ToolUse:
    """A request of the model to run a tool."""

    id: str
    name: str
    arguments: str
    """JSON from the model; it may be anything."""


@dataclass(frozen=True)
class ToolOutput:
    """The result of a tool."""

    id: str
    """The id of the `ToolUse`."""
    text: str
    failed: bool = False


@dataclass(frozen=True)
class Message:
    """A message of one side; outputs of tools are on the user's side."""

    role: Literal["user", "assistant"]
    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()


@dataclass(frozen=True)
class ToolSpec:
    """The description of a tool for the model."""

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
"""An element of a stream: a piece of text, or a complete tool use."""


class Stream(Protocol):
    """Reads one answer of a model, event by event, without I/O."""

    done: bool
    """Whether the answer is complete; if not, the stream was cut off."""

    def feed(self, data: Json) -> list[Event]:
        """Return the content of the decoded `data:` of one server-sent event.

        Raises:
            ModelFailed: The server reports an error inside the stream.
        """
        ...


def joined(messages: list[Message]) -> list[Message]:
    """Return the messages so that sides alternate, the user begins, and no text is empty."""
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
