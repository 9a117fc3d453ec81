"""How every command speaks: one sentence for what is wrong, colours only where they are seen.

What is printed goes through here, into a pipe too: a text that somebody else chose is made visible
(`printable`), JSON gets escapes (`json_text`), so that it stays the same value.
"""

from __future__ import annotations

import re
from typing import NoReturn

import click

from arp.protocol.errors import sentence
from arp.protocol.safe_text import escaped_json, sanitise_line

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Of each command by itself: click remembers a help option from where it is first asked for."""

_SPACES = re.compile(r"(?:[ \t\n]|\r\n)+")


def fail(text: str, code: int = 1) -> NoReturn:
    """Ends with a sentence for the person at the keyboard."""
    click.echo(f"arp: {sentence(printable(text))}", err=True)
    raise SystemExit(code)


def printable(text: str) -> str:
    """Gives a text on one line in which every character is visible."""
    return sanitise_line(_SPACES.sub(" ", text).strip())


def json_text(data: bytes) -> str:
    """Give JSON of the same value in which every character is visible."""
    return escaped_json(data.decode("utf-8", "replace"))


def cut(text: str, width: int) -> str:
    """Gives a text of at most `width` characters, with a mark where it was longer."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
