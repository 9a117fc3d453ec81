"""What kind of terminal a stream is."""

from __future__ import annotations

import io

import pytest

from arp_terminal.options import MIN_WIDTH
from arp_terminal.programs.terminal import (
    is_dumb,
    options_for,
    speaks_unicode,
    wants_colour,
    write_lines,
)


@pytest.mark.parametrize(
    ("terminal", "environ", "colour"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_follows_what_the_user_asked_for(
    terminal: bool, environ: dict[str, str], colour: bool
) -> None:
    """T9."""
    assert wants_colour(terminal, environ) is colour


def test_a_pipe_gets_everything_and_no_styles() -> None:
    found = options_for(io.StringIO(), environ={"TERM": "xterm"})
    assert (found.width, found.colour, found.unicode, found.max_rows) == (80, False, True, None)
    assert options_for(io.StringIO(), width=120, environ={}).width == 120
    assert options_for(io.StringIO(), width=1, environ={}).width == MIN_WIDTH


def test_a_stream_without_unicode_gets_ascii_and_escapes() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    assert not speaks_unicode(out)
    assert not options_for(out, environ={}).unicode
    write_lines(out, ["naïve 日", "b"])
    assert raw.getvalue() == b"na\\xefve \\u65e5\nb\n"


def test_a_stream_with_unicode_gets_it_as_it_is() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8")
    write_lines(out, ["日"])
    assert raw.getvalue() == "日\n".encode()
    write_lines(io.StringIO(), [])


def test_a_terminal_without_a_cursor_is_dumb() -> None:
    assert is_dumb({})
    assert is_dumb({"TERM": "dumb"})
    assert not is_dumb({"TERM": "xterm-256color"})
