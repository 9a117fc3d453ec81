"""What users set for a session, such as a model: `App(session_settings=Settings)`.

The settings are a type of the author's whose fields have defaults. The ledger has what was chosen
as plain JSON; a value of the type is made of it for each turn.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import InvalidAnswer
from arp.protocol.json_value import Json, JsonObject
from arp.surface.answer_type import AnswerType
from arp.surface.answers import answer_value, check_answer
from arp.values.cell import as_json

logger = logging.getLogger(__name__)

TITLE = "Settings"


class UserSettings:
    """The type of an app's settings."""

    def __init__(self, kind: type[Any]) -> None:
        """See the class.

        Raises:
            NoForm: The type has something that no field can stand for.
            TypeError: It is no type, or one of its fields has no default.
        """
        if not isinstance(kind, type):
            raise TypeError(f"session_settings: expected a type, got {type(kind).__name__}")
        name = kind.__name__
        try:
            kind()
        except Exception as error:  # noqa: BLE001 - whatever an author's type raises
            raise TypeError(
                f"session_settings: {name}() fails ({error}); give each field a default"
            ) from None
        self.kind = kind
        AnswerType(kind)
        if not isinstance(as_json(kind()), dict):
            raise TypeError(
                f"session_settings: expected a dataclass, Struct or pydantic model, got {name}"
            )

    def value(self, chosen: JsonObject) -> Any:
        """Return what applies: what was chosen, else the defaults.

        What does not fit the type any more is logged, and the defaults apply.
        """
        if not chosen:
            return self.kind()
        try:
            if hasattr(self.kind, "model_validate"):
                return self.kind.model_validate(chosen)
            return msgspec.convert(chosen, self.kind, strict=False)
        except Exception as error:  # noqa: BLE001 - whatever an author's validator raises
            logger.warning("session settings %s do not fit any more: %s", chosen, error)
            return self.kind()

    def plain(self, value: Any) -> JsonObject:
        """Return a value of the type as JSON."""
        made: JsonObject = as_json(value)
        return made

    def form(self, chosen: JsonObject) -> Component:
        """Return a form that shows what applies."""
        made: Component = self._asked(chosen).form.component(
            title=TITLE, submit_label="Save", id="settings"
        )
        return made

    def read(self, chosen: JsonObject, fields: Json) -> JsonObject:
        """Return what an answer to the form chooses.

        A field that the answer leaves out stays as it is; null and the empty text empty it.

        Raises:
            InvalidAnswer: A field has a value that it cannot have.
        """
        form = self.form(chosen)
        if isinstance(fields, dict):
            shown = {one["name"]: one["value"] for one in form.props["fields"] if "value" in one}
            fields = {**shown, **fields}
        data = check_answer(form, "form_submit", {"fields": fields})
        answer = answer_value(form, "form_submit", data)
        return self.plain(self._asked(chosen).read(answer))

    def changed(self, chosen: JsonObject, changes: JsonObject) -> JsonObject:
        """Return what applies with some fields changed.

        Raises:
            TypeError: There is no such field.
            InvalidAnswer: A value that a field cannot have.
        """
        now = self.plain(self.value(chosen))
        if unknown := changes.keys() - now.keys():
            known = ", ".join(now)
            raise TypeError(f"settings: no field {', '.join(sorted(unknown))}; there are: {known}")
        wanted: JsonObject = as_json({**now, **changes})
        try:
            if hasattr(self.kind, "model_validate"):
                return self.plain(self.kind.model_validate(wanted))
            return self.plain(msgspec.convert(wanted, self.kind))
        except ValueError as error:
            raise InvalidAnswer(f"settings: {error}") from None

    def _asked(self, chosen: JsonObject) -> AnswerType[Any]:
        return AnswerType(self.kind, self.plain(self.value(chosen)))
