"""Commands of this program: lines that begin with `/`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from arp.protocol.messages import Command as Offered
from arp.protocol.safe_text import sanitise

COMMANDS = {
    "/help": "shows this",
    "/cancel": "stops what the agent is doing (as Ctrl-C does)",
    "/skip": "leaves the question open and lets you say something else",
    "/decline": "declines to answer the question, where that is offered",
    "/answer": "asks the questions again that were skipped",
    "/back": "goes back to the field before, in a form",
    "/file": "sends files: /file PATH… [-- what to say with them]",
    "/tool": "shows a whole tool call: /tool NUMBER, as in #3",
    "/copy": "copies the agent's last words to the clipboard",
    "/new": "begins a new session",
    "/quit": "leaves; the session stays (as Ctrl-D does)",
}
"""Every command and what it does."""

MAX_SHOWN = 60
"""Maximum length of the name, the hint and the description of an agent's command in `/help`."""

_LOOKS_LIKE_COMMAND = re.compile(r"/[a-z]+")


class Command(Struct, frozen=True):
    """One command and the text after it."""

    name: str
    rest: str = ""


def help_text(offered: Sequence[Offered]) -> str:
    """Return what `/help` shows: the commands of this program, then those of the agent.

    Args:
        offered: Commands of the app and the session. A command with the name of one of this
            program is shown with two slashes, because it must be typed like this.
    """
    rows = list(COMMANDS.items())
    for each in offered:
        name = _short(_as_typed(each))
        hint = each.hint or "|".join(choice.value for choice in each.choices)
        hint = f" {_short(hint)}" if hint else ""
        rows.append((f"{name}{hint}", _described(each)))
    wide = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{wide}} {does}".rstrip() for name, does in rows)


def _as_typed(command: Offered) -> str:
    """Return the line that sends a command; two slashes if this program has a command like it."""
    name = f"/{command.name}"
    return f"/{name}" if name in COMMANDS else name


def _described(command: Offered) -> str:
    """Return the description of a command, and its current choice."""
    now = next((one.label or one.value for one in command.choices if one.current), "")
    does = _short(command.description)
    return f"{does} (now {_short(now)})".strip() if now else does


def completed(typed: str, offered: Sequence[Offered]) -> tuple[str, list[str]]:
    """Return a line as Tab completes it, and the candidates if there are several.

    Args:
        typed: Text before the cursor: the name of a command, or a name and an argument.
        offered: Commands of the agent.
    """
    name, space, rest = typed.partition(" ")
    known = {_as_typed(one): one for one in offered}
    found: list[str] = []
    if space:
        choices = known[name].choices if name in known else ()
        found = [f"{name} {one.value}" for one in choices if one.value.startswith(rest.lstrip())]
    elif name:
        found = [one for one in sorted({*COMMANDS, *known}) if one.startswith(name)]
    # The line goes into the input buffer, so a control character of an agent must not be in it.
    found = [one for one in found if one.isprintable()]
    if not found:
        return typed, []
    if len(found) > 1:
        first, last = min(found), max(found)  # a beginning that these two share, all share
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        return max(typed, first[: len(list(shared))], key=len), found
    (line,) = found
    takes_more = line in known and (known[line].hint or known[line].choices)
    return f"{line} " if takes_more else line, []


def _short(text: str) -> str:
    """Return a text of an agent as one short line without control characters."""
    plain = " ".join(sanitise(text).split())
    return plain if len(plain) <= MAX_SHOWN else f"{plain[: MAX_SHOWN - 1]}…"


def parse_command(typed: str) -> Command | None:
    """Parse a line as a command of this program; `None` if it is not one."""
    name, _, rest = typed.strip().partition(" ")
    if name == "/exit":
        name = "/quit"
    return Command(name, rest.strip()) if name in COMMANDS else None


def is_misspelt(typed: str, offered: Sequence[Offered]) -> bool:
    """Return whether a line looks like a command but names none.

    Args:
        typed: A line that is not a command of this program.
        offered: The commands of the agent.
    """
    name = typed.strip()
    is_offered = any(name == f"/{each.name}" for each in offered)
    return not is_offered and _LOOKS_LIKE_COMMAND.fullmatch(name) is not None


def file_arguments(rest: str) -> tuple[list[str], str | None]:
    """Split the text after `/file` into paths and words.

    Raises:
        ValueError: A quote is not closed.
    """
    before, separator, after = rest.partition(" -- ")
    return shlex.split(before), after.strip() if separator else None
