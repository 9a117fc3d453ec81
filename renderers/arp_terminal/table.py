"""`table`, and what other components show as one."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from arp.protocol.catalog import asks
from arp.protocol.json_value import Json, JsonObject
from arp_terminal.blocks import stack
from arp_terminal.grid import Grid
from arp_terminal.options import Options
from arp_terminal.palette import DIM, HEADING
from arp_terminal.props import items, label, line, number, objects
from arp_terminal.questions import row_selection

MAX_COLUMNS = 200
"""Columns that are drawn; more are counted."""


def table(props: JsonObject, options: Options) -> RenderableType:
    """Draw `table`: aligned columns, numbers to the right, marked rows, tabs under their names.

    Rows that can be selected have their numbers before them.
    """
    title = line(props.get("title"))
    tabs = objects(props.get("tabs"))
    sheets = [stack([label(tab.get("name"), HEADING), _sheet(tab, options)]) for tab in tabs]
    if asks("table", props):
        sheets.insert(0, _sheet(_numbered(props), options))
        return row_selection(props, options, stack(sheets, gap=1))
    if props.get("rows") or not tabs:
        sheets.insert(0, _sheet(props, options))
    return stack([label(title, HEADING) if title else None, stack(sheets, gap=1)])


def _numbered(props: JsonObject) -> JsonObject:
    rows = [[place, *items(row)] for place, row in enumerate(items(props.get("rows")), 1)]
    return {**props, "headers": ["#", *items(props.get("headers"))], "rows": rows}


def _sheet(props: JsonObject, options: Options) -> RenderableType:
    headers = items(props.get("headers"))[:MAX_COLUMNS]
    rows = [items(row) for row in items(props.get("rows"))]
    shown = rows[: options.max_rows]
    columns = min(MAX_COLUMNS, max([len(headers), *map(len, shown)], default=0))
    marked = frozenset(place for place in items(props.get("highlight")) if isinstance(place, int))
    right = frozenset(place for place in range(columns) if _is_numeric(shown, place))
    cells = [[_cell(value) for value in row[:MAX_COLUMNS]] for row in shown]
    grid = Grid([label(header) for header in headers], cells, options, right=right, marked=marked)
    return stack([grid, _more(len(rows), len(shown), options)])


def _more(rows: int, shown: int, options: Options) -> Text | None:
    if not rows:
        return Text("no rows", style=DIM)
    if rows == shown:
        return None
    sign = "…" if options.unicode else "..."
    return Text(f"{sign} {rows - shown:,} more rows", style=DIM)


def _is_numeric(rows: list[list[Json]], place: int) -> bool:
    """Return whether a column holds numbers and nothing else but gaps."""
    values = [row[place] for row in rows if place < len(row) and row[place] is not None]
    return bool(values) and all(number(value) is not None for value in values)


def _cell(value: Json) -> Text:
    return Text("–", style=DIM) if value is None else label(value)
