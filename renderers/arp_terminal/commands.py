"""Lines that begin with `/` and are meant for this program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from arp.protocol.messages import Command as Offered
from arp.protocol.safe_text import sanitise

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

MAX_SHOWN = 60
"""Characters of an agent's command that `/help` shows, name and hint; of its description too."""

_LOOKS_LIKE_COMMAND = re.compile(r"/[a-z]+")


class Command(Struct, frozen=True):
    """One command and the text after it."""

    name: str
    rest: str = ""


def help_text(offered: Sequence[Offered]) -> str:
    """Return what `/help` shows: the commands of this program, then those of the agent.

    Args:
        offered: The agent's, as its `hello` lists them. One with the name of a command of ours is
            shown with two slashes, which send it.
    """
    rows = list(COMMANDS.items())
    for each in offered:
        name = _short(f"//{each.name}" if f"/{each.name}" in COMMANDS else f"/{each.name}")
        hint = f" {_short(each.hint)}" if each.hint else ""
        rows.append((f"{name}{hint}", _short(each.description)))
    wide = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{wide}} {does}".rstrip() for name, does in rows)


def _short(text: str) -> str:
    """Return what an agent says of itself in one line, with no control characters."""
    plain = " ".join(sanitise(text).split())
    return plain if len(plain) <= MAX_SHOWN else f"{plain[: MAX_SHOWN - 1]}…"


def parse_command(typed: str) -> Command | None:
    """Read a line as a command; `None` if it is none."""
    name, _, rest = typed.strip().partition(" ")
    if name == "/exit":
        name = "/quit"
    return Command(name, rest.strip()) if name in COMMANDS else None


def is_misspelt(typed: str, offered: Sequence[Offered]) -> bool:
    """Return whether a line looks like a command that there is not; two slashes send it as it is.

    Args:
        typed: A line that is no command of this program.
        offered: The commands of the agent.
    """
    name = typed.strip()
    is_offered = any(name == f"/{each.name}" for each in offered)
    return not is_offered and _LOOKS_LIKE_COMMAND.fullmatch(name) is not None


def file_arguments(rest: str) -> tuple[list[str], str | None]:
    """Split the text after `/file` into paths and words.

    Raises:
        ValueError: A quote that is not closed.
    """
    before, separator, after = rest.partition(" -- ")
    return shlex.split(before), after.strip() if separator else None
