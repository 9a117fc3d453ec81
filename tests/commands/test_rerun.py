"""`arp replay CASE --agent`: the same again, or the first difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from tests.commands.ledgers import ledger

APP = """
from arp import App, Turn

app = App(title="Again")


@app.agent
async def agent(turn: Turn) -> None:
    await turn.say("hello \\x1b[31mred\\n")
    try:
        async with turn.tool("read", {"path": "a"}):
            raise FileNotFoundError("a")
    except FileNotFoundError:
        await turn.say("it failed")
"""


@pytest.fixture
def case(tmp_path: Path) -> Path:
    file, target = ledger(tmp_path / "l.db", "s"), tmp_path / "case.json"
    words = ["evidence", "export", "s", "--ledger", f"sqlite:{file}", "--as", "case"]
    made = CliRunner().invoke(main, [*words, "-o", str(target)])
    assert made.exit_code == 0, made.output
    return target


def again(case: Path, program: str, *words: str) -> Result:
    app = case.with_name("app.py")
    app.write_text(program)
    return CliRunner().invoke(main, ["replay", str(case), "--agent", str(app), *words])


def test_an_agent_that_does_the_same_gives_no_difference(case: Path) -> None:
    done = again(case, APP)
    assert done.exit_code == 0, done.output
    assert "same  1 turns" in done.output


def test_the_first_difference_is_told_and_the_exit_code_is_one(case: Path) -> None:
    done = again(case, APP.replace("it failed", "it went wrong"))
    assert done.exit_code == 1
    assert "differs turn t1, fact 8: payload.text" in done.output
    assert 'expected "it failed"' in done.output
    assert 'found    "it went wrong"' in done.output


def test_it_is_told_as_json(case: Path) -> None:
    done = again(case, APP.replace('"read"', '"write"'), "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {
        "difference": {
            "turnId": "t1",
            "sequence": 5,
            "where": "payload.tool",
            "expected": "read",
            "found": "write",
        },
        "turns": 1,
    }
    assert json.loads(again(case, APP, "--json").stdout) == {"difference": None, "turns": 1}


def test_a_program_that_is_no_app_is_one_sentence(case: Path) -> None:
    done = again(case, "app = 1")
    assert done.exit_code == 1
    assert "No App object in" in done.stderr


def test_one_that_hangs_differs_after_its_time(case: Path) -> None:
    hangs = APP.replace("import App", "import App  # noqa\nimport asyncio\nfrom arp import App")
    hangs = hangs.replace("    try:", "    await asyncio.Event().wait()\n    try:")
    done = again(case, hangs, "--turn-s", "0.2")
    assert done.exit_code == 1
    assert "differs turn t1, fact 5: missing" in done.output
