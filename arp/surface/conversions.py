"""Conversion of props into those of a simpler type: a table, code, or a table with fewer rows.

All functions accept and return props that fit the catalog, and change nothing in place. `as_text`
has the conversions into text.
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
    """Return a chart as a table: one row per label, one column per dataset."""
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
    """Return product cards as a table: one row per card, one column per property that is used.

    Images with a `data:` address are left out, because they would fill a cell with base64.
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
    """Return a table with at most `most` rows, plus one row with the number of hidden rows.

    If rows can be selected, the title has that number instead: an additional row could be selected
    too, and its number would be that of a hidden row.

    Tables in tabs are cut separately. A table that fits is returned unchanged.
    """
    cut = _cut(props, most)
    tabs: list[Json] = [_cut(tab, most) for tab in props.get("tabs", ())]
    if cut is props and all(map(_same, tabs, props.get("tabs", ()))):
        return props
    return {**cut, "tabs": tabs} if tabs else cut


def not_shown(count: int) -> str:
    """Return the text for hidden rows, at the end of a cut table."""
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


def _header(chart: ChartProps, index: int) -> str:
    """Return the header of a dataset: axis title, label and unit, such as `Sales: 2025 (USD)`.

    Repeated parts are left out.
    """
    values, label = chart.y_title or "", chart.datasets[index].label
    if not label and not (values and len(chart.datasets) == 1):
        label = f"#{index + 1}"
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
"""Largest product of old and new line counts, without the equal lines at both ends: a comparison
may need as many steps. Above it, everything between the ends is shown as replaced."""

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
    """Return the lines of a unified diff with headers, or a note if nothing differs."""
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
    """Return a single hunk that replaces everything between the equal lines at both ends."""
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
"""Conversions of props into the next type of the fallback chain, by type; `as_text` makes text."""
