"""What a chat needs of the terminal: frames written whole, reflow, the clipboard, the history.

**Frames.** What is printed above the prompt takes three steps, each of which would be written by
itself: the lines below are erased, the new ones printed, and those below drawn again. Terminals
that know synchronised output (DEC private mode 2026) show nothing of it before its end; for the
others it is one write.

**Reflow.** Most terminals break the lines on the screen again when they get narrower. The cursor is
then further below the first of our lines than it was drawn; going up by the old distance would
leave the rest on the screen.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from prompt_toolkit.data_structures import Point
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"


class FrameOutput(Vt100_Output):
    """Writes everything of an open frame at its end."""

    _is_open = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Open a frame; it is written also where an exception ends it."""
        self.flush()
        self._is_open = True
        self.write_raw(BEGIN)
        try:
            yield
        finally:
            self.write_raw(END)
            self._is_open = False
            self.flush()

    def erase_down(self) -> None:
        """Erase from the first cell of a line to the end of the screen.

        The first cell by itself: what tmux erases from the first cell of the screen on, it keeps
        among what has scrolled away, as if somebody had asked for an empty screen.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        """As `Output.flush`; nothing within a frame."""
        if not self._is_open:
            super().flush()


def frame(output: Output) -> AbstractContextManager[None]:
    """Open a frame, where the output knows them."""
    return output.frame() if isinstance(output, FrameOutput) else nullcontext()


def terminal_output() -> Output:
    """Return the terminal. It is never asked for its cursor: some answer late or not at all."""
    output = create_output(stdout=sys.stdout)
    if isinstance(output, Vt100_Output):
        output = FrameOutput(
            output.stdout,
            output.get_size,
            term=output.term,
            default_color_depth=output.default_color_depth,
            enable_bell=output.enable_bell,
            enable_cpr=False,
        )
    return output


def reflows(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal breaks its lines again when it gets narrower; most do.

    A wrong yes would erase what was printed above.
    """
    if environ.get("TMUX"):
        return True
    cuts = environ.get("XTERM_VERSION") or environ.get("STY")
    return not cuts and not environ.get("TERM", "").startswith(("linux", "vt", "screen"))


def cursor_after(screen: Screen, cursor: Point, columns: int) -> Point:
    """Return where the cursor is, from the first line drawn, when there are fewer columns.

    Args:
        screen: What was drawn, each line ended.
        cursor: Where it was then.
        columns: Cells of a line now.
    """
    above = sum(_rows(screen, row, columns) for row in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def erase_reflowed(renderer: Renderer, output: Output, columns: int, first: int = 0) -> None:
    """Erase what was drawn, now that it has fewer columns; the cursor is then at its first line.

    Line by line: a terminal such as tmux keeps what is erased all at once, from its very first line
    on, among what has scrolled away.

    Args:
        renderer: What drew it.
        output: The terminal.
        columns: Cells of a line now.
        first: So many of the lines stay, and are ours no longer.
    """
    screen = renderer.last_rendered_screen
    if screen is None:
        return
    # The library has no public way: it assumes that terminals do not break lines again.
    rows = cursor_after(screen, renderer._cursor_pos, columns).y
    rows -= sum(_rows(screen, row, columns) for row in range(first))
    output.write_raw("\r\x1b[2K" + "\x1b[A\x1b[2K" * rows)
    renderer._cursor_pos = Point(0, 0)


def _rows(screen: Screen, row: int, columns: int) -> int:
    """Return how many lines a line becomes; a wide character is never split."""
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


MAX_COPIED = 74_000
"""Bytes that terminals accept: xterm reads 100,000 characters of base64."""


def copy_sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """Return the sequence (OSC 52) that puts `text` into the clipboard.

    Inside of tmux it is wrapped so that it gets through.

    Returns:
        `None` if there is nothing to copy or more than a terminal accepts.
    """
    data = text.encode(errors="replace")
    if not data or len(data) > MAX_COPIED:
        return None
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if environ.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence


def history_path(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/arp/history`, else `~/.local/state/arp/history`."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the XDG specification: a relative path is to be ignored
        state = str(Path(environ.get("HOME") or Path.home()) / ".local" / "state")
    return Path(state) / "arp" / "history"


def open_history(path: Path) -> History:
    """Open a history for its owner's eyes; one in memory where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
