"""Lines that the terminal broke anew are found again: none of them stays behind."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char, Screen

from arp_terminal.programs.chat_terminal import cursor_after, reflows
from tests.renderers.terminal.pseudo_terminal import SCRIPTED
from tests.renderers.terminal.tmux import Tmux


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


def words(shown: str) -> list[str]:
    return re.findall(r"word\d+", shown)


@pytest.mark.skipif(sys.platform == "win32", reason="tmux")
@pytest.mark.parametrize("size", [(40, 30), (100, 9)])
def test_window_that_gets_smaller_leaves_no_cut_copy_of_the_running_answer(
    tmux: Tmux, tmp_path: Path, size: tuple[int, int]
) -> None:
    """T3: what the terminal has pushed out of sight stays, and the answer goes on after it."""
    tmux.start([*SCRIPTED, "long_line_in_halves"], tmp_path)
    tmux.type("go")
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
    tmux.start([*SCRIPTED, "long_line"], tmp_path)
    tmux.type("go")
    number = 40
    for columns, rows in [(97, 30), (94, 30), (40, 30), (40, 12), (45, 14)]:
        tmux.until_shown(f"word{number} ")
        tmux.do("resize-window", "-x", str(columns), "-y", str(rows))
        number += 10
    found = words(tmux.until_shown(f"word{number + 40} "))
    assert [f"word{place}" for place in range(1, number) if f"word{place}" not in found] == []
    in_sight = words(tmux.do("capture-pane", "-p", "-J"))
    assert len(in_sight) == len(set(in_sight))
