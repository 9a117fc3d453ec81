"""The props of the four input components, as they stand on the wire.

Each can be a question that stays open: `state` and `answer` tell every renderer how it went.

Source: protocol.md 2.2 and 3.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from arp.protocol.json_value import Json
from arp.protocol.prop_types import (
    ActionName,
    Cell,
    Count,
    FieldName,
    Icon,
    IsoDate,
    Number,
    QuestionState,
)

FieldType: TypeAlias = Literal[
    "text", "textarea", "select", "checkbox", "number", "date", "email", "password", "file"
]
Scalar: TypeAlias = str | int | float

_WITH_LENGTH = ("text", "textarea", "email", "password")


class FieldOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One choice of a `select`; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a field's answer must keep to. No patterns: a pattern can take forever."""

    min: Number | IsoDate | None = None
    """Of a `number` a number, of a `date` a date."""
    max: Number | IsoDate | None = None
    min_length: Count | None = None
    max_length: Count | None = None
    message: str | None = None
    """Told instead of our words when the answer does not keep to it."""


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field of a form."""

    name: FieldName
    label: str | None = None
    field_type: FieldType = "text"
    value: Cell = None
    """What stands in the field before the user writes."""
    options: tuple[str | FieldOption, ...] = ()
    required: bool = False
    """Of a checkbox: it must be ticked."""
    placeholder: str | None = None
    validation: Validation | None = None

    def __post_init__(self) -> None:
        """Refuse what would be ignored: options or bounds that its kind does not have."""
        if (self.field_type == "select") != bool(self.options):
            raise ValueError(
                "a select field needs options"
                if self.field_type == "select"
                else f"options belong to a select field, this is {self.field_type}"
            )
        if self.validation is not None:
            _check_bounds(self.field_type, self.validation)


def _check_bounds(field_type: FieldType, validation: Validation) -> None:
    has_length = validation.min_length is not None or validation.max_length is not None
    if has_length and field_type not in _WITH_LENGTH:
        raise ValueError(f"validation.min_length and max_length: not for a {field_type} field")
    bounds = [bound for bound in (validation.min, validation.max) if bound is not None]
    if bounds and field_type not in ("number", "date"):
        raise ValueError(f"validation.min and max do not apply to a {field_type} field")
    if any(isinstance(bound, str) != (field_type == "date") for bound in bounds):
        raise ValueError(f"validation.min and max of a {field_type} field are {field_type}s")


class FormProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`form`: fields that are sent together as `form_submit`."""

    fields: tuple[Field, ...]
    title: str | None = None
    description: str | None = None
    submit_label: str | None = None
    submit_action: ActionName | None = None
    state: QuestionState | None = None
    answer: Json = None

    def __post_init__(self) -> None:
        """Refuse two fields of one name."""
        names = [field.name for field in self.fields]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f'two fields are named "{twice}"')


class ConfirmProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`confirm`: yes or no, sent as the action `confirm` or `deny`."""

    title: str
    message: str | None = None
    confirm_label: str | None = None
    deny_label: str | None = None
    destructive: bool = False
    state: QuestionState | None = None
    answer: Json = None


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of the choices; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None
    description: str | None = None
    icon: Icon | None = None
    disabled: bool = False


class ChoicesProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`choices`: one of several, or some of them, sent as `selection`."""

    options: tuple[str | Option, ...]
    title: str | None = None
    style: Literal["buttons", "list", "cards"] = "buttons"
    multi_select: bool = False
    state: QuestionState | None = None
    answer: Json = None


class TextInputProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`text-input`: free text, sent as `text`."""

    label: str | None = None
    placeholder: str | None = None
    max_length: Count | None = None
    """In characters."""
    multiline: bool = False
    submit_label: str | None = None
    state: QuestionState | None = None
    answer: Json = None


def value_of(option: str | FieldOption | Option) -> Scalar:
    """What an answer holds when this option is taken."""
    if isinstance(option, str):
        return option
    return option.label if option.value is None else option.value


def label_of(option: str | FieldOption | Option) -> str:
    """What the user reads for this option."""
    return option if isinstance(option, str) else option.label
