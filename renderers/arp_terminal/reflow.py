"""What becomes of the lines below when the terminal gets narrower, so that they can be erased.

Most terminals break the lines that stand there anew. The cursor is then further below the first of
our lines than it was drawn; whoever goes up by as much as it was leaves the rest standing.
"""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import Renderer


def reflows(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal breaks its lines anew when it gets narrower; most do.

    To take one that does not for one that does would erase what was printed above.
    """
    if environ.get("TMUX"):
        return True
    cuts = environ.get("XTERM_VERSION") or environ.get("STY")
    return not cuts and not environ.get("TERM", "").startswith(("linux", "vt", "screen"))


def cursor_after(screen: Screen, cursor: Point, columns: int) -> Point:
    """Return where the cursor stands, from the first line drawn, when there are fewer columns.

    Args:
        screen: What was drawn, each line ended.
        cursor: Where it stood then.
        columns: Cells of a line now.
    """
    above = sum(_rows(screen, row, columns) for row in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def erase_reflowed(renderer: Renderer, output: Output, columns: int) -> None:
    """Erases what was drawn, now that it stands in fewer columns; the cursor is at its first line.

    Line by line: a terminal such as tmux keeps what is erased all at once, from its very first line
    on, among what has scrolled away.
    """
    screen = renderer.last_rendered_screen
    if screen is None:
        return
    # The library has no other way to ask or be told: it takes it that terminals leave lines alone.
    rows = cursor_after(screen, renderer._cursor_pos, columns).y
    output.write_raw("\r\x1b[2K" + "\x1b[A\x1b[2K" * rows)
    renderer._cursor_pos = Point(0, 0)


def _rows(screen: Screen, row: int, columns: int) -> int:
    """Return how many lines one becomes; a wide character that does not fit goes to the next."""
    cells = screen.data_buffer[row]
    last = max((place for place, cell in cells.items() if cell.char.strip(" ")), default=-1)
    rows, used, place = 1, 0, 0
    while place <= last:
        width = max(1, cells[place].width)
        if used + width > columns:
            rows, used = rows + 1, 0
        used += width
        place += width
    return rows
