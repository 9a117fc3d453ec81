"""Components as they are on the wire: one Struct for all, and one for the props of each type.

Each bound has a `description`, which error messages print after "expected". Patterns take linear
time and mean the same in Python and ECMAScript, because they are also in the published schemas.

Source: protocol.md 2.2 and 3.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

import msgspec

from arp.protocol.json_value import Json, JsonObject

A_co = TypeVar("A_co", covariant=True)
"""Type of the answer to a question."""

# -- values ----------------------------------------------------------------------------------------

_END = r"(?![\s\S])"
"""The true end of the string. `$` would also match before a final line break."""

_NO_URL = r"\s\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff<>\"\\"
_HTTP = rf"[Hh][Tt][Tt][Pp][Ss]?://[^{_NO_URL}]+"
_MAILTO = rf"[Mm][Aa][Ii][Ll][Tt][Oo]:[^{_NO_URL}]+"
_BLOB = r"/_api/blobs/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*"
_DATA_IMAGE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"

Cell: TypeAlias = str | int | float | bool | None
"""One cell of a table, or one value of a key-value list."""

Number: TypeAlias = int | float

Row: TypeAlias = tuple[Cell, ...]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="a whole number from 0")]

Size: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=10_000, description="a size in 1…10000")]
"""A width or height in CSS pixels; renderers without pixels use it as a proportion."""

Link: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_MAILTO}|{_BLOB}){_END}",
        description="an http, https or mailto address, or a path below /_api/blobs/",
    ),
]
"""Target of a link."""


def is_link(address: str) -> bool:
    """Return whether an address may be the target of a link."""
    try:
        msgspec.convert(address, Link)
    except msgspec.ValidationError:
        return False
    return True


ImageSource: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_DATA_IMAGE}|{_BLOB}){_END}",
        description="an http or https address, data:image/(png|jpeg|gif|webp);base64,…, "
        "or a path below /_api/blobs/",
    ),
]
"""Source of an image. SVG is excluded because it can contain scripts."""

Color: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?:#[0-9A-Fa-f]{3,8}|[A-Za-z][A-Za-z0-9-]{0,31}"
        rf"|(?:rgb|hsl)a?\([0-9.,%/ -]{{1,48}}\)){_END}",
        description='a colour such as "#36a2eb", "teal" or "rgb(54, 162, 235)"',
    ),
]
"""A CSS colour. The pattern is narrow to keep `url(…)` and `expression(…)` out of style sheets."""

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
"""Name of a form field: a key of the answer object, and the left side of a typed answer."""

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

QuestionState: TypeAlias = Literal["open", "answered", "declined", "expired", "cancelled"]
"""State of a question; absent means open (protocol.md 2.2)."""

CHILD = msgspec.Meta(description="a component", extra_json_schema={"$ref": "#/$defs/Component"})
"""Marker of types that are a component inside the props of another component."""

Child: TypeAlias = Annotated[JsonObject, CHILD]


# -- a component -----------------------------------------------------------------------------------


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """One component as it is on the wire.

    Source: protocol.md 3.
    """

    id: str
    """Unique in its surface, over all levels; empty until a turn shows the component."""
    type: str
    """A name of the catalog, `x-{vendor}-{name}`, or `s-{name}`."""
    props: JsonObject
    """Plain JSON; contains the children of a layout component as plain objects."""
    version: int = 1
    fallback: Component | None = None
    """Shown by renderers that do not know the type, instead of the fallback chain."""


class Asks(Component, Generic[A_co], frozen=True):
    """A question with an answer of type `A_co`, for type checkers; instances are `Component`s."""


def as_object(component: Component) -> JsonObject:
    """Return a component as a plain object, as in its parent's props; `props` is shared."""
    plain: JsonObject = {"id": component.id, "type": component.type, "props": component.props}
    if component.version != 1:
        plain["version"] = component.version
    if component.fallback is not None:
        plain["fallback"] = as_object(component.fallback)
    return plain


def from_object(plain: JsonObject) -> Component:
    """Return a component from a validated plain object, the inverse of `as_object`."""
    fallback = plain.get("fallback")
    return Component(
        plain["id"],
        plain["type"],
        plain["props"],
        plain.get("version", 1),
        from_object(fallback) if fallback is not None else None,
    )


class _Props(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all props: unknown props are refused, defaults are not sent."""


# -- display ---------------------------------------------------------------------------------------

Selectable: TypeAlias = Literal["none", "one", "many"]

Status: TypeAlias = Literal["success", "error", "warning", "info"]


class TextProps(_Props, frozen=True):
    """`text`: text as Markdown or plain text. Every renderer shows it."""

    content: str
    """An incoming component may name it `text`."""
    format: Literal["plain", "markdown"] = "plain"
    """Format of `content`."""


class MarkdownProps(_Props, frozen=True):
    """`markdown`: CommonMark with tables. Raw HTML is shown as text."""

    content: str


class Section(_Props, frozen=True):
    """A labelled part of a status card."""

    label: str
    content: str
    style: Literal["default", "code", "error", "success"] = "default"
    """Style of `content`."""


class StatusCardProps(_Props, frozen=True):
    """`status-card`: the result of an action."""

    status: Status
    title: str
    """The result in a few words."""
    message: str | None = None
    """Additional text."""
    sections: tuple[Section, ...] = ()
    """Details with a label."""


class TableTab(_Props, frozen=True):
    """One of several tables in tabs."""

    name: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    highlight: tuple[Count, ...] = ()


class TableProps(_Props, frozen=True):
    """`table`: rows under headers. A row may be shorter or longer than the headers.

    A table with `selectable` is answered by a `selection` of row numbers, from 0.
    """

    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str | None = None
    """Shown above the table."""
    tabs: tuple[TableTab, ...] = ()
    """More tables, shown in tabs."""
    highlight: tuple[Count, ...] = ()
    """Numbers of rows to highlight, from 0."""
    searchable: bool = False
    """Whether a renderer may offer a search."""
    sortable: bool = False
    """Whether a renderer may sort by a column."""
    selectable: Selectable = "none"
    """Number of rows that the user can select. With `one` or `many` it is an input component."""
    can_decline: bool = False
    """Whether the user can decline to answer."""
    state: QuestionState | None = None
    answer: Json = None


class CodeTab(_Props, frozen=True):
    """One of several files in tabs."""

    name: str
    code: str
    language: Language | None = None


class CodeBlockProps(_Props, frozen=True):
    """`code-block`: code, or several files in tabs."""

    title: str | None = None
    """Shown above the code."""
    language: Language | None = None
    """Language for syntax highlighting."""
    code: str | None = None
    """Required if there are no `tabs`."""
    tabs: tuple[CodeTab, ...] = ()
    """Several files, shown in tabs."""

    def __post_init__(self) -> None:
        """Check that the block has code or tabs."""
        if self.code is None and not self.tabs:
            raise ValueError("needs code or tabs")


class DiffProps(_Props, frozen=True):
    """`diff`: the difference of two texts, which the renderer computes."""

    before: str
    """The old text."""
    after: str
    """The new text."""
    title: str | None = None
    before_label: str | None = None
    """Name of the old text."""
    after_label: str | None = None
    """Name of the new text."""
    language: Language | None = None


class Item(_Props, frozen=True):
    """One line of a key-value list."""

    key: str
    value: Cell
    style: Literal["default", "success", "error", "warning", "muted"] = "default"


class KeyValueProps(_Props, frozen=True):
    """`key-value`: values with their names."""

    items: tuple[Item, ...]
    title: str | None = None


class Step(_Props, frozen=True):
    """One step of a `progress` component."""

    name: str
    status: Literal["done", "active", "pending", "failed"]
    detail: str | None = None
    """Additional text of the step."""


class ProgressProps(_Props, frozen=True):
    """`progress`: steps with their status."""

    steps: tuple[Step, ...]
    title: str | None = None


class Dataset(_Props, frozen=True):
    """One series of a chart; `None` is a gap."""

    data: tuple[Number | None, ...]
    """One value for each label; `null` is a gap."""
    label: str = ""
    """Name of the series."""
    color: Color | None = None


class ChartProps(_Props, frozen=True):
    """`chart`: series of values; in a scatter chart, the labels are the x values."""

    type: Literal["line", "bar", "pie", "scatter", "area"]
    labels: tuple[str | int | float, ...]
    """Names of the values; in a scatter chart their x values."""
    datasets: tuple[Dataset, ...]
    """The series."""
    title: str | None = None
    """Shown above the chart."""
    height: Size | None = None
    """Height in CSS pixels."""
    x_title: str | None = None
    """Title of the x axis, such as Month."""
    y_title: str | None = None
    """Title of the y axis, such as Sales."""
    unit: str | None = None
    """Unit of the values, such as %, USD or °C."""


class ImageProps(_Props, frozen=True):
    """`image`: an image and a description of it."""

    src: ImageSource
    alt: str
    """Description of the image."""
    width: Size | None = None
    """Width in CSS pixels."""
    height: Size | None = None
    """Height in CSS pixels."""
    caption: str | None = None
    """Shown below the image."""


class Card(_Props, frozen=True):
    """One product."""

    name: str
    price: str | int | float | None = None
    image: ImageSource | None = None
    brand: str | None = None
    description: str | None = None
    badge: str | None = None
    """A short label, such as new."""
    url: Link | None = None
    """Target of a click."""


class ProductCardsProps(_Props, frozen=True):
    """`product-cards`: cards to compare side by side."""

    cards: tuple[Card, ...]
    title: str | None = None


# -- input -----------------------------------------------------------------------------------------

FieldType: TypeAlias = Literal[
    "text", "textarea", "select", "checkbox", "number", "date", "email", "password", "file"
]
Scalar: TypeAlias = str | int | float

_WITH_LENGTH = ("text", "textarea", "email", "password")


class FieldOption(_Props, frozen=True):
    """One option of a `select`; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None


class Validation(_Props, frozen=True):
    """Rules for the answer. No patterns, because a pattern can take forever."""

    min: Number | IsoDate | None = None
    """Smallest value: a number for a `number` field, a date for a `date` field."""
    max: Number | IsoDate | None = None
    """Largest value: a number for a `number` field, a date for a `date` field."""
    min_length: Count | None = None
    """Smallest length, in characters."""
    max_length: Count | None = None
    """Largest length, in characters."""
    message: str | None = None
    """Shown instead of the server's own message if the answer breaks a rule."""


class Field(_Props, frozen=True):
    """One field of a form."""

    name: FieldName
    """Key of the value in the answer."""
    label: str | None = None
    """Label of the field; the default is the name."""
    field_type: FieldType = "text"
    value: Cell = None
    """Initial value."""
    options: tuple[str | FieldOption, ...] = ()
    """Options of a `select` field, which requires them; other fields have none."""
    required: bool = False
    """A required checkbox must be ticked."""
    placeholder: str | None = None
    """An example of a value."""
    validation: Validation | None = None
    """Rules for the value."""

    def __post_init__(self) -> None:
        """Refuse options and bounds that the field type would ignore; a `select` needs options."""
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
    """`form`: fields that are submitted together."""

    fields: tuple[Field, ...]
    title: str | None = None
    description: str | None = None
    """Shown above the fields."""
    submit_label: str | None = None
    """Text of the button."""
    submit_action: ActionName | None = None
    """Sent as `action` with the answer."""
    can_decline: bool = False
    """Whether the user can decline to answer."""
    state: QuestionState | None = None
    answer: Json = None

    def __post_init__(self) -> None:
        """Check that field names are unique."""
        names = [field.name for field in self.fields]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f'two fields are named "{twice}"')


class ConfirmProps(_Props, frozen=True):
    """`confirm`: a yes-or-no question."""

    title: str
    """The question."""
    message: str | None = None
    """Additional text."""
    confirm_label: str | None = None
    """Text of the button for yes."""
    deny_label: str | None = None
    """Text of the button for no."""
    destructive: bool = False
    """Whether a yes deletes or overwrites something."""
    can_decline: bool = False
    """Whether the user can decline to answer."""
    state: QuestionState | None = None
    answer: Json = None


class Option(_Props, frozen=True):
    """One option; without `value`, its label is the value."""

    label: str
    value: Scalar | None = None
    """Value in the answer; the default is the label."""
    description: str | None = None
    icon: Icon | None = None
    disabled: bool = False
    """Whether it cannot be selected."""


class ChoicesProps(_Props, frozen=True):
    """`choices`: options; the user selects one or several."""

    options: tuple[str | Option, ...]
    title: str | None = None
    """The question."""
    style: Literal["buttons", "list", "cards"] = "buttons"
    """Style of the options."""
    multi_select: bool = False
    """Whether the user can select several."""
    can_decline: bool = False
    """Whether the user can decline to answer."""
    state: QuestionState | None = None
    answer: Json = None


class TextInputProps(_Props, frozen=True):
    """`text-input`: a question with a free text as its answer."""

    label: str | None = None
    """The question."""
    placeholder: str | None = None
    """An example of an answer."""
    max_length: Count | None = None
    """Largest length of the answer, in characters."""
    multiline: bool = False
    """Whether the answer can have several lines."""
    submit_label: str | None = None
    """Text of the button."""
    can_decline: bool = False
    """Whether the user can decline to answer."""
    state: QuestionState | None = None
    answer: Json = None


def value_of(option: str | FieldOption | Option) -> Scalar:
    """Return the value of an option in an answer."""
    if isinstance(option, str):
        return option
    return option.label if option.value is None else option.value


def label_of(option: str | FieldOption | Option) -> str:
    """Return the label of an option."""
    return option if isinstance(option, str) else option.label


# -- layout ----------------------------------------------------------------------------------------


class GroupProps(_Props, frozen=True):
    """`group`: components in a row or a column."""

    children: tuple[Child, ...]
    direction: Direction = "vertical"
    gap: Literal["none", "small", "medium", "large"] = "medium"
    """Space between the children."""


class Tab(_Props, frozen=True):
    """One tab with its component."""

    label: str
    component: Child
    icon: Icon | None = None


class TabsProps(_Props, frozen=True):
    """`tabs`: several components; one is visible at a time."""

    tabs: tuple[Tab, ...]
    active_tab: Count = 0
    """Number of the open tab, from 0."""


class SplitProps(_Props, frozen=True):
    """`split`: two components side by side, or one above the other."""

    left: Child
    right: Child
    direction: Direction = "horizontal"
    ratio: Ratio = "1:1"
    """Sizes of the two components."""


# -- experimental ----------------------------------------------------------------------------------

SOURCES = "x-arp-sources"
"""Type of a list of sources of a text: a custom component with a plain list as fallback.

The text refers to a source by its number: `[2]` is the second. Renderers that know the type may
turn such references in the same turn into links; others show the list below the text.
"""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source that the agent has read."""

    title: str
    url: Link | None = None
    excerpt: str | None = None
    """The relevant passage."""


# -- authors ---------------------------------------------------------------------------------------

AUTHOR = "x-arp-author"
"""Type of a heading that names the author of the following output, such as another agent."""

MAX_AUTHOR_CHARACTERS = 80


def author_of(name: str) -> Component:
    """Return a heading that names the author of the following output; the fallback is bold text."""
    shown = " ".join(name.split())[:MAX_AUTHOR_CHARACTERS]
    bold = "".join(f"\\{one}" if one in "\\`*_[]<>#|~" else one for one in shown)
    fallback = Component("", "text", {"content": f"**{bold}**", "format": "markdown"})
    return Component("", AUTHOR, {"name": shown}, fallback=fallback)
