"""How every command speaks: one sentence for what is wrong, colours only where they are seen."""

from __future__ import annotations

from typing import NoReturn

import click

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Of each command by itself: click remembers a help option from where it is first asked for."""


def fail(text: str, code: int = 1) -> NoReturn:
    """Ends with a sentence for the person at the keyboard."""
    click.echo(f"arp: {text}", err=True)
    raise SystemExit(code)


def printable(text: str) -> str:
    """Gives a text without control characters, on one line."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())


def cut(text: str, width: int) -> str:
    """Gives a text of at most `width` characters, with a mark where it was longer."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
