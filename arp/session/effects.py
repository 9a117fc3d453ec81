"""Effects: what the driver of a session must do once the facts of a step are durable."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from arp.protocol.json_value import Json
from arp.protocol.messages import CloseReason


class RunTurn(Struct, frozen=True):
    """Run the agent for a turn."""

    turn_id: str


class StopTurn(Struct, frozen=True):
    """Stop the agent of a turn."""

    turn_id: str


class QuestionOutcome(Struct, frozen=True):
    """Outcome of a question.

    `withdrawn`: the question was closed without an answer. `over`: its turn has ended.
    """

    kind: Literal["answered", "declined", "expired", "withdrawn", "over"]
    value: Json = None
    """Value of the answer; for a permission, all data of the input. `None` for the other kinds."""


class ResolveQuestion(Struct, frozen=True):
    """Pass the outcome of a question to the agent that waits for it."""

    action_id: str
    outcome: QuestionOutcome


class SurfaceClosed(Struct, frozen=True):
    """Inform the agent that a surface was closed."""

    surface: str
    reason: CloseReason


class Acknowledge(Struct, frozen=True):
    """Acknowledge an accepted input to its sender."""

    input_id: str
    turn_id: str | None


Effect: TypeAlias = RunTurn | StopTurn | ResolveQuestion | SurfaceClosed | Acknowledge
