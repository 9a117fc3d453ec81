"""`arp replay`: a recording on the screen, or as messages for any renderer."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from arp.commands.replay.playing import pace_messages
from arp.ledger.fact import Fact
from tests.commands.ledgers import ledger
from tests.ledger.historian import Historian


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["replay", *words])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ledger(tmp_path_factory.mktemp("ledger") / "l.db", "s")


@pytest.fixture(scope="module")
def pack(file: Path) -> Path:
    target = file.with_name("s.zip")
    words = ["evidence", "export", "s", "--ledger", f"sqlite:{file}", "-o", str(target)]
    assert CliRunner().invoke(main, words).exit_code == 0
    return target


def test_the_ledger_of_a_target_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger(Path(".arp/app.db"), "s")
    drawn = run("app.py", "--session", "s", "--speed", "0")
    assert drawn.exit_code == 0, drawn.output
    assert "hello" in drawn.output


def test_a_session_of_a_ledger_is_drawn_as_it_was(file: Path) -> None:
    drawn = run(str(file), "--session", "s", "--speed", "0")
    assert drawn.exit_code == 0, drawn.output
    assert "hello" in drawn.output
    assert "it failed" in drawn.output
    assert "\x1b[31m" not in drawn.output


def test_a_pack_and_its_ledger_give_the_same_messages(file: Path, pack: Path) -> None:
    from_file = run(str(file), "--session", "s", "--speed", "0", "--json")
    from_pack = run(str(pack), "--speed", "0", "--json")
    assert from_file.exit_code == from_pack.exit_code == 0
    assert from_pack.stdout == from_file.stdout
    types = [json.loads(line)["type"] for line in from_pack.stdout.splitlines()]
    assert types == [
        *("input", "turn", "delta", "tool_start", "tool_end", "delta", "turn", "commit"),
    ]


def test_the_messages_can_be_drawn_by_arp_render(pack: Path) -> None:
    messages = run(str(pack), "--speed", "0", "--json").stdout
    drawn = CliRunner().invoke(main, ["render"], input=messages)
    assert drawn.exit_code == 0
    assert "it failed" in drawn.output


def test_a_pack_of_a_part_says_that_it_begins_in_the_middle(file: Path) -> None:
    target = file.with_name("t1.zip")
    words = ["evidence", "export", "s", "--ledger", f"sqlite:{file}", "--turn", "t1"]
    assert CliRunner().invoke(main, [*words, "-o", str(target)]).exit_code == 0
    drawn = run(str(target), "--speed", "0", "--json")
    assert drawn.exit_code == 0
    assert "begins at fact 2; it does not contain what was on the screen before." in drawn.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing.zip",), "there is no pack nothing.zip"),
        (("FILE",), "is no pack"),
        (("FILE", "--session", "z"), "No session 'z'"),
        (("nothing.db", "--session", "s"), "nothing.db"),
        (("FILE", "--agent", "app.py"), "no replay case"),
        (("nothing.json", "--agent", "app.py"), "nothing.json: No such file or directory"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(
    file: Path, words: tuple[str, ...], sentence: str
) -> None:
    failed = run(*(str(file) if word == "FILE" else word for word in words))
    assert failed.exit_code == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith("arp: ")
    assert sentence in line


def test_it_waits_as_long_as_it_was_and_shows_before_what_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Historian()
    own = {"thread_id": "main", "turn_id": "t1"}
    facts: list[Fact] = [
        msgspec.structs.replace(
            told.add("model.delta", {"text": word}, **own), timestamp=f"2026-01-02T03:04:{at}Z"
        )
        for word, at in (("a", "05"), ("b", "07"), ("c", "07"))
    ]
    happened: list[object] = []

    class Out(io.StringIO):
        def flush(self) -> None:
            happened.append("flush")

    monkeypatch.setattr("time.sleep", happened.append)
    for line in pace_messages(facts, 4, Out()):
        happened.append(json.loads(line)["payload"]["delta"])  # noqa: PERF401 - in between
    assert happened == ["a", "flush", 0.5, "b", "c"]
