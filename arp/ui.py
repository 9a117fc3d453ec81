"""Builders of the core components, with their props as keyword arguments.

A builder raises immediately if a value is wrong. It returns a `Component` of plain JSON that shares
no objects with the arguments. Arrays can be any iterable; rows can be mappings; cells can be dates,
decimals and enums. `table` and `chart` accept data frames and lists of models.

All builders accept `id` (for patches; if it is empty, the component gets an id when it is shown)
and `fallback` (for renderers that do not know the type).

A builder of a part (`section`, `step`, `dataset`, …) returns a plain dict. You can also write the
dict yourself.

Source: protocol.md 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast, overload

import msgspec

from arp.protocol import components as of
from arp.protocol.components import Asks, Component, Direction, Tab
from arp.protocol.errors import InvalidComponent, LocalError
from arp.protocol.exact_integers import MAX_EXACT, TOO_LARGE, exact_cell, numbers_of, rounded_at
from arp.protocol.json_value import JsonObject, kind_of
from arp.protocol.plain_values import component_to_plain, to_plain
from arp.protocol.safe_text import well_formed
from arp.protocol.validate import check_component, explain, fits
from arp.values.columns import MAX_ROWS, Columns, columns_of, is_tabular, kind_name, marked
from arp.values.display import converter as converter
from arp.values.pictures import description_of, picture_kind, source_of
from arp.values.records import record_of
from arp.values.series import series_of

__all__ = [
    "Cell",
    "ChartType",
    "ChoiceStyle",
    "Data",
    "Gap",
    "ItemStyle",
    "Part",
    "Picture",
    "Rows",
    "SectionStyle",
    "Selectable",
    "Status",
    "StepStatus",
    "author",
    "card",
    "chart",
    "choices",
    "code_block",
    "code_tab",
    "confirm",
    "converter",
    "custom",
    "dataset",
    "diff",
    "field",
    "form",
    "group",
    "image",
    "item",
    "key_value",
    "markdown",
    "option",
    "product_cards",
    "progress",
    "section",
    "source",
    "sources",
    "split",
    "status_card",
    "step",
    "tab",
    "table",
    "table_tab",
    "tabs",
    "text",
    "text_input",
]

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")

Cell: TypeAlias = str | int | float | bool | Decimal | date | None
Rows: TypeAlias = Iterable[Iterable[Any] | Mapping[str, Any]]
Data: TypeAlias = Any
"""A data frame or series of pandas or polars, a table of pyarrow, an array of numpy, a list of
mappings, dataclasses or models, or a mapping from names to lists."""
Picture: TypeAlias = Any
"""A figure of matplotlib, a picture of PIL, the bytes of an image file, or its path."""
Part: TypeAlias = Mapping[str, Any]

Selectable: TypeAlias = Literal["none", "one", "many"]
Status: TypeAlias = Literal["success", "error", "warning", "info"]
StepStatus: TypeAlias = Literal["done", "active", "pending", "failed"]
ItemStyle: TypeAlias = Literal["default", "success", "error", "warning", "muted"]
SectionStyle: TypeAlias = Literal["default", "code", "error", "success"]
ChartType: TypeAlias = Literal["line", "bar", "pie", "scatter", "area"]
ChoiceStyle: TypeAlias = Literal["buttons", "list", "cards"]
Gap: TypeAlias = Literal["none", "small", "medium", "large"]


# -- display ---------------------------------------------------------------------------------------


def text(
    content: str,
    *,
    format: Literal["plain", "markdown"] | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return a text. Every renderer shows it."""
    return _built("text", {"content": content, "format": format}, id, fallback)


def markdown(content: str, *, id: str = "", fallback: Component | None = None) -> Component:
    """Return CommonMark with tables. Raw HTML in it is shown as text."""
    return _built("markdown", {"content": content}, id, fallback)


def status_card(
    status: Status,
    title: str,
    message: str | None = None,
    *,
    sections: Iterable[Part] | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return the result of an action. Create its `sections` with `ui.section`."""
    props = {"status": status, "title": title, "message": message, "sections": sections}
    return _built("status-card", props, id, fallback)


def section(label: str, content: str, *, style: SectionStyle | None = None) -> JsonObject:
    """Return a section of a status card."""
    return _part(of.Section, "section", {"label": label, "content": content, "style": style})


def table(
    headers: Iterable[str] | Data = (),
    rows: Rows | Data = (),
    *titled: Rows | Data,
    title: str | None = None,
    tabs: Iterable[Part] | None = None,
    highlight: Iterable[int] | None = None,
    searchable: bool | None = None,
    sortable: bool | None = None,
    selectable: Selectable | None = None,
    can_decline: bool | None = None,
    limit: int = MAX_ROWS,
    index: bool | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return data as a table: `ui.table(df)`; or rows with headers: `ui.table(headers, rows)`.

    A title may be the first argument: `ui.table("Sales", df)`, `ui.table("Sales", headers, rows)`.

    Args:
        headers: Names of the columns; or data, see `Data`.
        rows: Lists of cells, one cell for each header; or data, from which `headers` selects
            columns.
        titled: The rows, if the title is the first argument.
        title: Title above the table.
        tabs: More tables in the same place, created with `ui.table_tab`.
        highlight: Numbers of the rows to highlight, from 0.
        searchable: Whether a renderer may offer a search.
        sortable: Whether a renderer may sort by a column.
        selectable: Whether the user selects `one` row or `many`. `turn.ask` returns the number of
            the row or a list of numbers, from 0. Rows of `tabs` cannot be selected.
        can_decline: Whether the user can decline to select rows.
        limit: Maximum number of rows of data. If there are more, the title says so.
        index: Whether to show the index of a pandas data frame. `None` shows an index that has a
            name or is not of whole numbers.
        id: Id for patches.
        fallback: Component for renderers without tables.
    """
    if titled or (isinstance(headers, str) and _is_data(rows)):
        if not isinstance(headers, str) or title is not None or len(titled) > 1:
            raise InvalidComponent(
                "ui.table: expected (headers, rows, title=…) or (title, headers, rows)"
            )
        title, headers = headers, rows
        rows = titled[0] if titled else ()
    named, cells, mark = _table_of("ui.table", headers, rows, limit, index)
    props = {
        "title": marked(title, mark),
        "headers": named,
        "rows": cells,
        "tabs": tabs,
        "highlight": highlight,
        "searchable": searchable,
        "sortable": sortable,
        "selectable": selectable,
        "can_decline": can_decline,
    }
    made = _built("table", props, id, fallback)
    _check_highlight("ui.table", made.props)
    return made


def table_tab(
    name: str,
    headers: Iterable[str] | Data,
    rows: Rows | Data = (),
    *,
    highlight: Iterable[int] | None = None,
    limit: int = MAX_ROWS,
    index: bool | None = None,
) -> JsonObject:
    """Return one of several tables in the same place. For the arguments see `ui.table`."""
    named, cells, mark = _table_of("ui.table_tab", headers, rows, limit, index)
    values = {"name": marked(name, mark), "headers": named, "rows": cells}
    made = _part(of.TableTab, "table_tab", {**values, "highlight": highlight})
    _check_highlight("ui.table_tab", made)
    return made


def code_block(
    code: str | None = None,
    language: str | None = None,
    *,
    title: str | None = None,
    tabs: Iterable[Part] | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return code, or tabs of code that were created with `ui.code_tab`."""
    props = {"title": title, "language": language, "code": code, "tabs": tabs}
    return _built("code-block", props, id, fallback)


def code_tab(name: str, code: str, language: str | None = None) -> JsonObject:
    """Return one of several files in the same place."""
    return _part(of.CodeTab, "code_tab", {"name": name, "code": code, "language": language})


def diff(
    before: str,
    after: str,
    *,
    title: str | None = None,
    before_label: str | None = None,
    after_label: str | None = None,
    language: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return two texts; the renderer computes and shows their differences."""
    props = {
        "title": title,
        "before": before,
        "after": after,
        "before_label": before_label,
        "after_label": after_label,
        "language": language,
    }
    return _built("diff", props, id, fallback)


def key_value(
    items: Mapping[str, Cell] | Iterable[Part | tuple[str, Cell]],
    *,
    title: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return values with their names. The `items` are a mapping, pairs, or `ui.item`s."""
    pairs = items.items() if isinstance(items, Mapping) else items
    if not isinstance(pairs, Iterable):
        raise InvalidComponent(
            f"ui.key_value: items: expected a mapping or pairs, got {kind_of(items)}"
        )
    listed = [
        dict(pair) if isinstance(pair, Mapping) else _pair(pair, number)
        for number, pair in enumerate(pairs)
    ]
    return _built("key-value", {"title": title, "items": listed}, id, fallback)


def item(key: str, value: Cell, *, style: ItemStyle | None = None) -> JsonObject:
    """Return one line of a key-value list."""
    return _part(of.Item, "item", {"key": key, "value": value, "style": style}, "value")


def progress(
    steps: Iterable[Part],
    *,
    title: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return steps with their status. Create the `steps` with `ui.step`."""
    return _built("progress", {"title": title, "steps": steps}, id, fallback)


def step(name: str, status: StepStatus, detail: str | None = None) -> JsonObject:
    """Return one step of a progress."""
    return _part(of.Step, "step", {"name": name, "status": status, "detail": detail})


def chart(
    type: ChartType,
    data: Data | None = None,
    *,
    x: str | None = None,
    y: str | Iterable[str] | None = None,
    by: str | None = None,
    labels: Iterable[Any] | None = None,
    datasets: Iterable[Part] | None = None,
    title: str | None = None,
    height: float | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    unit: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return data as a chart: `ui.chart("bar", df, x="month", y="sales")`.

    Or pass `labels` and series that were created with `ui.dataset`. The labels of a scatter chart
    are its x values.

    Args:
        type: `line`, `bar`, `pie`, `scatter` or `area`.
        data: Data, see `Data`; or a list of numbers.
        x: Column of the labels. Default: the index of a data frame; otherwise the first column that
            has no numbers (in a scatter chart the first column); otherwise the row numbers.
        y: Column of the values, or several columns. Default: all other columns with numbers.
        by: Column that splits the rows: each of its values gets its own series.
        labels: Labels for `datasets`: strings, numbers or dates.
        datasets: Series with one value for each label.
        title: Title above the chart.
        height: Height in CSS pixels, up to 10,000.
        x_title: Title of the labels, such as "Month". Default: the name of the column.
        y_title: Title of the values, such as "Sales". Default: the name of the column.
        unit: Unit of the values, such as "%", "USD" or "°C"; shown after each value.
        id: Id for patches.
        fallback: Component for renderers without charts. Default: a table.

    Raises:
        InvalidComponent: A column does not exist or has no numbers; a series has more or fewer
            values than there are labels; or another value is wrong.
    """
    props: dict[str, Any] = {"labels": _listed(labels), "datasets": _listed(datasets)}
    if data is not None:
        if labels is not None or datasets is not None:
            raise InvalidComponent("ui.chart: give data, or labels and datasets, not both")
        y_names: Any = [y] if isinstance(y, str) or not isinstance(y, Iterable) else list(y)
        props = series_of(data, type, x, None if y is None else y_names, by)
        title = marked(title, props.pop("mark"))
    elif x is not None or y is not None or by is not None:
        raise InvalidComponent("ui.chart: x, y and by are columns of data; give the data too")
    elif labels is None or datasets is None:
        raise InvalidComponent("ui.chart: give data, or labels=… and datasets=[ui.dataset(…)]")
    else:
        _check_lengths(props["labels"], props["datasets"])
    options = {"type": type, "title": title, "height": height, "unit": unit}
    titles = {"x_title": x_title, "y_title": y_title}
    props |= options | {name: one for name, one in titles.items() if one is not None}
    return _built("chart", props, id, fallback)


def dataset(label: str, data: Iterable[Any], *, color: str | None = None) -> JsonObject:
    """Return one series of a chart; `None` and NaN are gaps."""
    listed = _listed(data)
    if isinstance(listed, list):
        listed = [float(value) if isinstance(value, Decimal) else value for value in listed]
    return _part(of.Dataset, "dataset", {"label": label, "data": listed, "color": color})


def image(
    src: str | Picture,
    alt: str = "",
    *,
    width: float | None = None,
    height: float | None = None,
    caption: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return an image: `ui.image(figure, "Sales by month")`, or the image at an address.

    This does not close a figure of matplotlib; close it yourself to free its memory.

    Args:
        src: A figure, a picture or its bytes, see `Picture`; or an address: http, https,
            data:image/(png|jpeg|gif|webp);base64, or a path below /_api/blobs/.
        alt: Description of the image in words. Default for a figure: its title.
        width: Width in CSS pixels.
        height: Height in CSS pixels.
        caption: Caption below the image.
        id: Id for patches.
        fallback: Component for renderers without images.
    """
    if not isinstance(src, str) and picture_kind(src):
        src, alt = source_of(src), alt or description_of(src)
    elif not alt:
        raise InvalidComponent("ui.image: alt: say in words what the image shows")
    props = {"src": src, "alt": alt, "width": width, "height": height, "caption": caption}
    return _built("image", props, id, fallback)


def product_cards(
    cards: Iterable[Part],
    *,
    title: str | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return cards to compare side by side. Create the `cards` with `ui.card`."""
    return _built("product-cards", {"title": title, "cards": cards}, id, fallback)


def card(
    name: str,
    *,
    price: str | float | Decimal | None = None,
    image: str | None = None,
    brand: str | None = None,
    description: str | None = None,
    badge: str | None = None,
    url: str | None = None,
) -> JsonObject:
    """Return one card."""
    values = {
        "name": name,
        "price": price,
        "image": image,
        "brand": brand,
        "description": description,
        "badge": badge,
        "url": url,
    }
    return _part(of.Card, "card", values)


# -- input -----------------------------------------------------------------------------------------


def form(
    fields: Iterable[Part],
    *,
    title: str | None = None,
    description: str | None = None,
    submit_label: str | None = None,
    submit_action: str | None = None,
    can_decline: bool | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Asks[JsonObject]:
    """Return a form. Create its `fields` with `ui.field`; `turn.ask` returns a dict of values."""
    props = {
        "title": title,
        "description": description,
        "fields": fields,
        "submit_label": submit_label,
        "submit_action": submit_action,
        "can_decline": can_decline,
    }
    made = _built("form", props, id, fallback)
    if not made.props["fields"]:
        raise InvalidComponent("ui.form: fields: none; ui.field(…) makes one")
    _refuse_empty("ui.form", made.props, "submit_label")
    return cast("Asks[JsonObject]", made)


def field(
    name: str,
    *,
    label: str | None = None,
    field_type: of.FieldType | None = None,
    value: Cell = None,
    options: Iterable[str | Part] | None = None,
    required: bool | None = None,
    placeholder: str | None = None,
    validation: Part | None = None,
) -> JsonObject:
    """Return one field of a form.

    Args:
        name: Key of the value in the answer.
        label: Label for the user. Default: the name.
        field_type: `text`, `textarea`, `select`, `checkbox`, `number`, `date`, `email`,
            `password` or `file`. Default: `select` for a field with options, otherwise `text`.
        value: Initial value.
        options: Options of a select: strings, or mappings with `label` and `value`.
        required: Whether the user must fill in the field, or tick the checkbox.
        placeholder: Example of a value.
        validation: `min`, `max` (for numbers and dates), `min_length`, `max_length`, `message`.
    """
    values = {
        "name": name,
        "label": label,
        "field_type": field_type or (None if options is None else "select"),
        "value": value,
        "options": options,
        "required": required,
        "placeholder": placeholder,
        "validation": validation,
    }
    made = _part(of.Field, "field", values)
    _refuse_empty("ui.field", made, "label")
    option_values = _check_options("ui.field", made.get("options", ()))
    if option_values and made.get("value") not in (None, "", *option_values):
        raise InvalidComponent(f"ui.field: value: {made['value']!r:.60} is none of the options")
    for place, number in numbers_of("form", {"fields": [made]}, ""):
        if (found := rounded_at(number, place.removeprefix(".fields[0]."))) is not None:
            raise InvalidComponent(f"ui.field: {found}: {TOO_LARGE}")
    _check_value(made.get("field_type", "text"), made.get("value"))
    _check_rules(made.get("value"), made.get("validation") or {})
    return made


def confirm(
    title: str,
    *,
    message: str | None = None,
    confirm_label: str | None = None,
    deny_label: str | None = None,
    destructive: bool | None = None,
    can_decline: bool | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Asks[bool]:
    """Return a yes-or-no question; `turn.ask` returns a bool."""
    props = {
        "title": title,
        "message": message,
        "confirm_label": confirm_label,
        "deny_label": deny_label,
        "destructive": destructive,
        "can_decline": can_decline,
    }
    made = _built("confirm", props, id, fallback)
    _refuse_empty("ui.confirm", made.props, "title", "confirm_label", "deny_label")
    return cast("Asks[bool]", made)


@overload
def choices(
    options: Iterable[str | Part],
    *,
    title: str | None = ...,
    style: ChoiceStyle | None = ...,
    multi_select: Literal[True],
    can_decline: bool | None = ...,
    id: str = ...,
    fallback: Component | None = ...,
) -> Asks[list[of.Scalar]]: ...


@overload
def choices(
    options: Iterable[str | Part],
    *,
    title: str | None = ...,
    style: ChoiceStyle | None = ...,
    multi_select: Literal[False] | None = ...,
    can_decline: bool | None = ...,
    id: str = ...,
    fallback: Component | None = ...,
) -> Asks[of.Scalar]: ...


@overload
def choices(
    options: Iterable[str | Part],
    *,
    title: str | None = ...,
    style: ChoiceStyle | None = ...,
    multi_select: bool | None,
    can_decline: bool | None = ...,
    id: str = ...,
    fallback: Component | None = ...,
) -> Component: ...


def choices(
    options: Iterable[str | Part],
    *,
    title: str | None = None,
    style: ChoiceStyle | None = None,
    multi_select: bool | None = None,
    can_decline: bool | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return options (strings or `ui.option`s) to select from.

    With `multi_select`, the user can select several, and `turn.ask` returns a list of values.
    """
    props = {
        "title": title,
        "options": options,
        "style": style,
        "multi_select": multi_select,
        "can_decline": can_decline,
    }
    made = _built("choices", props, id, fallback)
    options = made.props["options"]
    if not options:
        raise InvalidComponent("ui.choices: options: none; give strings, or ui.option(…)")
    _check_options("ui.choices", options)
    if all(isinstance(one, Mapping) and one.get("disabled") for one in options):
        raise InvalidComponent(
            "ui.choices: options: all are disabled, so nobody could answer; leave the question out"
        )
    return made


def option(
    label: str,
    value: str | float | None = None,
    *,
    description: str | None = None,
    icon: str | None = None,
    disabled: bool | None = None,
) -> JsonObject:
    """Return one option of `choices`. Without `value`, the label is also the value."""
    values = {
        "label": label,
        "value": value,
        "description": description,
        "icon": icon,
        "disabled": disabled,
    }
    made = _part(of.Option, "option", values)
    _refuse_empty("ui.option", made, "label")
    return made


def text_input(
    label: str | None = None,
    *,
    placeholder: str | None = None,
    max_length: int | None = None,
    multiline: bool | None = None,
    submit_label: str | None = None,
    can_decline: bool | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Asks[str]:
    """Return an input for a text; `turn.ask` returns a `str`. `max_length` is in characters."""
    props = {
        "label": label,
        "placeholder": placeholder,
        "max_length": max_length,
        "multiline": multiline,
        "submit_label": submit_label,
        "can_decline": can_decline,
    }
    made = _built("text-input", props, id, fallback)
    _refuse_empty("ui.text_input", made.props, "label", "submit_label")
    if made.props.get("max_length") == 0:
        raise InvalidComponent("ui.text_input: max_length: 0, so nobody could answer")
    return cast("Asks[str]", made)


# -- layout ----------------------------------------------------------------------------------------


def group(
    children: Iterable[Component],
    *,
    direction: Direction | None = None,
    gap: Gap | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return components in a column, or with `direction="horizontal"` in a row."""
    props = {"direction": direction, "gap": gap, "children": children}
    return _built("group", props, id, fallback)


def tabs(
    tabs: Iterable[Part],
    *,
    active_tab: int | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return components in tabs. Create the `tabs` with `ui.tab`; `active_tab` counts from 0."""
    made = _built("tabs", {"tabs": tabs, "active_tab": active_tab}, id, fallback)
    count, active = len(made.props["tabs"]), made.props.get("active_tab", 0)
    if count and active >= count:
        raise InvalidComponent(f"ui.tabs: active_tab: {active}, but there are {count}, from 0")
    return made


def tab(label: str, component: Component, *, icon: str | None = None) -> JsonObject:
    """Return one tab with its component."""
    made = _part(Tab, "tab", {"label": label, "icon": icon, "component": component})
    _refuse_empty("ui.tab", made, "label")
    return made


def split(
    left: Component,
    right: Component,
    *,
    ratio: str | None = None,
    direction: Direction | None = None,
    id: str = "",
    fallback: Component | None = None,
) -> Component:
    """Return two components side by side, or one above the other; `ratio` is for example `1:2`."""
    props = {"direction": direction, "ratio": ratio, "left": left, "right": right}
    return _built("split", props, id, fallback)


def custom(type: str, props: Part, *, fallback: Component, id: str = "") -> Component:
    """Return a component of your own type. Its props can be any plain JSON."""
    if not isinstance(props, Mapping):
        raise InvalidComponent(f"ui.custom: props: expected object, got {kind_of(props)}")
    return _built(type, props, id, fallback, "ui.custom")


def sources(
    sources: Iterable[Part], *, id: str = "", fallback: Component | None = None
) -> Component:
    """Return the sources of an answer. A text refers to the second source with `[2]`.

    Create the sources with `ui.source`.
    """
    listed = _listed(sources)
    if not isinstance(listed, list):
        raise InvalidComponent(f"ui.sources: expected sources, got {kind_of(listed)}")
    for number, given in enumerate(listed):
        if not fits(given, of.Source):
            raise InvalidComponent(explain(given, of.Source, f"ui.sources: sources[{number}]"))
    lines = "\n".join(f"{number}. {_cited(one)}" for number, one in enumerate(listed, 1))
    instead = fallback if fallback is not None else markdown(lines)
    return custom(of.SOURCES, {"sources": listed}, fallback=instead, id=id)


def author(name: str, *, id: str = "") -> Component:
    """Return a component with the name of the author of what follows; see `turn.say(author=…)`."""
    named = to_plain(name, "ui.author: name")
    if not isinstance(named, str) or not named.strip():
        raise InvalidComponent("ui.author: name: expected the name of who speaks")
    made = of.author_of(well_formed(named))
    return custom(of.AUTHOR, made.props, fallback=cast("Component", made.fallback), id=id)


def source(title: str, url: str | None = None, excerpt: str | None = None) -> JsonObject:
    """Return one source."""
    return _part(of.Source, "source", {"title": title, "url": url, "excerpt": excerpt})


_PART = re.compile(r"(\w+)\[\d+\](?:: expected object|\.\w+: unknown)")
"""An error about a part of a component that is not an object or has an unknown key."""

_MAKERS = {
    ("status-card", "sections"): "ui.section(…)",
    ("table", "tabs"): "ui.table_tab(…)",
    ("code-block", "tabs"): "ui.code_tab(…)",
    ("progress", "steps"): "ui.step(…)",
    ("chart", "datasets"): "ui.dataset(…)",
    ("product-cards", "cards"): "ui.card(…)",
    ("form", "fields"): "ui.field(…)",
    ("choices", "options"): "ui.option(…)",
    ("group", "children"): "ui.text(…)",
    ("tabs", "tabs"): "ui.tab(…)",
    ("key-value", "items"): "ui.item(…)",
}
"""Builder for the parts of a prop, by component type and prop."""


# -- shared by the builders ------------------------------------------------------------------------


def _built(
    type_name: str,
    props: Mapping[str, Any],
    id: str,
    fallback: Component | None,
    where: str = "",
) -> Component:
    """Convert the props to plain JSON, check them, and return the component.

    Args:
        type_name: Type of the component.
        props: Arguments of the builder; `None` means absent.
        id: Id of the component.
        fallback: Fallback of the component.
        where: Name of the builder in error messages. Default: the name for `type_name`.

    Raises:
        InvalidComponent: A value is wrong; the message names it, and the builder for a part.
    """
    where = where or f"ui.{type_name.replace('-', '_')}"
    if fallback is not None:
        if not isinstance(fallback, Component):
            raise InvalidComponent(f"{where}: fallback is a component, such as ui.text(…)")
        fallback = msgspec.convert(component_to_plain(fallback, f"{where}.fallback"), Component)
    id, type_name = to_plain(id, f"{where}: id"), to_plain(type_name, f"{where}: type")
    component = Component(id, type_name, _plain(props, where), fallback=fallback)
    try:
        made = check_component(component, where, empty_ids=True, plain=True)
        _make_exact(made)
        return made
    except LocalError as error:
        path = error.message.removeprefix(f"{where}.props").removeprefix(where).lstrip(".: ")
        part = _PART.match(path)
        maker = _MAKERS.get((type_name, part[1])) if part else None
        hint = f"; {maker} makes one" if maker else ""
        raise type(error)(f"{where}: {path}{hint}", detail=error.detail) from None


def _make_exact(made: Component) -> None:
    """Replace integers that renderers would round by texts, in cells that are only displayed."""
    if made.type == "table":
        for sheet in (made.props, *made.props.get("tabs", ())):
            sheet["rows"] = [[exact_cell(cell) for cell in row] for row in sheet["rows"]]
    elif made.type == "key-value":
        for one in made.props["items"]:
            one["value"] = exact_cell(one.get("value"))


def _part(
    kind: type[msgspec.Struct], name: str, values: Mapping[str, Any], keep: str = ""
) -> JsonObject:
    where = f"ui.{name}"
    plain = _plain(values, where, keep)
    if not fits(plain, kind):
        raise InvalidComponent(f"{where}: {explain(plain, kind, '').lstrip('.: ')}")
    return plain


def _plain(values: Mapping[str, Any], where: str, keep: str = "") -> JsonObject:
    """Return arguments as plain JSON, without those that are `None`, except `keep`."""
    return {
        name: to_plain(value, f"{where}: {name}")
        for name, value in values.items()
        if value is not None or name == keep
    }


def _listed(values: Any) -> Any:
    """Return an iterable as a list; leave strings and other values to the later checks."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else values


def _table_of(
    where: str, headers: Any, rows: Any, limit: int, index: bool | None
) -> tuple[Any, Any, str]:
    """Return headers, rows of cells, and a mark for the title if not all rows are included."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidComponent(
            f"{where}: limit: expected a number of rows from 1, got {kind_of(limit)}"
        )
    headers, rows = _as_data(headers), _as_data(rows)
    _refuse_frames(headers, rows)
    try:
        if _is_data(headers):
            data, wanted = columns_of(headers, rows=limit, index=index), None
            if not isinstance(rows, list) or rows:
                raise InvalidComponent(f"{where}: the headers are data, so give no rows")
        elif _is_data(rows):
            data, wanted = columns_of(rows, rows=limit, index=index), headers
        else:
            return headers, _cells(where, headers, rows), ""
    except TypeError as error:
        raise InvalidComponent(f"{where}: {error}") from None
    if data is None:
        raise InvalidComponent(f"{where}: a mapping is data if its values are lists of one length")
    if not isinstance(wanted, list):
        return data.names, data.rows, data.mark
    if kind_name(rows) == "numpy.ndarray" and not rows.dtype.names:
        return wanted, data.rows, data.mark
    return wanted, _selected(where, data, wanted), data.mark


def _as_data(given: Any) -> Any:
    """Return data unchanged, and another iterable as a list."""
    return given if is_tabular(given) or _is_frame(given) else _listed(given)


def _is_frame(given: Any) -> bool:
    """Return whether iterating over an object yields the names of its columns, not its rows."""
    return isinstance(given, Mapping) or (hasattr(given, "columns") and hasattr(given, "to_dict"))


def _refuse_frames(*given: Any) -> None:
    """Raise `InvalidComponent` for a data frame of a library that is not supported."""
    for values in given:
        if not is_tabular(values) and _is_frame(values) and not isinstance(values, Mapping):
            kind = type(values).__name__
            example = "ui.table(df.columns, df.to_numpy().tolist())"
            raise InvalidComponent(f"ui.table: give headers and rows, not a {kind}; {example}")


def _is_data(given: Any) -> bool:
    return is_tabular(given) or isinstance(given, Mapping) or _is_records(given)


def _is_records(rows: Any) -> bool:
    """Return whether all rows are objects with named values, unlike a tuple of cells."""
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(not isinstance(one, Component) and record_of(one) is not None for one in rows)
    )


def _cells(where: str, headers: Any, rows: Any) -> Any:
    """Replace rows that are mappings by lists of cells, in the order of the headers."""
    if not isinstance(rows, list) or not isinstance(headers, list):
        return rows
    for number, row in enumerate(rows if headers else ()):
        if isinstance(row, list | tuple) and len(row) != len(headers):
            raise InvalidComponent(
                f"{where}: rows[{number}]: headers: {len(headers)}, cells: {len(row)}; give one "
                "cell for each header, None where there is none"
            )
    return [
        [row.get(name) for name in headers] if isinstance(row, Mapping) else row for row in rows
    ]


def _selected(where: str, data: Columns, wanted: list[Any]) -> list[list[Any]]:
    """Return the rows with only the columns that the headers name, in that order."""
    places = [data.place(name, f"{where}: headers") for name in wanted]
    return [[row[place] for place in places] for row in data.rows]


def _check_highlight(where: str, props: JsonObject) -> None:
    """Raise `InvalidComponent` if a highlighted row does not exist."""
    count = len(props["rows"])
    beyond = next((one for one in props.get("highlight", ()) if one >= count), None)
    if beyond is not None:
        raise InvalidComponent(f"{where}: highlight: row {beyond}, but there are {count}, from 0")


def _check_value(field_type: str, value: Any, name: str = "value") -> None:
    """Raise `InvalidComponent` for an initial value that a renderer would refuse to submit."""
    if value in (None, ""):
        return
    expected = ""
    if field_type == "checkbox" and not isinstance(value, bool):
        expected = "True or False"
    elif field_type == "number":
        try:
            is_large = abs(float(value)) > MAX_EXACT and "e" not in str(value).lower()
        except (TypeError, ValueError):
            expected = "a number"
        else:
            expected = f"one up to {MAX_EXACT}" if is_large else ""
    elif field_type == "date":
        try:
            date.fromisoformat(value)
        except (TypeError, ValueError):
            expected = "a date such as 2026-05-31"
    if expected:
        problem = f"of a {field_type} field, expected {expected}, got {value!r:.60}"
        raise InvalidComponent(f"ui.field: {name}: {problem}")


def _check_rules(value: Any, rules: JsonObject) -> None:
    """Raise `InvalidComponent` if no value can satisfy the rules, or the initial one does not."""
    for name in ("min", "max"):
        if isinstance(rules.get(name), str):
            _check_value("date", rules[name], f"validation.{name}")
    for low, high in (("min", "max"), ("min_length", "max_length")):
        least, most = rules.get(low), rules.get(high)
        if least is not None and most is not None and least > most:
            problem = f"{low} {least} is above {high} {most}, so nobody could answer"
            raise InvalidComponent(f"ui.field: validation: {problem}")
        if value in (None, "") or (least is None and most is None):
            continue
        if high == "max_length":
            size: Any = len(str(value))
        else:
            size = value if isinstance(least or most, str) else float(value)
        if (least is not None and size < least) or (most is not None and size > most):
            rule = f"{low} {least}" if least is not None and size < least else f"{high} {most}"
            raise InvalidComponent(f"ui.field: value: {value!r:.60} breaks the rule {rule}")


def _check_options(where: str, options: Iterable[Any]) -> list[Any]:
    """Return the values of options.

    Raises:
        InvalidComponent: An option has an empty label, or two options have the same value.
    """
    for one in options:
        _refuse_empty(
            f"{where}: options", one if isinstance(one, Mapping) else {"label": one}, "label"
        )
    values = [_value_of(one) for one in options]
    if (repeated := next((one for one in values if values.count(one) > 1), None)) is not None:
        raise InvalidComponent(f"{where}: options: two have the value {repeated!r:.60}")
    return values


def _refuse_empty(where: str, props: Mapping[str, Any], *names: str) -> None:
    """Raise `InvalidComponent` if a question, a choice or a button has an empty text."""
    for name in names:
        text = props.get(name)
        if isinstance(text, str) and not text.strip():
            raise InvalidComponent(f"{where}: {name}: empty; write what the user reads")


def _value_of(option: Any) -> Any:
    """Return the answer for an option of a field or of choices."""
    if not isinstance(option, Mapping):
        return option
    value = option.get("value")
    return option.get("label") if value is None else value


def _check_lengths(labels: Any, datasets: Any) -> None:
    """Raise `InvalidComponent` unless each series has one value for each label.

    Otherwise renderers would have to guess which label a value belongs to.
    """
    if not isinstance(labels, list) or not isinstance(datasets, list):
        return
    for number, one in enumerate(datasets):
        values = one.get("data") if isinstance(one, Mapping) else None
        if isinstance(values, list) and len(values) != len(labels):
            raise InvalidComponent(
                f"ui.chart: datasets[{number}]: labels: {len(labels)}, values: {len(values)}; "
                "give one value for each label, None where there is none"
            )


def _pair(pair: Any, number: int) -> JsonObject:
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return {"key": pair[0], "value": pair[1]}
    raise InvalidComponent(f"ui.key_value: items[{number}]: expected (key, value) or ui.item(…)")


def _cited(source: JsonObject) -> str:
    """Return a source as a line of markdown."""
    title, url, excerpt = _escaped(source["title"]), source.get("url"), source.get("excerpt")
    link = f"[{title}](<{url}>)" if url else title
    return f"{link}: {_escaped(excerpt)}" if excerpt else link


def _escaped(text: str) -> str:
    """Return a text on one line, with its Markdown characters escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
