"""What a component becomes where its own type is not known: a table, code, or a table that is cut.

Every function takes and gives props that fit the catalog; nothing is changed in place. What only
text can show is in `as_text`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from arp.protocol.catalog import asks
from arp.protocol.components import ChartProps, DiffProps, ProductCardsProps
from arp.protocol.json_value import Json, JsonObject

_CARD_COLUMNS = ("name", "price", "brand", "description", "badge", "url", "image")


def chart_as_table(props: JsonObject) -> JsonObject:
    """Return the numbers of a chart: a row for each label, a column for each dataset."""
    chart = msgspec.convert(props, ChartProps)
    count = max([len(chart.labels), *(len(dataset.data) for dataset in chart.datasets)])
    rows: list[Json] = [
        [_at(chart.labels, n, ""), *(_at(dataset.data, n, None) for dataset in chart.datasets)]
        for n in range(count)
    ]
    first = chart.x_title or ("x" if chart.type == "scatter" else "")
    headers = [first, *(_header(chart, n) for n in range(len(chart.datasets)))]
    return _titled(chart.title, {"headers": headers, "rows": rows})


def cards_as_table(props: JsonObject) -> JsonObject:
    """Return product cards a row each, with a column for everything that any of them says.

    An image inside the data is left out: it would fill a cell with base64.
    """
    shown = msgspec.convert(props, ProductCardsProps)
    cards = [
        {
            name: value
            for name in _CARD_COLUMNS
            if (value := getattr(card, name)) is not None
            and not (name == "image" and value.startswith("data:"))
        }
        for card in shown.cards
    ]
    columns = [name for name in _CARD_COLUMNS if any(name in card for card in cards)]
    rows: list[Json] = [[card.get(name) for name in columns] for card in cards]
    headers = ["Link" if name == "url" else name.capitalize() for name in columns]
    return _titled(shown.title, {"headers": headers, "rows": rows})


def cut_table(props: JsonObject, most: int) -> JsonObject:
    """Return a table with at most `most` rows, and one more that says how many are not shown.

    Where rows can be selected the title says it: one more row could be selected too, and would
    stand for one that is not shown.

    Tables in tabs are cut each by itself. A table that fits is given as it is.
    """
    cut = _cut(props, most)
    tabs: list[Json] = [_cut(tab, most) for tab in props.get("tabs", ())]
    if cut is props and all(map(_same, tabs, props.get("tabs", ()))):
        return props
    return {**cut, "tabs": tabs} if tabs else cut


def not_shown(count: int) -> str:
    """Say that rows are missing: the mark at the end of a cut table."""
    return f"… {count} more {'row' if count == 1 else 'rows'} not shown"


def _cut(table: JsonObject, most: int) -> JsonObject:
    rows = table["rows"]
    if len(rows) <= most:
        return table
    left_out = not_shown(len(rows) - most)
    if asks("table", table):
        title = table.get("title")
        titled = f"{title} ({left_out})" if title else left_out
        cut = {**table, "title": titled, "rows": rows[:most]}
    else:
        mark = [left_out, *[None] * (len(table["headers"]) - 1)]
        cut = {**table, "rows": [*rows[:most], mark]}
    if "highlight" in table:
        cut["highlight"] = [row for row in table["highlight"] if row < most]
    return cut


def _header(chart: ChartProps, place: int) -> str:
    """Name a column by what its values are, which dataset it is, and the unit: `Sales: 2025 (USD)`.

    What another part says already is not said again.
    """
    values, label = chart.y_title or "", chart.datasets[place].label
    if not label and not (values and len(chart.datasets) == 1):
        label = f"#{place + 1}"
    named = ": ".join(dict.fromkeys(part for part in (values, label) if part))
    unit = f"({chart.unit})" if chart.unit else ""
    return named if named.endswith(unit) else f"{named} {unit}"


def _at(values: tuple[Json, ...], index: int, missing: Json) -> Json:
    return values[index] if index < len(values) else missing


def _titled(title: str | None, props: JsonObject) -> JsonObject:
    return props if title is None else {"title": title, **props}


def _same(new: Json, old: Json) -> bool:
    return new is old


# -- a diff ----------------------------------------------------------------------------------------

CONTEXT_LINES = 3

MAX_COMPARED = 1_000_000
"""Most lines before × lines after, those that are equal at both ends not counted: comparing may
take that many steps. Beyond it, all that is between the ends is shown as replaced."""

NO_NEWLINE = "\\ No newline at end of file"


def diff_as_code(props: JsonObject) -> JsonObject:
    """Return the props of a `code-block` in the language `diff`."""
    diff = msgspec.convert(props, DiffProps)
    code = "\n".join(
        unified(diff.before, diff.after, diff.before_label or "before", diff.after_label or "after")
    )
    block: JsonObject = {"language": "diff", "code": code}
    return block if diff.title is None else {"title": diff.title, **block}


def unified(before: str, after: str, before_label: str, after_label: str) -> list[str]:
    """Return the lines of a unified diff, headers included; say so if nothing differs."""
    old, new = _lines(before), _lines(after)
    if old and new and before.endswith("\n") != after.endswith("\n"):
        unended = new if before.endswith("\n") else old
        unended[-1] += f"\n{NO_NEWLINE}"
    if old == new:
        return [f"--- {before_label}", f"+++ {after_label}", "(no difference)"]
    head = _equal_lines(old, new)
    tail = _equal_lines(old[head:][::-1], new[head:][::-1])
    if (len(old) - head - tail) * (len(new) - head - tail) > MAX_COMPARED:
        hunk = _replaced(old, new, head, tail)
        return [f"--- {before_label}", f"+++ {after_label}", *hunk]
    return list(
        difflib.unified_diff(old, new, before_label, after_label, n=CONTEXT_LINES, lineterm="")
    )


def _replaced(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[str]:
    """Return the one hunk that replaces all between the equal lines at both ends."""
    start = max(0, head - CONTEXT_LINES)
    context = min(tail, CONTEXT_LINES)
    old_count, new_count = (len(lines) - tail + context - start for lines in (old, new))
    return [
        f"@@ -{start + 1},{old_count} +{start + 1},{new_count} @@",
        *(f" {line}" for line in old[start:head]),
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail :][:context]),
    ]


def _equal_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Count the lines that are equal at the beginning of both."""
    return next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


CONVERSIONS: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "chart": chart_as_table,
    "product-cards": cards_as_table,
    "diff": diff_as_code,
}
"""How props become those of the type that the catalog's chain names next; text has no props."""
