"""The output of commands: one sentence for an error, and no invisible characters.

All output goes through these functions, even into a pipe. In text from others, invisible characters
are made visible (`printable`). In JSON they are escaped (`json_text`), which does not change its
value.
"""

from __future__ import annotations

import re
from typing import NoReturn

import click

from arp.protocol.errors import sentence
from arp.protocol.safe_text import escaped_json, sanitise_line

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of a command. Each command must have its own copy, because click caches the help option
of the command that is called first."""

_SPACES = re.compile(r"(?:[ \t\n]|\r\n)+")


def fail(text: str, code: int = 1) -> NoReturn:
    """Print an error as one sentence, and end the process."""
    click.echo(f"arp: {sentence(printable(text))}", err=True)
    raise SystemExit(code)


def printable(text: str) -> str:
    """Return a text on one line, with every character visible."""
    return sanitise_line(_SPACES.sub(" ", text).strip())


def json_text(data: bytes) -> str:
    """Return JSON with the same value and every character visible."""
    return escaped_json(data.decode("utf-8", "replace"))


def cut(text: str, width: int) -> str:
    """Cut a text to `width` characters; a cut text ends with an ellipsis."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
