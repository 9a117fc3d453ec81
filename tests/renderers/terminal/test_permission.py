"""A permission at a terminal: one form with the whole input, and keys that need no Enter."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from arp import App, Turn
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.renderers.terminal.tmux import Tmux
from tests.support.serving import serving

app = App()
COMMAND = "rm -rf build && make\nmake install"

READ_S = 2
"""Seconds by the status line after which a question can have been read, so that a key answers.

The line shows whole seconds, so at least one has passed.
"""


def waited_s(shown: str) -> int:
    """Return the seconds that the status line shows; 0 if it shows none."""
    found = re.search(r"(\d+) s · Ctrl-C stops", shown)
    return int(found[1]) if found else 0


@app.agent
async def agent(turn: Turn) -> None:
    """Asks for permission, with a long input if that is wanted, or for three at once."""
    if turn.text == "three":
        await asyncio.gather(*[build(turn, name) for name in ("first", "second", "third")])
        return
    text = COMMAND if turn.text == "short" else "\n".join(f"line {n}" for n in range(60))
    async with turn.tool("run_shell", {"command": text}) as tool:
        rule = "commands with make"
        allowed = await tool.approve("Run it?", rule="shell", session_rule=rule, editable=True)
        tool.result("ran" if allowed else "not run")
    await turn.say("Allowed." if allowed else "Refused.")


async def build(turn: Turn, name: str) -> None:
    """Asks for one of three permissions; says how it was answered."""
    script = "\n".join(f"{name} line {number}" for number in range(20))
    async with turn.tool(name, {"script": script}) as tool:
        allowed = await tool.approve(f"Build {name}?", rule=name, session_rule=f"all of {name}")
        tool.result(f"{name} result" if allowed else "not run")
    await turn.say(f"{name} {'allowed' if allowed else 'refused'}. ")


def test_numbers_answer_three_permissions_and_show_a_tool_call(tmux: Tmux, tmp_path: Path) -> None:
    """The numbers are those of the page. `/tool` prints what the log has cut."""
    with serving(app) as server:
        tmux.start(command(server.http), tmp_path)
        tmux.type("three")
        begun = waited_s(tmux.until_shown("(question 1 of 3)"))
        tmux.until(lambda shown: waited_s(shown) >= begun + READ_S)
        tmux.do("send-keys", "3")
        tmux.until_shown("(question 1 of 2)")
        tmux.type("2")
        tmux.until(lambda shown: "(question" not in shown and "? [y/s/n]" in shown)
        tmux.type("1")
        shown = tmux.until_shown("third allowed.")
        assert "first refused." in shown
        assert "second allowed." in shown
        assert "✓ #2 second" in shown
        before, (_, cut) = shown.count("second line 19"), shown.split("✓ #2 second")
        assert "more lines" in cut
        tmux.type("/tool 2")
        shown = tmux.until(lambda shown: shown.count("second line 19") == before + 1)
        _, call = shown.split("· Tool call:")
        assert call.lstrip().startswith("✓ #2 second")
        assert "→ second result" in call


def test_a_permission_is_one_form_and_a_letter_answers_it(tmp_path: Path) -> None:
    with (
        serving(app) as server,
        PseudoTerminal(command(server.http), tmp_path, size=(30, 80)) as person,
    ):
        person.until_at_rest()
        person.type("short\r")
        person.until_shown("? [y/s/n/e]")
        shown = person.shown
        assert [shown.count(one) for one in ("rm -rf", "make install", "Run it?")] == [1, 1, 1]
        assert [shown.count(one) for one in ("[y]", "[n]", "[s]", "[e]")] == [1, 1, 1, 1]
        begun = waited_s(person.shown)
        person.until(lambda: waited_s(person.shown) >= begun + READ_S)
        person.type("n")
        person.until_at_rest("Refused.")


def test_an_input_that_is_higher_than_the_screen_is_printed_whole(tmp_path: Path) -> None:
    with (
        serving(app) as server,
        PseudoTerminal(command(server.http), tmp_path, size=(24, 80)) as person,
    ):
        person.until_at_rest()
        person.type("long\r")
        person.until_shown("? [y/s/n/e]")
        person.until(lambda: "line 0" in "\n".join(person.paper))
        begun = waited_s(person.shown)
        person.until(lambda: waited_s(person.shown) >= begun + READ_S)
        person.type("y")
        person.until_at_rest("Allowed.")
