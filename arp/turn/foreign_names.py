"""Names and texts of programs that we do not control, in a form that screens and facts take.

Theory of operation. Agents, frameworks, MCP servers and remote runtimes name their tools, commands,
choices and steps as they like. One rule holds for all: what does not fit is shortened, or it is
dropped with a warning. It never ends a turn. A name that is changed gets a part of its digest, so
that two names never become one.
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
"""Characters of the name of a tool."""
MAX_DESCRIPTION: Final = 500
"""Characters of what a command or a choice means."""
MAX_SHORT_DESCRIPTION: Final = 80
"""As above, where there are many of them."""
MAX_STEPS: Final = 100
"""Of a plan that is shown."""
MAX_STEP: Final = 500
"""Characters of one step."""
MAX_FUNCTION_NAME: Final = 64
"""Characters of a function that a model may call: what OpenAI and Anthropic take."""
DIGEST_CHARACTERS: Final = 8

_NOT_IN_FUNCTIONS: Final = re.compile(r"[^A-Za-z0-9_-]")


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters; one that is cut ends with `…`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fitting_name(name: str, default: str) -> str:
    """Return the name of a tool as facts and screens take it: one line, at most `MAX_NAME` long.

    Args:
        name: As the program says it.
        default: What stands for an empty name.
    """
    line = " ".join(name.split())
    if not line:
        return default
    if line == name and len(line) <= MAX_NAME:
        return name
    return f"{line[: MAX_NAME - DIGEST_CHARACTERS - 1]}…{_digest(name)}"


def function_name(name: str, taken: Container[str] = ()) -> str:
    """Return the name of a tool as models take it: letters, digits, `_` and `-`.

    Args:
        name: As the server says it.
        taken: Names of other functions.
    """
    plain = _NOT_IN_FUNCTIONS.sub("_", name)
    says_something = plain.strip("_-") != ""
    if says_something and len(plain) <= MAX_FUNCTION_NAME and plain not in taken:
        return plain
    return f"{plain[: MAX_FUNCTION_NAME - DIGEST_CHARACTERS - 1]}_{_digest(name)}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


# -- plans -----------------------------------------------------------------------------------------


class FittingSteps(NamedTuple):
    """The steps of a plan that can be shown."""

    steps: list[Json]
    warnings: Sequence[str]


def fitting_steps(todos: Json) -> FittingSteps:
    """Return the list of an agent, `[{text, status}]`, as steps of a progress."""
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
    """The commands that can be offered, and why others are not."""

    commands: tuple[Command, ...]
    warnings: Sequence[str]


def fitting_commands(listed: Iterable[Command]) -> FittingCommands:
    """Return commands that people can type, and that one message can carry.

    A command of several words, `memory show`, is offered as an argument of its first word.
    """
    found: dict[str, Command] = {}
    warnings: list[str] = []
    for command in listed:
        name, _, argument = " ".join(command.name.split()).removeprefix("/").partition(" ")
        if name.startswith("/") or not is_typable(name, MAX_COMMAND_NAME):
            warnings.append(f"the command {command.name!r:.80} is left out: nobody can type it")
            continue
        made = _as_argument(command, name, argument) if argument else command
        before = found.get(name)
        if before is not None and not (argument or before.choices):
            warnings.append(f"two commands are named {name!r}: the first is offered")
            continue
        found[name] = _joined(name, before, made, warnings)
    commands = tuple(found.values())
    return FittingCommands(_of_one_message(commands, warnings), warnings)


def _as_argument(command: Command, name: str, argument: str) -> Command:
    return Command(name, choices=(CommandChoice(argument, description=command.description),))


def _joined(name: str, before: Command | None, new: Command, warnings: list[str]) -> Command:
    """Return a command with the choices of both; what the first says of itself counts."""
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


def _of_one_message(commands: tuple[Command, ...], warnings: list[str]) -> tuple[Command, ...]:
    """Return what fits into one message: descriptions are shortened first, then commands dropped.

    Those with choices switch what a session uses; they are dropped last.
    """
    if _size(commands) <= MAX_COMMANDS_BYTES:
        return commands
    short = [_in_short(command) for command in commands]
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


def _in_short(command: Command) -> Command:
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
