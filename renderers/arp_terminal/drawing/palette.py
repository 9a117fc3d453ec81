"""The styles, named after their meaning.

They use only the sixteen colours of the terminal's theme, which fit a dark and a light background.
Nothing is shown by colour alone.
"""

from __future__ import annotations

from typing import Literal

from rich.style import Style

PLAIN = Style()
BOLD = Style(bold=True)
DIM = Style(dim=True)
ITALIC = Style(italic=True)
STRUCK = Style(strike=True)
ACCENT = Style(color="cyan")
HEADING = Style(color="cyan", bold=True)
TITLE = Style(bold=True)
USER = Style(color="magenta", bold=True)
CODE = Style(color="yellow")
LINK = Style(color="blue", underline=True)
GOOD = Style(color="green")
BAD = Style(color="red")
WARN = Style(color="yellow")
INFO = Style(color="blue")
BAD_WORD = Style(color="red", reverse=True)
GOOD_WORD = Style(color="green", reverse=True)
BAND = Style(reverse=True)

PROMPT_SIGN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""Sign before the input of the user."""

SERIES = (
    Style(color="cyan"),
    Style(color="magenta"),
    Style(color="yellow"),
    Style(color="green"),
    Style(color="blue"),
    Style(color="red"),
)
"""Colours of the series of a chart, used in turn."""

Tone = Literal["success", "error", "warning", "info", "muted", "default"]

TONES: dict[str, Style] = {
    "success": GOOD,
    "error": BAD,
    "warning": WARN,
    "info": INFO,
    "muted": DIM,
    "default": PLAIN,
}
"""The styles of status cards, sections and key-values."""


def tone(name: str) -> Style:
    """Return the style of a tone; plain for an unknown one."""
    return TONES.get(name, PLAIN)


def series(index: int) -> Style:
    """Return the style of a series of a chart."""
    return SERIES[index % len(SERIES)]
