"""Lines that the terminal broke anew are found again: none of them stays behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char, Screen

from arp_terminal.programs.chat_terminal import cursor_after, reflows
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
        """Return all lines, those that have scrolled away too, as they were before any break."""
        return self.until(lambda shown: text in shown)

    def until(self, is_so: Callable[[str], bool]) -> str:
        end = time.monotonic() + WAIT_S
        while not is_so(shown := self.do("capture-pane", "-p", "-J", "-S", "-")):
            assert time.monotonic() < end, shown
        return shown

    def start(self, script: str, state: Path) -> None:
        chat = f"cd {ROOT} && XDG_STATE_HOME={state} exec {' '.join(SCRIPTED)} {script}"
        self.do("new-session", "-d", "-x", "100", "-y", "30", chat)
        self.until_shown("/help")
        self.do("send-keys", "go", "Enter")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux here")
    window = Tmux(tmp_path / "tmux")
    try:
        yield window
    finally:
        window.do("kill-server")


def words(shown: str) -> list[str]:
    return re.findall(r"word\d+", shown)


@pytest.mark.skipif(sys.platform == "win32", reason="tmux")
@pytest.mark.parametrize("size", [(40, 30), (100, 9)])
def test_window_that_gets_smaller_leaves_no_cut_copy_of_the_running_answer(
    tmux: Tmux, tmp_path: Path, size: tuple[int, int]
) -> None:
    """T3: what the terminal has pushed out of sight stays, and the answer goes on after it."""
    tmux.start("long_line_in_halves", tmp_path)
    drawn = tmux.until_shown("word120")
    tmux.until(lambda shown: shown != drawn)  # the sign of what runs: the frame before is settled
    columns, rows = map(str, size)
    tmux.do("resize-window", "-x", columns, "-y", rows)
    tmux.do("send-keys", "typed")  # it is drawn after the change of the size is noticed
    tmux.until_shown("typed")
    os.kill(int(tmux.do("display-message", "-p", "#{pane_pid}")), signal.SIGUSR1)
    shown = tmux.until_shown("word200")
    assert words(shown) == [f"word{number}" for number in range(1, 201)]


@pytest.mark.skipif(sys.platform == "win32", reason="tmux")
def test_window_that_changes_again_and_again_while_text_streams_loses_no_word(
    tmux: Tmux, tmp_path: Path
) -> None:
    """T3: as a drag does; what has scrolled away may be there twice then."""
    tmux.start("long_line", tmp_path)
    number = 40
    for columns, rows in [(97, 30), (94, 30), (40, 30), (40, 12), (45, 14)]:
        tmux.until_shown(f"word{number} ")
        tmux.do("resize-window", "-x", str(columns), "-y", str(rows))
        number += 10
    found = words(tmux.until_shown(f"word{number + 40} "))
    assert [f"word{place}" for place in range(1, number) if f"word{place}" not in found] == []
    in_sight = words(tmux.do("capture-pane", "-p", "-J"))
    assert len(in_sight) == len(set(in_sight))
