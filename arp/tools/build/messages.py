"""The messages between the router and the coding agent, as Structs.

Both are objects of this process, so a message is the argument of a method: `CodingAgent.begin`
receives a `ToolRequest`, `CodingAgent.record_alert` a `HealthAlert`, and `Router.on_outcome` a
`ToolReady` or `ToolError`. Only outcomes leave the process: `CallbackSender` posts them as JSON, in
the shape of `message_with`.

Source: internal_api.md 5.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from arp.tools.registry.models import AgentBusMessage, MessageType
from arp.tools.run.runtime import HealthAlert

CANCELLED: Final = "cancelled"
"""Error of a task that a person has cancelled."""


class ToolRequest(Struct, frozen=True, omit_defaults=True):
    """Request to carry out a task, from the router to the coding agent."""

    task_spec: str
    """JSON text; see `arp.tools.tasks.task_specs`."""
    task_id: str
    callback_url: str = ""
    """URL that receives the outcome; empty if there is none."""


class ToolReady(Struct, frozen=True):
    """Notice that a task is done, from the coding agent to the router."""

    tool_id: str
    result: str
    """Result in one sentence for people."""
    url: str
    """URL of the tool; empty if it is not a server."""
    task_id: str


class ToolError(Struct, frozen=True):
    """Notice that a task has failed, from the coding agent to the router."""

    tool_id: str
    """Id of the tool; empty if the tool has no name yet."""
    error: str
    task_id: str


Outcome: TypeAlias = ToolReady | ToolError
"""Outcome of a task."""
Payload: TypeAlias = ToolRequest | ToolReady | ToolError | HealthAlert

PAYLOADS: Final[dict[MessageType, type[Payload]]] = {
    MessageType.TOOL_REQUEST: ToolRequest,
    MessageType.TOOL_READY: ToolReady,
    MessageType.TOOL_ERROR: ToolError,
    MessageType.HEALTH_ALERT: HealthAlert,
}
"""Payload class of each type of message."""
_TYPES: Final = {kind: name for name, kind in PAYLOADS.items()}


def message_with(payload: Payload) -> AgentBusMessage:
    """Return the message with a payload, as it is sent to another process."""
    return AgentBusMessage(_TYPES[type(payload)], msgspec.to_builtins(payload))
