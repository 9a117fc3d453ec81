"""Lines that the terminal broke anew are found again: none of them stays behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char, Screen

from arp_terminal.chat_terminal import cursor_after, reflows
from tests.renderers.terminal.pseudo_terminal import ROOT, SCRIPTED

WAIT_S = 10


def drawn(*lines: str) -> Screen:
    """A screen with these lines; a wide character takes two cells, as the library has it."""
    screen = Screen()
    for row, line in enumerate(lines):
        column = 0
        for character in line:
            cell = Char(character)
            screen.data_buffer[row][column] = cell
            column += cell.width
    return screen


@pytest.mark.parametrize(
    ("lines", "cursor", "columns", "expected"),
    [
        (["short", "> "], Point(2, 1), 10, Point(2, 1)),
        (["x" * 25, "> "], Point(2, 1), 10, Point(2, 3)),
        (["x" * 20, "> "], Point(2, 1), 10, Point(2, 2)),
        (["x" * 25, "", "y" * 11, ">"], Point(1, 3), 10, Point(1, 6)),
        (["xxxxxxxxx狐", ">"], Point(1, 1), 10, Point(1, 2)),
        (["狐狐狐狐狐狐", ">"], Point(1, 1), 5, Point(1, 3)),
        (["blanks" + " " * 30, ">"], Point(1, 1), 10, Point(1, 1)),
        (["> " + "z" * 30], Point(32, 0), 10, Point(2, 3)),
    ],
)
def test_cursor_is_further_below_by_the_lines_that_were_broken(
    lines: list[str], cursor: Point, columns: int, expected: Point
) -> None:
    assert cursor_after(drawn(*lines), cursor, columns) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(379)"}, False),
        ({"TERM": "tmux-256color", "TMUX": "/s,1,0", "XTERM_VERSION": "XTerm(379)"}, True),
        ({"TERM": "screen-256color", "TMUX": "/s,1,0"}, True),
        ({"TERM": "screen", "STY": "1.pts-0"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_terminals_that_leave_their_lines_alone_are_known(
    environ: dict[str, str], expected: bool
) -> None:
    assert reflows(environ) is expected


class Tmux:
    """A window of a terminal that breaks lines anew."""

    def __init__(self, socket: Path) -> None:
        self._call = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def do(self, *words: str) -> str:
        done = subprocess.run(
            [*self._call, *words], capture_output=True, text=True, timeout=WAIT_S, check=True
        )
        return done.stdout

    def until_shown(self, text: str) -> str:
        """Return the lines in sight; some above may have scrolled away when they were broken."""
        end = time.monotonic() + WAIT_S
        while text not in (shown := self.do("capture-pane", "-p")):
            assert time.monotonic() < end, shown
        return shown


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux here")
    window = Tmux(tmp_path / "tmux")
    shell = f"cd {ROOT} && XDG_STATE_HOME={tmp_path} {' '.join(SCRIPTED)} long_line"
    window.do("new-session", "-d", "-x", "100", "-y", "30", shell)
    try:
        yield window
    finally:
        window.do("kill-server")


@pytest.mark.skipif(sys.platform == "win32", reason="tmux")
def test_window_that_shrinks_while_text_streams_keeps_no_stale_line(tmux: Tmux) -> None:
    """T3: clean reflow, nothing doubled."""
    tmux.until_shown("/help")
    tmux.do("send-keys", "go", "Enter")
    tmux.until_shown("word40 ")
    tmux.do("resize-window", "-x", "40")
    shown = tmux.until_shown("word80 ").replace("\n", " ")
    assert [shown.count(f"word{number} ") for number in range(1, 80)] == [1] * 79
    assert shown.count("Ctrl-C stops") == 1
