"""`MessageBus`: the messages between the router and the coding agent.

Theory of operation. Each side has its own queue (`Side`). A message has the shape of section 5 of
the specification: a `type` and a `payload`. Payloads are Structs here; `payload_of` returns the
Struct for the type, or raises `BadMessage`. A task spec is sent as JSON text, so that the receiver
can answer an invalid one with a `tool_error`.
"""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from arp.tools.registry.models import AgentBusMessage, MessageType
from arp.tools.run.runtime import HealthAlert

MAX_WAITING = 1_000
"""Limit of the unread messages of one side; a sender waits when it is reached."""

CANCELLED = "cancelled"
"""Error of a task that a person has cancelled."""

Side: TypeAlias = Literal["router", "coding"]
"""Receiver of a message."""


class BadMessage(ValueError):
    """Error of a message that does not have the shape of its type; the text names the location."""


class ToolRequest(Struct, frozen=True, omit_defaults=True):
    """Request to carry out a task; sent by the router to the coding agent."""

    task_spec: str
    """JSON text; see `arp.tools.tasks.task_specs`."""
    task_id: str
    callback_url: str = ""
    """URL that receives the outcome; empty if there is none."""


class ToolReady(Struct, frozen=True):
    """Notice that a task is done; sent by the coding agent to the router."""

    tool_id: str
    result: str
    """Result in one sentence for people."""
    url: str
    """URL of the tool; empty if it is not a server."""
    task_id: str


class ToolError(Struct, frozen=True):
    """Notice that a task has failed; sent by the coding agent to the router."""

    tool_id: str
    """Id of the tool; empty if the tool has no name yet."""
    error: str
    task_id: str


Payload: TypeAlias = ToolRequest | ToolReady | ToolError | HealthAlert

PAYLOADS: dict[MessageType, type[Payload]] = {
    MessageType.TOOL_REQUEST: ToolRequest,
    MessageType.TOOL_READY: ToolReady,
    MessageType.TOOL_ERROR: ToolError,
    MessageType.HEALTH_ALERT: HealthAlert,
}
"""Payload class of each type of message."""
_TYPES = {kind: name for name, kind in PAYLOADS.items()}


def message_with(payload: Payload) -> AgentBusMessage:
    """Return a message with a payload."""
    return AgentBusMessage(_TYPES[type(payload)], msgspec.to_builtins(payload))


def payload_of(message: AgentBusMessage) -> Payload:
    """Return the payload of a message.

    Raises:
        BadMessage: The payload does not have the fields of its type.
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
        """Drop all unread messages at the start: the tasks are in the book and are sent again."""
        self._queues = {
            "router": asyncio.Queue(MAX_WAITING),
            "coding": asyncio.Queue(MAX_WAITING),
        }

    async def send(self, side: Side, payload: Payload) -> None:
        """Send a payload to a side; wait while its queue is full.

        Cancel: Safe; the message was either sent or not.
        """
        await self.put(side, message_with(payload))

    async def put(self, side: Side, message: AgentBusMessage) -> None:
        """Send a message without checking its content, for example one from another program."""
        await self._queues[side].put(message)

    async def receive(self, side: Side) -> AgentBusMessage:
        """Return the next message for a side, in the order of sending.

        Cancel: Safe; no message is lost.
        """
        return await self._queues[side].get()
