"""Answers as values of a type: a form is made from the type, and the answer becomes a value of it.

The type is a msgspec Struct, a dataclass, a `TypedDict` or a pydantic model. Pydantic is not
imported here: a program with such a model has imported it already.
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

_PATH = re.compile(r" - at `\$([^`]*)`$")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")

MAX_REASON = 300
"""Longest reason in an error, in characters, because the validators of authors may be verbose."""


class AnswerType(Generic[T]):
    """The type of an answer, with its form."""

    def __init__(self, kind: type[T], values: Mapping[str, Json] | None = None) -> None:
        """Create the form for a type.

        Args:
            kind: The type.
            values: Initial values of the form, by property; `None`: the defaults.

        Raises:
            NoForm: A field of the type cannot be a field of a form, or values of the type cannot be
                made from JSON.
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
        except TypeError:  # its message is about msgspec, which authors do not need to know
            name = getattr(self.kind, "__name__", self.kind)
            raise NoForm(
                f"{name}: no form can ask for it; ask for a dataclass, Struct, TypedDict or "
                "pydantic model, whose fields are texts, numbers, bools, dates or choices"
            ) from None

    def read(self, answer: JsonObject) -> T:
        """Return an answer as a value of the type.

        Args:
            answer: The checked fields of the form.

        Raises:
            InvalidAnswer: The type refuses the answer; `detail` names the field, or is `fields` if
                several fields are concerned.
            Exception: Any other exception of an author's validator.
        """
        plain = self.form.read(answer)
        if self._is_model:
            return self._model(plain)
        try:
            return msgspec.convert(plain, self.kind)
        except msgspec.ValidationError as error:
            reason = str(error)
            found = _PATH.search(reason)
            path = [name or number for name, number in _STEP.findall(found[1] if found else "")]
            self._refuse(path, _PATH.sub("", reason))

    def check(self, answer: JsonObject) -> None:
        """Check that `read` accepts an answer.

        If a validator of the author fails with another exception, the user cannot give a better
        answer. The answer then passes, and the caller of `read` gets the exception.

        Raises:
            InvalidAnswer: The type refuses the answer; see `read`.
        """
        try:
            self.read(answer)
        except InvalidAnswer:
            raise
        except Exception:  # noqa: BLE001 - `read` raises it again
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
