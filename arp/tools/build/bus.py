"""`MessageBus`: the messages between the router and the coding agent.

Theory of operation. Each side has a queue of its own (`Side`). A message has the shape of section 5
of the specification: a `type` and a `payload`. The payloads are Structs here; `payload_of`
returns the one that belongs to the type, or raises `BadMessage`. A task spec travels as JSON text,
so a sender of bad text is answered with a `tool_error` by whoever reads it.
"""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from arp.tools.registry.models import AgentBusMessage, MessageType
from arp.tools.run.runtime import HealthAlert

MAX_WAITING = 1_000
"""Messages that one side may have unread; a sender waits then."""

CANCELLED = "cancelled"
"""The error of a task that somebody has stopped."""

Side: TypeAlias = Literal["router", "coding"]
"""Who receives."""


class BadMessage(ValueError):
    """A message does not have the shape of its type; the text says where."""


class ToolRequest(Struct, frozen=True, omit_defaults=True):
    """Carry out a task. Router to coding agent."""

    task_spec: str
    """JSON text; see `arp.tools.tasks.task_specs`."""
    task_id: str
    callback_url: str = ""
    """Who gets the outcome over HTTP; empty: nobody."""


class ToolReady(Struct, frozen=True):
    """A task is done. Coding agent to router."""

    tool_id: str
    result: str
    """One sentence for people."""
    url: str
    """Where the tool answers; empty if it is no server."""
    task_id: str


class ToolError(Struct, frozen=True):
    """A task could not be done. Coding agent to router."""

    tool_id: str
    """Empty if no tool was named yet."""
    error: str
    task_id: str


Payload: TypeAlias = ToolRequest | ToolReady | ToolError | HealthAlert

PAYLOADS: dict[MessageType, type[Payload]] = {
    MessageType.TOOL_REQUEST: ToolRequest,
    MessageType.TOOL_READY: ToolReady,
    MessageType.TOOL_ERROR: ToolError,
    MessageType.HEALTH_ALERT: HealthAlert,
}
"""What the payload of each type of message is."""
_TYPES = {kind: name for name, kind in PAYLOADS.items()}


def message_with(payload: Payload) -> AgentBusMessage:
    """Return the message that carries a payload."""
    return AgentBusMessage(_TYPES[type(payload)], msgspec.to_builtins(payload))


def payload_of(message: AgentBusMessage) -> Payload:
    """Return the payload of a message.

    Raises:
        BadMessage: It does not have the fields of its type.
    """
    try:
        read: Payload = msgspec.convert(message.payload, PAYLOADS[message.type])
    except msgspec.ValidationError as error:
        raise BadMessage(f"{message.type}: payload: {error}") from None
    return read


def message_of(text: str | bytes) -> AgentBusMessage:
    """Return the message in a JSON text.

    Raises:
        BadMessage: It is not JSON, or not a message.
    """
    try:
        message = msgspec.json.decode(text, type=AgentBusMessage)
        payload_of(message)
    except BadMessage:
        raise
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadMessage(f"message: {error}") from None
    return message


class MessageBus:
    """Two bounded queues, one for each side."""

    def __init__(self) -> None:
        self._queues: dict[Side, asyncio.Queue[AgentBusMessage]] = {}
        self.clear()

    def clear(self) -> None:
        """Drop what waits, when both sides begin: the tasks are in the book, and are sent again."""
        self._queues = {
            "router": asyncio.Queue(MAX_WAITING),
            "coding": asyncio.Queue(MAX_WAITING),
        }

    async def send(self, side: Side, payload: Payload) -> None:
        """Send a payload to a side; wait while its queue is full.

        Cancel: Safe; the message was sent or not.
        """
        await self.put(side, message_with(payload))

    async def put(self, side: Side, message: AgentBusMessage) -> None:
        """Send a message whose content is not checked, such as one from another program."""
        await self._queues[side].put(message)

    async def receive(self, side: Side) -> AgentBusMessage:
        """Return the next message for a side, in the order in which they were sent.

        Cancel: Safe; no message is lost.
        """
        return await self._queues[side].get()
