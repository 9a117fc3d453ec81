"""Lines that begin with `/` and are meant for this program."""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

COMMANDS = {
    "/help": "shows this",
    "/cancel": "stops what the agent is doing (as Ctrl-C does)",
    "/skip": "leaves the question open and lets you say something else",
    "/answer": "asks the questions again that were skipped",
    "/back": "goes back to the field before, in a form",
    "/file": "sends files: /file PATH… [-- what to say with them]",
    "/copy": "copies the agent's last words to the clipboard",
    "/new": "begins a new session",
    "/quit": "leaves; the session stays (as Ctrl-D does)",
}
"""Every command and what it does."""

HELP = "\n".join(f"{name:<9} {does}" for name, does in COMMANDS.items())
"""Shown by `/help`."""

_LOOKS_LIKE_COMMAND = re.compile(r"/[a-z]+")


class Command(Struct, frozen=True):
    """One command and what stands behind it."""

    name: str
    rest: str = ""


def parse_command(typed: str) -> Command | None:
    """Reads a line as a command; `None` if it is none."""
    name, _, rest = typed.strip().partition(" ")
    if name == "/exit":
        name = "/quit"
    return Command(name, rest.strip()) if name in COMMANDS else None


def is_misspelt(typed: str) -> bool:
    """Tells whether a line looks like a command that there is not; two slashes send it as it is."""
    return _LOOKS_LIKE_COMMAND.fullmatch(typed.strip()) is not None


def file_arguments(rest: str) -> tuple[list[str], str | None]:
    """Splits what stands behind `/file` into paths and words.

    Raises:
        ValueError: A quote that is not closed.
    """
    before, separator, after = rest.partition(" -- ")
    return shlex.split(before), after.strip() if separator else None
