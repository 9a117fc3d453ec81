"""Names, commands and plans of other programs are shortened or dropped, never refused."""

from __future__ import annotations

import msgspec
import pytest

from arp.protocol.messages import Command, CommandChoice
from arp.session.session_settings import MAX_COMMANDS_BYTES
from arp.turn.foreign_names import (
    FittingSteps,
    fitting_commands,
    fitting_name,
    fitting_steps,
    function_name,
    shortened,
)
from arp.turn.host import checked_commands


def test_text_is_cut_with_a_mark() -> None:
    assert (shortened("abc", 3), shortened("abcd", 3)) == ("abc", "ab…")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bash", "bash"),
        ("my.dotted/tool name", "my.dotted/tool name"),
        ("", "tool"),
        (" \n", "tool"),
    ],
)
def test_name_that_fits_stays_and_an_empty_one_has_a_default(name: str, shown: str) -> None:
    assert fitting_name(name, "tool") == shown


def test_names_that_are_changed_stay_different() -> None:
    given = ["a b", "a\nb", "a\tb", "x" * 300, "x" * 301]
    found = [fitting_name(name, "tool") for name in given]
    assert len(set(found)) == len(given)
    assert all(name.isprintable() and len(name) <= 200 for name in found)
    again = [fitting_name(name, "tool") for name in found]
    assert again == found


def test_functions_are_called_as_models_take_it() -> None:
    """OpenAI refuses a request, and so ends the turn, if one name has another character."""
    taken: list[str] = []
    for name in ("add", "my.dotted/tool name", "my_dotted_tool_name", "é", "", "y" * 80, "y" * 81):
        made = function_name(name, taken)
        assert made.isascii()
        assert made.replace("_", "").replace("-", "").isalnum()
        assert 1 <= len(made) <= 64
        assert made not in taken
        taken.append(made)
    assert taken[:2] == ["add", "my_dotted_tool_name"]


def test_steps_of_a_plan() -> None:
    given = [{"text": "a", "status": "done"}, 3, {"text": 4, "status": ["x"]}]
    steps = [{"name": "a", "status": "done"}, {"name": "", "status": "pending"}]
    assert fitting_steps(given) == FittingSteps(steps, ())
    assert fitting_steps("x") == FittingSteps([], ())
    many = fitting_steps([{"text": "a"}] * 101)
    assert (len(many.steps), many.steps[-1]) == (101, {"name": "… and 1 more", "status": "pending"})
    assert many.warnings == ["the plan has 101 steps; 100 are shown"]


def test_command_of_several_words_is_an_argument_of_its_first() -> None:
    listed = [Command("memory show", "Shows it"), Command("/memory", "Works", "what"), Command("a")]
    found = fitting_commands(listed)
    show = CommandChoice("show", description="Shows it")
    assert found.commands == (Command("memory", "Works", "what", (show,)), Command("a"))
    assert found.warnings == []


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        (Command(""), "the command '' is left out: it cannot be typed"),
        (Command("//a"), "the command '//a' is left out: it cannot be typed"),
        (Command("a\x00b"), "the command 'a\\x00b' is left out: it cannot be typed"),
        (Command("known"), "two commands are named 'known': the first is offered"),
        (
            Command("a", choices=(CommandChoice(" x"),)),
            "/a: the choice ' x' is left out: it cannot be typed",
        ),
        (
            Command("a", choices=(CommandChoice("x"), CommandChoice("x"))),
            "/a: two choices are 'x': the first is offered",
        ),
    ],
)
def test_command_that_nobody_can_type_is_left_out_with_a_warning(
    command: Command, warning: str
) -> None:
    found = fitting_commands([Command("known"), command])
    assert found.warnings == [warning]
    assert found.commands[0] == Command("known")
    checked_commands(found.commands)


def test_only_one_choice_is_current() -> None:
    choices = (CommandChoice("x", current=True), CommandChoice("y", current=True))
    ((command,), _) = fitting_commands([Command("model", choices=choices)])
    assert [one.current for one in command.choices] == [True, False]


def test_commands_fit_into_one_message() -> None:
    """Descriptions are shortened first; what switches a session is dropped last."""
    models = tuple(CommandChoice(f"m{n}", "l" * 300, "d" * 900) for n in range(200))
    listed = [Command(f"c{n}", "d" * 900) for n in range(1_000)]
    found = fitting_commands([*listed, Command("model", choices=models)])
    assert len(msgspec.json.encode(found.commands)) <= MAX_COMMANDS_BYTES
    assert found.commands[-1].name == "model"
    assert len(found.commands[-1].choices) == 200
    assert found.commands[0].description == "d" * 79 + "…"
    (warning,) = found.warnings
    assert (
        warning == f"{1_001 - len(found.commands)} of 1001 commands are left out: they are too many"
    )
    checked_commands(found.commands)
    endless = Command("model", choices=tuple(CommandChoice(f"{n:0200}") for n in range(2_000)))
    ((one,), _) = fitting_commands([endless])
    assert 50 < len(one.choices) < 2_000
