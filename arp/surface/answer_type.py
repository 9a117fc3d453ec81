"""Answers as values of a type: the type gives the form, and the answer comes back as one of them.

A msgspec Struct, a dataclass, a `TypedDict` or a pydantic model. Pydantic is never imported here:
who has such a model has imported it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from arp.protocol.errors import InvalidAnswer
from arp.protocol.json_value import Json, JsonObject
from arp.surface.schema_form import NoForm, SchemaForm, form_of_schema

T = TypeVar("T")

_PLACE = re.compile(r" - at `\$([^`]*)`$")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")

MAX_REASON = 300
"""Characters of why a value does not fit: validators of an author may say much."""


class AnswerType(Generic[T]):
    """A type of which an answer is to be a value."""

    def __init__(self, kind: type[T], values: Mapping[str, Json] | None = None) -> None:
        """See the class.

        Args:
            kind: The type.
            values: What stands in the form at first, by property; `None`: the defaults.

        Raises:
            NoForm: The type has something that no field can stand for, or it is no type of which
                values can be made of JSON.
        """
        self.kind = kind
        self._is_model = _is_model(kind)
        self.form: SchemaForm = form_of_schema(self._schema(), values)

    def _schema(self) -> JsonObject:
        if self._is_model:
            kind: Any = self.kind
            found: JsonObject = kind.model_json_schema()
            return found
        try:
            return msgspec.json.schema(self.kind)
        except TypeError:  # msgspec says how to extend msgspec
            name = getattr(self.kind, "__name__", self.kind)
            raise NoForm(
                f"{name}: no form can ask for it; ask for a dataclass, Struct, TypedDict or "
                "pydantic model, whose fields are texts, numbers, bools, dates or choices"
            ) from None

    def read(self, answer: JsonObject) -> T:
        """Return the value that an answer makes.

        Args:
            answer: The fields of the form, as they passed its check.

        Raises:
            InvalidAnswer: The type refuses it; `detail` names the field, or `fields` where it is
                about several.
            Exception: Whatever else a validator of an author raises.
        """
        plain = self.form.read(answer)
        if self._is_model:
            return self._model(plain)
        try:
            return msgspec.convert(plain, self.kind)
        except msgspec.ValidationError as error:
            reason = str(error)
            place = _PLACE.search(reason)
            path = [name or number for name, number in _STEP.findall(place[1] if place else "")]
            self._refuse(path, _PLACE.sub("", reason))

    def check(self, answer: JsonObject) -> None:
        """Refuse an answer that `read` would refuse.

        Where a validator of an author fails by itself, nobody can be told how to answer better: the
        answer passes, and whoever reads it gets the failure.

        Raises:
            InvalidAnswer: As `read`.
        """
        try:
            self.read(answer)
        except InvalidAnswer:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, `read` raises it again
            return

    def _model(self, plain: Json) -> T:
        kind: Any = self.kind
        try:
            made: T = kind.model_validate(plain)
        except sys.modules["pydantic"].ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            self._refuse(first["loc"], first["msg"])
        return made

    def _refuse(self, path: Sequence[Json], why: str) -> NoReturn:
        name = self.form.field_of(path)
        where = "fields" if name is None else f"fields.{name}"
        raise InvalidAnswer(f"{where}: {why:.{MAX_REASON}}", detail=where) from None


def _is_model(kind: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)
