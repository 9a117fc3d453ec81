"""What a session asks its driver to do, once the facts of it are durable."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.json_value import Json
from arp.protocol.messages import CloseReason


class RunTurn(Struct, frozen=True):
    """Run the agent for this turn."""

    turn_id: str


class StopTurn(Struct, frozen=True):
    """Stop the agent of this turn."""

    turn_id: str


class ResolveQuestion(Struct, frozen=True):
    """Hand an answer to the agent that waits for it."""

    action_id: str
    value: Json
    is_declined: bool = False
    """There is no answer: somebody does not want to give one."""
    is_withdrawn: bool = False
    """There is no answer: the surface was closed on which it was asked."""


class SurfaceClosed(Struct, frozen=True):
    """Tell the agent that a surface was closed."""

    surface: str
    reason: CloseReason


class Acknowledge(Struct, frozen=True):
    """Tell the sender that its input is accepted."""

    input_id: str
    turn_id: str | None


Effect: TypeAlias = RunTurn | StopTurn | ResolveQuestion | SurfaceClosed | Acknowledge
