"""Settings that users choose per session, such as a model: `App(session_settings=Settings)`.

The settings are an author's type with a default for each field. The ledger holds the chosen values
as JSON; each turn gets a value of the type.
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
    """Settings of an app, described by an author's type."""

    def __init__(self, kind: type[Any]) -> None:
        """Check and keep the type.

        Raises:
            NoForm: A field of the type cannot be shown in a form.
            TypeError: It is not a type, or a field has no default.
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
        """Return the current settings: the chosen values, and defaults for the rest.

        If the chosen values do not fit the type any more, that is logged and the defaults are used.
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
        """Return a form with the current settings."""
        made: Component = self._answer_type(chosen).form.component(
            title=TITLE, submit_label="Save", id="settings"
        )
        return made

    def read(self, chosen: JsonObject, fields: Json) -> JsonObject:
        """Return the settings that an answer to the form chooses.

        A missing field keeps its value; null or an empty text clears it.

        Raises:
            InvalidAnswer: A field has an invalid value.
        """
        form = self.form(chosen)
        if isinstance(fields, dict):
            shown = {one["name"]: one["value"] for one in form.props["fields"] if "value" in one}
            fields = {**shown, **fields}
        data = check_answer(form, "form_submit", {"fields": fields})
        answer = answer_value(form, "form_submit", data)
        return self.plain(self._answer_type(chosen).read(answer))

    def changed(self, chosen: JsonObject, changes: JsonObject) -> JsonObject:
        """Return the current settings with some fields changed.

        Raises:
            TypeError: A field does not exist.
            InvalidAnswer: A field has an invalid value.
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

    def _answer_type(self, chosen: JsonObject) -> AnswerType[Any]:
        return AnswerType(self.kind, self.plain(self.value(chosen)))
