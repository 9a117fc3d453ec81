"""Names and texts of foreign programs, made valid for screens and facts.

Theory of operation. Agents, frameworks, MCP servers and remote runtimes choose the names of their
tools, commands, choices and steps. One rule holds for all of them: what does not fit is shortened,
or dropped with a warning; it never ends a turn. A shortened name gets a part of its digest, so that
two names never become equal.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from arp.protocol.json_value import Json
from arp.protocol.messages import Command, CommandChoice
from arp.session.session_settings import MAX_COMMANDS_BYTES
from arp.turn.host import MAX_CHOICE, MAX_COMMAND_NAME, is_typable

MAX_NAME: Final = 200
"""Most characters of a tool's name."""
MAX_DESCRIPTION: Final = 500
"""Most characters of the description of a command or a choice."""
MAX_SHORT_DESCRIPTION: Final = 80
"""Most characters of a description if there are many."""
MAX_STEPS: Final = 100
"""Most steps of a shown plan."""
MAX_STEP: Final = 500
"""Most characters of a step."""
MAX_FUNCTION_NAME: Final = 64
"""Most characters of a function's name for models; the limit of OpenAI and Anthropic."""
DIGEST_CHARACTERS: Final = 8

_NOT_IN_FUNCTIONS: Final = re.compile(r"[^A-Za-z0-9_-]")


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a cut text ends with `…`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fitting_name(name: str, default: str) -> str:
    """Return a valid tool name for facts and screens: one line of at most `MAX_NAME` characters.

    Args:
        name: Name from the program.
        default: Name to use if that is empty.
    """
    line = " ".join(name.split())
    if not line:
        return default
    if line == name and len(line) <= MAX_NAME:
        return name
    return f"{line[: MAX_NAME - DIGEST_CHARACTERS - 1]}…{_digest(name)}"


def function_name(name: str, taken: Container[str] = ()) -> str:
    """Return a valid function name for models: letters, digits, `_` and `-`.

    Args:
        name: Name from the server.
        taken: Names of other functions.
    """
    plain = _NOT_IN_FUNCTIONS.sub("_", name)
    # A name of other scripts becomes only `_`, which would be the same for all of them.
    says_something = plain.strip("_-") != ""
    if says_something and len(plain) <= MAX_FUNCTION_NAME and plain not in taken:
        return plain
    return f"{plain[: MAX_FUNCTION_NAME - DIGEST_CHARACTERS - 1]}_{_digest(name)}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


# -- plans -----------------------------------------------------------------------------------------


class FittingSteps(NamedTuple):
    """Steps of a plan that can be shown."""

    steps: list[Json]
    warnings: Sequence[str]


def fitting_steps(todos: Json) -> FittingSteps:
    """Convert an agent's list `[{text, status}]` to the steps of a progress component."""
    listed = [one for one in todos if isinstance(one, dict)] if isinstance(todos, list) else []
    steps: list[Json] = []
    for todo in listed[:MAX_STEPS]:
        status, text = todo.get("status"), todo.get("text")
        known = status if status in ("active", "done") else "pending"
        name = shortened(text if isinstance(text, str) else "", MAX_STEP)
        steps.append({"name": name, "status": known})
    left = len(listed) - len(steps)
    if not left:
        return FittingSteps(steps, ())
    steps.append({"name": f"… and {left} more", "status": "pending"})
    return FittingSteps(steps, [f"the plan has {len(listed)} steps; {MAX_STEPS} are shown"])


# -- commands --------------------------------------------------------------------------------------


class FittingCommands(NamedTuple):
    """Commands that can be offered, and why others cannot."""

    commands: tuple[Command, ...]
    warnings: Sequence[str]


def fitting_commands(listed: Iterable[Command]) -> FittingCommands:
    """Return the commands that users can type and that fit into one message.

    A command of several words, such as `memory show`, is offered as an argument of its first word.
    """
    found: dict[str, Command] = {}
    warnings: list[str] = []
    for command in listed:
        name, _, argument = " ".join(command.name.split()).removeprefix("/").partition(" ")
        if name.startswith("/") or not is_typable(name, MAX_COMMAND_NAME):
            warnings.append(f"the command {command.name!r:.80} is left out: it cannot be typed")
            continue
        made = _as_argument(command, name, argument) if argument else command
        before = found.get(name)
        if before is not None and not (argument or before.choices):
            warnings.append(f"two commands are named {name!r}: the first is offered")
            continue
        found[name] = _merged(name, before, made, warnings)
    commands = tuple(found.values())
    return FittingCommands(_fitting_message(commands, warnings), warnings)


def _as_argument(command: Command, name: str, argument: str) -> Command:
    return Command(name, choices=(CommandChoice(argument, description=command.description),))


def _merged(name: str, before: Command | None, new: Command, warnings: list[str]) -> Command:
    """Return a command with the choices of both; the description of the first one is kept."""
    said = before if before is not None and (before.description or before.hint) else new
    known = before.choices if before is not None else ()
    return Command(
        name,
        shortened(said.description, MAX_DESCRIPTION),
        shortened(said.hint, MAX_DESCRIPTION),
        _fitting_choices(name, (*known, *new.choices), warnings),
    )


def _fitting_choices(
    name: str, choices: Iterable[CommandChoice], warnings: list[str]
) -> tuple[CommandChoice, ...]:
    found: dict[str, CommandChoice] = {}
    has_current = False
    for one in choices:
        if not is_typable(one.value, MAX_CHOICE) or one.value != one.value.strip():
            warnings.append(
                f"/{name}: the choice {one.value!r:.80} is left out: it cannot be typed"
            )
        elif one.value in found:
            warnings.append(f"/{name}: two choices are {one.value!r:.80}: the first is offered")
        else:
            found[one.value] = CommandChoice(
                one.value,
                shortened(one.label, MAX_NAME),
                shortened(one.description, MAX_DESCRIPTION),
                one.current and not has_current,
            )
            has_current = has_current or one.current
    return tuple(found.values())


def _fitting_message(commands: tuple[Command, ...], warnings: list[str]) -> tuple[Command, ...]:
    """Return the commands that fit into one message.

    Descriptions are shortened first, then commands are dropped. Commands with choices are dropped
    last, because they switch what a session uses.
    """
    if _size(commands) <= MAX_COMMANDS_BYTES:
        return commands
    short = [_shortened_command(command) for command in commands]
    kept: set[str] = set()
    left = MAX_COMMANDS_BYTES
    for command in sorted(short, key=lambda one: not one.choices):
        size = _size((command,))
        if size <= left:
            left -= size
            kept.add(command.name)
    dropped = len(commands) - len(kept)
    if dropped:
        warnings.append(f"{dropped} of {len(commands)} commands are left out: they are too many")
    return tuple(command for command in short if command.name in kept)


def _shortened_command(command: Command) -> Command:
    """Return a command with short texts, which takes at most half a message."""
    choices = tuple(
        msgspec.structs.replace(one, description="", label=shortened(one.label, 40))
        for one in command.choices
    )
    about = shortened(command.description, MAX_SHORT_DESCRIPTION)
    hint = shortened(command.hint, MAX_SHORT_DESCRIPTION)
    made = Command(command.name, about, hint, choices)
    while _size((made,)) > MAX_COMMANDS_BYTES // 2:
        made = Command(command.name, about, hint, made.choices[: len(made.choices) // 2])
    return made


def _size(commands: Sequence[Command]) -> int:
    return len(msgspec.json.encode(commands))
