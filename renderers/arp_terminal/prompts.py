"""What passes between a dialogue and whoever shows it."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.json_value import Json, JsonObject


class Prompt(Struct, frozen=True):
    """What stands before the line that is typed."""

    label: str
    """One harmless line; empty for the prompt at which anything may be said."""
    hint: str = ""
    secret: bool = False
    """What is typed is not shown."""
    multiline: bool = False
    offered: bool = False
    """Nobody waits for the answer."""


class ActionReply(Struct, frozen=True):
    """An action of the component."""

    action: str


class SelectionReply(Struct, frozen=True):
    """Values of the options that were taken."""

    selected: list[Json]


class FormReply(Struct, frozen=True):
    """The fields by name; a field that was left out is not in it."""

    fields: JsonObject
    action: str | None = None


class TextReply(Struct, frozen=True):
    """Text, for the component or, if it answers nothing, for the agent."""

    text: str
    answers: bool = True


class Problem(Struct, frozen=True):
    """What is wrong with what was typed; the prompt stays or goes back."""

    message: str


Reply: TypeAlias = ActionReply | SelectionReply | FormReply | TextReply
