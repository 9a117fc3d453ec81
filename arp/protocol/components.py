"""The props of the ten display components, as they stand on the wire.

Source: protocol.md 3.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from arp.protocol.json_value import Json
from arp.protocol.prop_types import (
    Cell,
    Color,
    Count,
    ImageSource,
    Language,
    Link,
    Number,
    QuestionState,
    Row,
    Size,
)

Selectable: TypeAlias = Literal["none", "one", "many"]

Status: TypeAlias = Literal["success", "error", "warning", "info"]


class TextProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`text`: what every renderer can show, and the end of every chain."""

    content: str
    """Its alias `text` is read as `content` where a component comes in."""
    format: Literal["plain", "markdown"] = "plain"


class MarkdownProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`markdown`: CommonMark with tables; raw HTML in it is shown, never run."""

    content: str


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A labelled part of a status card."""

    label: str
    content: str
    style: Literal["default", "code", "error", "success"] = "default"


class StatusCardProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`status-card`: how something went."""

    status: Status
    title: str
    message: str | None = None
    sections: tuple[Section, ...] = ()


class TableTab(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several tables that share a place."""

    name: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    highlight: tuple[Count, ...] = ()


class TableProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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


class CodeTab(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several files that share a place."""

    name: str
    code: str
    language: Language | None = None


class CodeBlockProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`code-block`: code, or tabs of code."""

    title: str | None = None
    language: Language | None = None
    code: str | None = None
    tabs: tuple[CodeTab, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a block with nothing in it."""
        if self.code is None and not self.tabs:
            raise ValueError("needs code or tabs")


class DiffProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`diff`: two whole texts; the renderer finds the difference."""

    before: str
    after: str
    title: str | None = None
    before_label: str | None = None
    after_label: str | None = None
    language: Language | None = None


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of a key-value list."""

    key: str
    value: Cell
    style: Literal["default", "success", "error", "warning", "muted"] = "default"


class KeyValueProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`key-value`: facts by name."""

    items: tuple[Item, ...]
    title: str | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of a progress."""

    name: str
    status: Literal["done", "active", "pending", "failed"]
    detail: str | None = None


class ProgressProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`progress`: steps and how far each is."""

    steps: tuple[Step, ...]
    title: str | None = None


class Dataset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One series of a chart; `None` is a gap."""

    data: tuple[Number | None, ...]
    label: str = ""
    color: Color | None = None


class ChartProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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


class ImageProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`image`: `alt` says what it shows."""

    src: ImageSource
    alt: str
    width: Size | None = None
    height: Size | None = None
    caption: str | None = None


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One product."""

    name: str
    price: str | int | float | None = None
    image: ImageSource | None = None
    brand: str | None = None
    description: str | None = None
    badge: str | None = None
    url: Link | None = None


class ProductCardsProps(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`product-cards`: things to look at side by side."""

    cards: tuple[Card, ...]
    title: str | None = None
