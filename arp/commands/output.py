"""The output of every command: one sentence for an error, and no invisible characters.

All output goes through here, into a pipe too: text from others is made visible (`printable`), and
JSON gets escapes (`json_text`), so that it stays the same value.
"""

from __future__ import annotations

import re
from typing import NoReturn

import click

from arp.protocol.errors import sentence
from arp.protocol.safe_text import escaped_json, sanitise_line

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Each command needs its own: click caches the help option of the command that is asked first."""

_SPACES = re.compile(r"(?:[ \t\n]|\r\n)+")


def fail(text: str, code: int = 1) -> NoReturn:
    """Print what is wrong in one sentence, and end the process."""
    click.echo(f"arp: {sentence(printable(text))}", err=True)
    raise SystemExit(code)


def printable(text: str) -> str:
    """Return a text on one line in which every character is visible."""
    return sanitise_line(_SPACES.sub(" ", text).strip())


def json_text(data: bytes) -> str:
    """Return JSON of the same value in which every character is visible."""
    return escaped_json(data.decode("utf-8", "replace"))


def cut(text: str, width: int) -> str:
    """Return a text cut to `width` characters, with an ellipsis if it was longer."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
