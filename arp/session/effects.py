"""Effects: what the driver of a session must do once the facts of a step are durable."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.json_value import Json
from arp.protocol.messages import CloseReason


class RunTurn(Struct, frozen=True):
    """Run the agent for a turn."""

    turn_id: str


class StopTurn(Struct, frozen=True):
    """Stop the agent of a turn."""

    turn_id: str


class ResolveQuestion(Struct, frozen=True):
    """Pass an answer to the agent that waits for it."""

    action_id: str
    value: Json
    is_declined: bool = False
    """Whether the user declined to answer; there is no value."""
    is_withdrawn: bool = False
    """Whether the surface of the question was closed; there is no value."""


class SurfaceClosed(Struct, frozen=True):
    """Inform the agent that a surface was closed."""

    surface: str
    reason: CloseReason


class Acknowledge(Struct, frozen=True):
    """Acknowledge an accepted input to its sender."""

    input_id: str
    turn_id: str | None


Effect: TypeAlias = RunTurn | StopTurn | ResolveQuestion | SurfaceClosed | Acknowledge
