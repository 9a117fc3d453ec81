"""Components as they stand on the wire: one Struct for all of them, one for the props of each type.

A bound has a `description`: the refusal says it after "expected". Patterns are linear in time and
mean the same in Python and in ECMAScript, so that published schemas can carry them.

Source: protocol.md 2.2 and 3.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject

# -- values ----------------------------------------------------------------------------------------

_END = r"(?![\s\S])"
"""The true end of the string: `$` would let a line break follow."""

_NO_URL = r"\s\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff<>\"\\"
_HTTP = rf"[Hh][Tt][Tt][Pp][Ss]?://[^{_NO_URL}]+"
_MAILTO = rf"[Mm][Aa][Ii][Ll][Tt][Oo]:[^{_NO_URL}]+"
_BLOB = r"/_api/blobs/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*"
_DATA_IMAGE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"

Cell: TypeAlias = str | int | float | bool | None
"""What a table or a key-value shows in one place."""

Number: TypeAlias = int | float

Row: TypeAlias = tuple[Cell, ...]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="a whole number from 0")]

Size: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=10_000, description="a size in 1…10000")]
"""A width or height in CSS pixels; renderers without pixels take it as a proportion."""

Link: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_MAILTO}|{_BLOB}){_END}",
        description="an http, https or mailto address, or a path below /_api/blobs/",
    ),
]
"""Where a click may lead."""

ImageSource: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_DATA_IMAGE}|{_BLOB}){_END}",
        description="an http or https address, data:image/(png|jpeg|gif|webp);base64,…, "
        "or a path below /_api/blobs/",
    ),
]
"""Where an image comes from. No SVG: it can carry scripts."""

Color: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?:#[0-9A-Fa-f]{3,8}|[A-Za-z][A-Za-z0-9-]{0,31}"
        rf"|(?:rgb|hsl)a?\([0-9.,%/ -]{{1,48}}\)){_END}",
        description='a colour such as "#36a2eb", "teal" or "rgb(54, 162, 235)"',
    ),
]
"""Narrow on purpose: no `url(…)` and no `expression(…)` reaches a style sheet."""

Language: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^[A-Za-z0-9+#-]{{1,32}}{_END}",
        description='the name of a language such as "python", "c++" or "c#"',
    ),
]

Icon: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=64, description="an icon's name or an emoji, up to 64 characters")
]

FieldName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?!__)(?!(?:constructor|prototype){_END})"
        rf"[^\u0000-\u001f\u007f:;=]{{1,128}}{_END}",
        description="a field name: 1…128 characters without : ; = and control characters, "
        "not beginning with two underscores",
    ),
]
"""Names become keys of an object in every language, and the left side of typed answers."""

ActionName: TypeAlias = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=128, description="an action name, 1…128 characters"),
]

IsoDate: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_END}", description="YYYY-MM-DD"),
]

Ratio: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=rf"^[1-9][0-9]?:[1-9][0-9]?{_END}", description='a ratio such as "1:2"'),
]

Direction: TypeAlias = Literal["vertical", "horizontal"]

QuestionState: TypeAlias = Literal["open", "answered", "expired", "cancelled"]
"""Where a question stands; absent is open (protocol.md 2.2)."""

CHILD = msgspec.Meta(description="a component", extra_json_schema={"$ref": "#/$defs/Component"})
"""Marks the places where a component stands inside of another's props."""

Child: TypeAlias = Annotated[JsonObject, CHILD]


# -- a component -----------------------------------------------------------------------------------


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """One component as it stands on the wire.

    Source: protocol.md 3.
    """

    id: str
    """Unique in its surface, over all levels; empty until the turn that shows it gives it one."""
    type: str
    """A name of the catalog, or `x-{vendor}-{name}`, or `s-{name}`."""
    props: JsonObject
    """Plain JSON; the children of a layout component stand in it as plain objects."""
    version: int = 1
    fallback: Component | None = None
    """Shown instead, before the catalog's chain, where the type is not known."""


def as_object(component: Component) -> JsonObject:
    """Return a component as the plain object that stands in its parent's props."""
    plain: JsonObject = {"id": component.id, "type": component.type, "props": component.props}
    if component.version != 1:
        plain["version"] = component.version
    if component.fallback is not None:
        plain["fallback"] = as_object(component.fallback)
    return plain


def from_object(plain: JsonObject) -> Component:
    """Do the inverse of `as_object`, for objects that have been validated."""
    return msgspec.convert(plain, Component)


class _Props(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all props have in common: an unknown one is refused, a default is not sent."""


# -- display ---------------------------------------------------------------------------------------

Selectable: TypeAlias = Literal["none", "one", "many"]

Status: TypeAlias = Literal["success", "error", "warning", "info"]


class TextProps(_Props, frozen=True):
    """`text`: what every renderer can show, and the end of every chain."""

    content: str
    """Its alias `text` is read as `content` where a component comes in."""
    format: Literal["plain", "markdown"] = "plain"


class MarkdownProps(_Props, frozen=True):
    """`markdown`: CommonMark with tables; raw HTML in it is shown, never run."""

    content: str


class Section(_Props, frozen=True):
    """A labelled part of a status card."""

    label: str
    content: str
    style: Literal["default", "code", "error", "success"] = "default"


class StatusCardProps(_Props, frozen=True):
    """`status-card`: how something went."""

    status: Status
    title: str
    message: str | None = None
    sections: tuple[Section, ...] = ()


class TableTab(_Props, frozen=True):
    """One of several tables that share a place."""

    name: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    highlight: tuple[Count, ...] = ()


class TableProps(_Props, frozen=True):
    """`table`: rows under headers. A row may be shorter or longer than the headers.

    One with `selectable` is answered by a `selection` of numbers of rows, from 0.
    """

    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str | None = None
    tabs: tuple[TableTab, ...] = ()
    highlight: tuple[Count, ...] = ()
    """Numbers of rows, from 0."""
    searchable: bool = False
    sortable: bool = False
    selectable: Selectable = "none"
    """Whether one of its own rows, or some, can be selected: an input, as `choices` are."""
    state: QuestionState | None = None
    answer: Json = None


class CodeTab(_Props, frozen=True):
    """One of several files that share a place."""

    name: str
    code: str
    language: Language | None = None


class CodeBlockProps(_Props, frozen=True):
    """`code-block`: code, or tabs of code."""

    title: str | None = None
    language: Language | None = None
    code: str | None = None
    tabs: tuple[CodeTab, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a block with nothing in it."""
        if self.code is None and not self.tabs:
            raise ValueError("needs code or tabs")


class DiffProps(_Props, frozen=True):
    """`diff`: two whole texts; the renderer finds the difference."""

    before: str
    after: str
    title: str | None = None
    before_label: str | None = None
    after_label: str | None = None
    language: Language | None = None


class Item(_Props, frozen=True):
    """One line of a key-value list."""

    key: str
    value: Cell
    style: Literal["default", "success", "error", "warning", "muted"] = "default"


class KeyValueProps(_Props, frozen=True):
    """`key-value`: facts by name."""

    items: tuple[Item, ...]
    title: str | None = None


class Step(_Props, frozen=True):
    """One step of a progress."""

    name: str
    status: Literal["done", "active", "pending", "failed"]
    detail: str | None = None


class ProgressProps(_Props, frozen=True):
    """`progress`: steps and how far each is."""

    steps: tuple[Step, ...]
    title: str | None = None


class Dataset(_Props, frozen=True):
    """One series of a chart; `None` is a gap."""

    data: tuple[Number | None, ...]
    label: str = ""
    color: Color | None = None


class ChartProps(_Props, frozen=True):
    """`chart`: series over labels; a scatter has its x values as labels."""

    type: Literal["line", "bar", "pie", "scatter", "area"]
    labels: tuple[str | int | float, ...]
    datasets: tuple[Dataset, ...]
    title: str | None = None
    height: Size | None = None
    x_title: str | None = None
    """What the labels are."""
    y_title: str | None = None
    """What the values are."""
    unit: str | None = None
    """What the values are counted in: %, USD, °C."""


class ImageProps(_Props, frozen=True):
    """`image`: `alt` says what it shows."""

    src: ImageSource
    alt: str
    width: Size | None = None
    height: Size | None = None
    caption: str | None = None


class Card(_Props, frozen=True):
    """One product."""

    name: str
    price: str | int | float | None = None
    image: ImageSource | None = None
    brand: str | None = None
    description: str | None = None
    badge: str | None = None
    url: Link | None = None


class ProductCardsProps(_Props, frozen=True):
    """`product-cards`: things to look at side by side."""

    cards: tuple[Card, ...]
    title: str | None = None


# -- input -----------------------------------------------------------------------------------------

FieldType: TypeAlias = Literal[
    "text", "textarea", "select", "checkbox", "number", "date", "email", "password", "file"
]
Scalar: TypeAlias = str | int | float

_WITH_LENGTH = ("text", "textarea", "email", "password")


class FieldOption(_Props, frozen=True):
    """One choice of a `select`; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None


class Validation(_Props, frozen=True):
    """What a field's answer must keep to. No patterns: a pattern can take forever."""

    min: Number | IsoDate | None = None
    """Of a `number` a number, of a `date` a date."""
    max: Number | IsoDate | None = None
    min_length: Count | None = None
    max_length: Count | None = None
    message: str | None = None
    """Told instead of our words when the answer does not keep to it."""


class Field(_Props, frozen=True):
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


class FormProps(_Props, frozen=True):
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


class ConfirmProps(_Props, frozen=True):
    """`confirm`: yes or no, sent as the action `confirm` or `deny`."""

    title: str
    message: str | None = None
    confirm_label: str | None = None
    deny_label: str | None = None
    destructive: bool = False
    state: QuestionState | None = None
    answer: Json = None


class Option(_Props, frozen=True):
    """One of the choices; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None
    description: str | None = None
    icon: Icon | None = None
    disabled: bool = False


class ChoicesProps(_Props, frozen=True):
    """`choices`: one of several, or some of them, sent as `selection`."""

    options: tuple[str | Option, ...]
    title: str | None = None
    style: Literal["buttons", "list", "cards"] = "buttons"
    multi_select: bool = False
    state: QuestionState | None = None
    answer: Json = None


class TextInputProps(_Props, frozen=True):
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


# -- layout ----------------------------------------------------------------------------------------


class GroupProps(_Props, frozen=True):
    """`group`: components in a row or a column."""

    children: tuple[Child, ...]
    direction: Direction = "vertical"
    gap: Literal["none", "small", "medium", "large"] = "medium"


class Tab(_Props, frozen=True):
    """One tab and the component behind it."""

    label: str
    component: Child
    icon: Icon | None = None


class TabsProps(_Props, frozen=True):
    """`tabs`: one component at a time; a change is told as the action `tab_change`."""

    tabs: tuple[Tab, ...]
    active_tab: Count = 0
    """The number of the tab that is open, from 0."""


class SplitProps(_Props, frozen=True):
    """`split`: two components that share a place."""

    left: Child
    right: Child
    direction: Direction = "horizontal"
    ratio: Ratio = "1:1"
