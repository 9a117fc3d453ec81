"""The kind of terminal that a stream is, and writing to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import TextIO

from arp_terminal.options import MIN_WIDTH, Options

PIPE_WIDTH = 80
"""Cells of a line if there is no terminal."""


def options_for(
    out: TextIO,
    *,
    level: str = "standard",
    width: int | None = None,
    server: str = "",
    environ: Mapping[str, str] | None = None,
) -> Options:
    """Return the options that fit a stream.

    Without a terminal, nothing is styled and no row is left out. `NO_COLOR`, `TERM=dumb` and
    `FORCE_COLOR` are obeyed. Without UTF-8, only ASCII is drawn.
    """
    env = os.environ if environ is None else environ
    terminal = is_terminal(out)
    return Options(
        width=max(MIN_WIDTH, width or (columns(out) if terminal else PIPE_WIDTH)),
        colour=wants_colour(terminal, env),
        unicode=speaks_unicode(out),
        level=level,
        max_rows=100 if terminal else None,
        server=server,
    )


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal; a closed stream is not."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def is_dumb(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal cannot move its cursor."""
    return environ.get("TERM", "") in ("", "dumb", "unknown")


def wants_colour(terminal: bool, environ: Mapping[str, str]) -> bool:
    """Return whether to send styles, by `NO_COLOR`, then `FORCE_COLOR`, then the terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and not is_dumb(environ)


def speaks_unicode(out: TextIO) -> bool:
    """Return whether signs beyond ASCII may be drawn; a stream without an encoding accepts all."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    return encoding.lower().replace("_", "").startswith(("utf", "cp65001"))


def columns(out: TextIO) -> int:
    """Return the width of a terminal."""
    try:
        return os.get_terminal_size(out.fileno()).columns or PIPE_WIDTH
    except (OSError, ValueError):
        return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def write_lines(out: TextIO, lines: Sequence[str]) -> None:
    r"""Write painted lines; characters that the encoding lacks are written as `\u…`."""
    if not lines:
        return
    text = "\n".join(lines) + "\n"
    if not speaks_unicode(out):
        encoding = getattr(out, "encoding", None) or "ascii"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    out.write(text)
    out.flush()
