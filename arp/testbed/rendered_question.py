"""`RenderedQuestion`: a question on a renderer, and how a test answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arp.protocol.catalog import is_custom
from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Permission
from arp.surface.answers import ANSWER
from arp.surface.typed_answer import DECLINE

if TYPE_CHECKING:
    from arp.client.client import ArpClient

_EXPECTED: Final = {
    "confirm": "True or False",
    "choices": "a value, or a list of values",
    "form": "a dict of its fields, or an object with them",
    "text-input": "a str",
    "table": "a list of row numbers, from 0",
}
"""Description of the expected answer by kind of question."""


class RenderedQuestion:
    """A question that is open on a renderer.

    Args:
        component: Component of the question.
        surface: Name of its surface.
        permission: Permission request of a tool; `None` for other questions.
    """

    def __init__(
        self, component: Component, surface: str, permission: Permission | None = None
    ) -> None:
        self.id = component.id
        self.type = component.type
        """Type of the component: `confirm`, `choices`, `form`, `text-input`, `table`, a custom
        type, or the type of its fallback."""
        self.props = component.props
        """All properties of the component."""
        self.permission = permission
        """Permission request of a tool; `None` for other questions."""
        self.surface = surface

    @property
    def title(self) -> str:
        """Text of the question."""
        for name in ("title", "label", "prompt", "question"):
            if isinstance(self.props.get(name), str):
                return str(self.props[name])
        return ""

    @property
    def fields(self) -> list[str]:
        """Names of a form's fields."""
        return [str(field.get("name")) for field in self.props.get("fields", ())]

    @property
    def options(self) -> list[Any]:
        """Values of the options."""
        return [
            one.get("value", one.get("label")) if isinstance(one, dict) else one
            for one in self.props.get("options", ())
        ]

    async def send(self, client: ArpClient, answer: Any) -> str:
        """Send an answer and return the id of the input.

        Raises:
            TypeError: The answer is of the wrong kind; the message names the expected one.
        """
        if self.permission is not None and isinstance(answer, bool):
            return await client.send_permission(self.permission, answer)
        match self.type, answer:
            case "confirm", bool():
                name = "confirm" if answer else "deny"
                return await client.send_action(name, source=self.id, surface=self.surface)
            case "text-input", str():
                return await client.send_text(answer, source=self.id)
            case "choices", str() | int():
                return await client.send_selection([answer], source=self.id, surface=self.surface)
            case "choices" | "table", Sequence():
                values = list(answer)
                return await client.send_selection(values, source=self.id, surface=self.surface)
            case "form", _ if (fields := _fields(answer)) is not None:
                return await client.send_form(fields, source=self.id, surface=self.surface)
        if is_custom(self.type):
            return await client.send_action(ANSWER, answer, source=self.id, surface=self.surface)
        expected = _EXPECTED.get(self.type)
        if expected is None:  # the renderer shows the question as text, so the user types an answer
            if isinstance(answer, str):
                return await client.send_text(answer)
            expected = (
                f"a str, which this renderer's user types: it shows the question as {self.type}"
            )
        raise TypeError(f"answer: expected {expected}; got {answer!r:.80}")

    async def decline(self, client: ArpClient) -> str:
        """Decline to answer and return the id of the input."""
        return await client.send_action(DECLINE, source=self.id, surface=self.surface)

    def __repr__(self) -> str:
        return f"<{self.type} {self.id!r}: {self.title}>"


def _fields(answer: Any) -> JsonObject | None:
    """Return the fields of a form from a mapping, a Struct, a dataclass or a pydantic model."""
    if isinstance(answer, Mapping):
        return dict(answer)
    dump = getattr(answer, "model_dump", None)
    plain = dump(mode="json") if dump is not None else None
    if plain is None and not isinstance(answer, str | int | float | list | tuple | None):
        plain = msgspec.to_builtins(answer)
    return plain if isinstance(plain, dict) else None
