"""A permission at a terminal: one form with the whole input, and letters that need no Enter."""

from __future__ import annotations

from pathlib import Path

from arp import App, Turn
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.support.serving import serving

app = App()
COMMAND = "rm -rf build && make\nmake install"


@app.agent
async def agent(turn: Turn) -> None:
    """Asks for permission, with a long input if that is wanted."""
    text = COMMAND if turn.text == "short" else "\n".join(f"line {n}" for n in range(60))
    async with turn.tool("run_shell", {"command": text}) as tool:
        rule = "commands with make"
        allowed = await tool.approve("Run it?", rule="shell", session_rule=rule, editable=True)
        tool.result("ran" if allowed else "not run")
    await turn.say("Allowed." if allowed else "Refused.")


def test_a_permission_is_one_form_and_a_letter_answers_it(tmp_path: Path) -> None:
    with (
        serving(app) as server,
        PseudoTerminal(command(server.http), tmp_path, size=(30, 80)) as person,
    ):
        person.until_at_rest()
        person.type("short\r")
        person.until_shown("? [y/s/e/n]")
        shown = person.shown
        assert [shown.count(one) for one in ("rm -rf", "make install", "Run it?")] == [1, 1, 1]
        assert [shown.count(one) for one in ("[y]", "[n]", "[s]", "[e]")] == [1, 1, 1, 1]
        person.until(lambda: "1 s · Ctrl-C stops" in person.shown)  # it can have been read
        person.type("n")
        person.until_at_rest("Refused.")


def test_an_input_that_is_higher_than_the_screen_is_printed_whole(tmp_path: Path) -> None:
    with (
        serving(app) as server,
        PseudoTerminal(command(server.http), tmp_path, size=(24, 80)) as person,
    ):
        person.until_at_rest()
        person.type("long\r")
        person.until_shown("? [y/s/e/n]")
        person.until(lambda: "line 0" in "\n".join(person.paper))
        person.until(lambda: "1 s · Ctrl-C stops" in person.shown)
        person.type("y")
        person.until_at_rest("Allowed.")
