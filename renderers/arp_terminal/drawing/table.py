"""`table`, and the grid of cells that tables in markdown use as well.

A grid is drawn as lines of text. `rich.table.Table` measures each cell several times and took 19 s
for 10,000 rows; this grid takes less than 0.1 s per 100 rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from arp.protocol.catalog import asks
from arp.protocol.exact_integers import is_large_integer
from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing.blocks import cut, cut_apart, stack
from arp_terminal.drawing.palette import ACCENT, DIM, HEADING, TITLE
from arp_terminal.drawing.props import items, label, line, number, objects
from arp_terminal.drawing.questions import row_selection
from arp_terminal.options import Options

GAP = 2
"""Cells between two columns."""

MIN_COLUMN = 5
"""Minimum width of a column in cells; if there is no room for it, rows are shown as records."""

READABLE = 12
"""Width in cells that keeps a column readable; below it, a wide table is cut into blocks."""

MIN_BLOCKED = 6
"""Minimum number of columns of a table that is cut into blocks; smaller tables get narrower
columns, or become records."""

MIN_ROWS = 5
"""Minimum number of rows that are shown, even if each needs many lines."""

Row = Sequence[Text]

_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+(\.?[0-9]*)")
"""A number without an exponent; the group begins at its decimal point."""


class Grid:
    """Headers above rows, in aligned columns; records if the columns do not fit."""

    def __init__(
        self,
        headers: Row,
        rows: Sequence[Row],
        options: Options,
        *,
        right: frozenset[int] = frozenset(),
        marked: frozenset[int] = frozenset(),
        total: int = 0,
    ) -> None:
        """Create a grid.

        Args:
            headers: Headers of the columns.
            rows: Rows to show; some may be left out.
            options: How to draw.
            right: Indexes of columns of numbers, which are aligned to the right.
            marked: Indexes of marked rows.
            total: Number of rows of the table, if it has more than `rows`.
        """
        columns = max([len(headers), *(len(row) for row in rows)], default=0)
        self._headers = _filled(headers, columns)
        self._plain = [_filled(row, columns) for row in rows]
        self._rows = _at_their_points(self._plain, right)
        self._options = options
        self._right = right
        self._marked = marked
        self._total = max(total, len(rows))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines of the table."""
        if not self._headers:
            return
        wanted = [
            max(1, cell_len(header.plain), *(cell_len(row[place].plain) for row in self._rows), 1)
            for place, header in enumerate(self._headers)
        ]
        room = options.max_width - (2 if self._marked else 0)
        blocks = in_blocks(wanted, room)
        count = self._most_rows(len(blocks) if blocks else len(wanted))
        if blocks is None:
            yield from self._records(options.max_width, count)
        for place, block in enumerate(blocks or ()):
            if place:
                yield Text("")
            yield from self._block(block, wanted, room, count)
        if (left := self._total - min(count, len(self._rows))) > 0:
            sign = "…" if self._options.unicode else "..."
            yield Text(f"{sign} {left:,} more row{'s' if left > 1 else ''}", style=DIM)

    def _most_rows(self, times: int) -> int:
        """Return the number of rows to show if each row needs several lines."""
        most = self._options.max_rows
        return len(self._rows) if most is None else max(MIN_ROWS, most // max(1, times))

    def _block(self, block: list[int], wanted: list[int], room: int, count: int) -> RenderResult:
        """Return the lines of some columns, side by side."""
        margin = 2 if self._marked else 0
        asked = [wanted[column] for column in block]
        widths = fitted(asked, room - GAP * (len(block) - 1)) or asked
        right = [column in self._right for column in block]
        if len(block) < len(wanted):
            shown = ", ".join(str(column + 1) for column in block)
            yield Text(f"{' ' * margin}columns {shown} of {len(wanted)}", style=DIM)
        headers = [self._headers[column] for column in block]
        if any(header.plain for header in headers):
            heads = cut_apart([header.plain for header in headers], widths, self._options.unicode)
            yield self._line([*map(Text, heads)], widths, right, " " * margin, TITLE)
            yield Text(
                " " * margin + (" " * GAP).join(self._rule(width) for width in widths), style=DIM
            )
        for place, row in enumerate(self._rows[:count]):
            marked = place in self._marked
            mark = self._mark() if marked else " " * margin
            cells = [row[column] for column in block]
            yield self._line(cells, widths, right, mark, ACCENT if marked else "")

    def _line(
        self, row: Row, widths: list[int], right: list[bool], mark: str, style: object
    ) -> Text:
        line = Text(
            mark, style=style if isinstance(style, str) else "", no_wrap=True, overflow="crop"
        )
        last = len(widths) - 1
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            if cell_len(cell.plain) > width:  # drop the blanks that align decimal points first
                cell = cell.copy()
                cell.rstrip()
            shown = cut(cell, width, self._options.unicode)
            blanks = " " * (width - cell_len(shown.plain))
            if right[place]:
                line.append(blanks)
                line.append_text(shown)
            else:
                line.append_text(shown)
                line.append(blanks if place < last else "")
            line.append(" " * GAP if place < last else "")
        if style:
            line.stylize_before(style)  # type: ignore[arg-type]  # a Style
        return line

    def _records(self, width: int, count: int) -> RenderResult:
        """Return each row as lines `header  value`, with a rule between two rows."""
        names = [header.plain or f"#{place + 1}" for place, header in enumerate(self._headers)]
        room = min(max(map(cell_len, names)), max(4, width // 3))
        for place, row in enumerate(self._plain[:count]):
            if place:
                yield Text(self._rule(min(width, 20)), style=DIM)
            for name, cell in zip(names, row, strict=True):
                if not cell.plain:
                    continue
                shown = cut(Text(name), room, self._options.unicode)
                shown.append(" " * (room - cell_len(shown.plain) + GAP))
                shown.stylize(TITLE)
                shown.append_text(cut(cell, max(1, width - room - GAP), self._options.unicode))
                if place in self._marked:
                    shown.stylize_before(ACCENT)
                yield shown

    def _rule(self, width: int) -> str:
        return ("─" if self._options.unicode else "-") * width

    def _mark(self) -> str:
        return "▸ " if self._options.unicode else "> "


def in_blocks(wanted: list[int], room: int) -> list[list[int]] | None:
    """Return blocks of columns that are side by side; `None` if not even two columns fit.

    It is one block if few characters are cut. Otherwise each block has as many readable columns as
    fit. All blocks begin with the first column, which says what a row is.
    """
    widths = fitted(wanted, room - GAP * (len(wanted) - 1))
    is_cut = widths is None or any(
        width < min(one, READABLE) for one, width in zip(wanted, widths, strict=True)
    )
    if widths is not None and (not is_cut or len(wanted) < MIN_BLOCKED):
        return [[*range(len(wanted))]]
    least = [min(one, READABLE) for one in wanted]
    if len(wanted) < MIN_BLOCKED or least[0] + GAP + max(least[1:]) > room:
        return None
    blocks: list[list[int]] = [[0]]
    for place in range(1, len(wanted)):
        if sum(least[one] + GAP for one in blocks[-1]) + least[place] > room:
            blocks.append([0])
        blocks[-1].append(place)
    return blocks


def fitted(wanted: list[int], room: int) -> list[int] | None:
    """Shrink the widest columns until all fit into `room`.

    Returns:
        The widths. None is below `MIN_COLUMN`, unless the column wants less. `None` if they do not
        fit.
    """
    if sum(wanted) <= room:
        return wanted
    least = [min(width, MIN_COLUMN) for width in wanted]
    if sum(least) > room:
        return None
    low, high = MIN_COLUMN, max(wanted)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in wanted) <= room:
            low = middle
        else:
            high = middle - 1
    widths = [min(width, low) for width in wanted]
    spare = room - sum(widths)
    for place, width in enumerate(wanted):
        if spare and width > widths[place]:
            widths[place] += 1
            spare -= 1
    return widths


def _at_their_points(rows: list[list[Text]], columns: frozenset[int]) -> list[list[Text]]:
    """Add blanks after the numbers of some columns to align their decimal points."""
    shown = [[*row] for row in rows]
    for place in columns:
        tails = [_PLAIN_NUMBER.fullmatch(row[place].plain) for row in rows]
        most = max((len(tail[1]) for tail in tails if tail), default=0)
        for row, tail in zip(shown, tails, strict=True):
            if tail and len(tail[1]) < most:
                row[place] = row[place].copy().append(" " * (most - len(tail[1])))
    return shown


def _filled(row: Row, columns: int) -> list[Text]:
    return [*row, *(Text("") for _ in range(columns - len(row)))]


MAX_COLUMNS = 200
"""Maximum number of columns that are drawn."""


def table(props: JsonObject, options: Options) -> RenderableType:
    """Draw `table`: aligned columns, numbers on the right, marked rows, tabs below their names.

    Rows that can be selected have numbers.
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
    heads = [label(header) for header in headers]
    grid = Grid(heads, cells, options, right=right, marked=marked, total=len(rows))
    return stack([grid, None if rows else Text("no rows", style=DIM)])


def _is_numeric(rows: list[list[Json]], place: int) -> bool:
    """Return whether a column has only numbers and empty cells."""
    values = [row[place] for row in rows if place < len(row) and row[place] is not None]
    return bool(values) and all(
        number(value) is not None or is_large_integer(value) for value in values
    )


def _cell(value: Json) -> Text:
    return Text("–", style=DIM) if value is None else label(value)
