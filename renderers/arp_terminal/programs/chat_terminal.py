"""The terminal of a chat: frames that are written whole, reflow, the clipboard, the history.

**Frames.** Printing above the prompt takes three steps: erase the lines below, print the new lines,
draw the lines below again. Each step would be a write of its own, and the prompt would flicker. A
terminal with synchronised output (DEC private mode 2026) shows nothing before the end of the frame;
for other terminals the frame is one write.

**Reflow.** Most terminals break the lines on the screen again when they get narrower. The cursor is
then further below our first line than it was drawn. If we moved it up by the old distance, the
first lines would stay on the screen.
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
    """An output that writes everything of an open frame at its end."""

    _is_open = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Open a frame; it is written even if an exception ends it."""
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

        The first cell is erased on its own. tmux treats an erase from the first cell of the screen
        as a request for an empty screen, and keeps the erased lines in its history.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        """Flush the output, except within a frame."""
        if not self._is_open:
            super().flush()


def frame(output: Output) -> AbstractContextManager[None]:
    """Open a frame if the output has frames."""
    return output.frame() if isinstance(output, FrameOutput) else nullcontext()


def terminal_output() -> Output:
    """Return the output to the terminal.

    It never asks the terminal for its cursor, because some answer late or not at all.
    """
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
    """Return whether the terminal breaks its lines again when it gets narrower, as most do.

    A wrong yes would erase printed lines above the prompt.
    """
    if environ.get("TMUX"):
        return True
    cuts = environ.get("XTERM_VERSION") or environ.get("STY")
    return not cuts and not environ.get("TERM", "").startswith(("linux", "vt", "screen"))


def cursor_after(screen: Screen, cursor: Point, columns: int) -> Point:
    """Return the position of the cursor, from the first drawn line, after a reflow.

    Args:
        screen: The drawn lines.
        cursor: Its position when they were drawn.
        columns: Cells of a line now.
    """
    above = sum(_rows(screen, row, columns) for row in range(cursor.y))
    return Point(x=cursor.x % columns, y=above + cursor.x // columns)


def erase_reflowed(renderer: Renderer, output: Output, columns: int, first: int = 0) -> None:
    """Erase the drawn lines after a reflow; the cursor is then at the first of them.

    They are erased line by line. A terminal such as tmux keeps lines in its history that are erased
    at once, from its first line on.

    Args:
        renderer: The renderer that drew them.
        output: The terminal.
        columns: Cells of a line now.
        first: Number of lines at the top that stay, and are no longer ours.
    """
    screen = renderer.last_rendered_screen
    if screen is None:
        return
    # The library has no public way, because it assumes that terminals do not reflow.
    rows = cursor_after(screen, renderer._cursor_pos, columns).y
    rows -= sum(_rows(screen, row, columns) for row in range(first))
    output.write_raw("\r\x1b[2K" + "\x1b[A\x1b[2K" * rows)
    renderer._cursor_pos = Point(0, 0)


def _rows(screen: Screen, row: int, columns: int) -> int:
    """Return the number of lines that a line becomes; a wide character is never split."""
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
"""Maximum size in bytes that terminals accept: xterm reads 100,000 characters of base64."""


def copy_sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """Return the sequence (OSC 52) that puts `text` into the clipboard.

    Inside tmux it is wrapped, so that tmux passes it to the terminal.

    Returns:
        The sequence; `None` if the text is empty or larger than terminals accept.
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
    """Open a history that only its owner can read; in memory if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
