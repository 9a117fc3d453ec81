"""`arp events`: what happened, from a file and from a server, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from tests.commands.ledgers import ledger
from tests.server import worker
from tests.store import tampering
from tests.support.serving import serving

TYPES = [
    "session.created",
    "turn.submitted",
    "turn.started",
    "model.delta",
    "tool.started",
    "tool.args",
    "tool.failed",
    "model.delta",
    "turn.completed",
]


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(main, [*arguments], **options)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ledger(tmp_path_factory.mktemp("ledger") / "l.db", "s")


def test_each_fact_is_a_line_without_control_characters(file: Path) -> None:
    result = run("events", "s", "--ledger", f"sqlite:{file}")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[2] for line in lines] == TYPES
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert lines[1].endswith('{"text":"read\\u0007 it"}')
    assert "tool=read" in lines[6]


def test_failures_are_red_where_colours_are_seen(file: Path) -> None:
    result = run("events", "s", "--ledger", str(file), "--type", "tool.failed", color=True)
    assert "\x1b[31mtool.failed" in result.output


def test_json_is_what_is_stored(file: Path) -> None:
    result = run("events", "s", "--ledger", str(file), "--json")
    facts = [json.loads(line) for line in result.output.splitlines()]
    assert [fact["type"] for fact in facts] == TYPES
    assert [fact["sequence"] for fact in facts] == list(range(1, 10))


def test_only_what_is_asked_for_is_shown(file: Path) -> None:
    options = ("--json", "--type", "turn", "--type", "tool.failed", "--after", "2")
    result = run("events", "s", "--ledger", str(file), *options)
    found = [json.loads(line)["type"] for line in result.output.splitlines()]
    assert found == ["turn.started", "tool.failed", "turn.completed"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none", "--ledger", "{file}"), "No session 'none' in"),
        (("s", "--ledger", "/nowhere/l.db"), "There is no ledger"),
        (("s", "--ledger", "memory:"), "ends with its process"),
        (("s", "--url", "http://127.0.0.1:1"), "No server answers at http://127.0.0.1:1"),
        (("s", "--url", "localhost"), "write it as http://HOST:PORT"),
    ],
)
def test_what_is_wrong_is_one_sentence(file: Path, arguments: tuple[str, ...], words: str) -> None:
    result = run("events", *(one.format(file=file) for one in arguments))
    assert result.exit_code == 1
    assert result.stderr.startswith("arp: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def follow(*arguments: str) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", "arp.cli", "events", "s", "--follow", "--json", *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def types_of(process: subprocess.Popen[str], last: str) -> list[str]:
    """Reads until a turn of that id has ended."""
    assert process.stdout is not None
    found: list[str] = []
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        fact = json.loads(process.stdout.readline())
        found.append(fact["type"])
        if fact["type"] == "turn.completed" and fact["turnId"] == last:
            return found
    raise AssertionError(found)


def test_followed_server_tells_what_comes() -> None:
    with serving(worker.app) as server:
        say(server.port)
        following = follow("--url", server.http, "--type", "turn")
        try:
            assert types_of(following, "t1") == ["turn.submitted", "turn.started", "turn.completed"]
            say(server.port)
            assert types_of(following, "t2") == ["turn.submitted", "turn.started", "turn.completed"]
        finally:
            following.kill()
            following.communicate()


def test_followed_file_tells_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with serving(worker.app, ledger=f"sqlite:{path}") as server:
        say(server.port)
        following = follow("--ledger", str(path), "--type", "turn")
        try:
            types_of(following, "t1")
            say(server.port)
            assert types_of(following, "t2") == ["turn.submitted", "turn.started", "turn.completed"]
        finally:
            following.kill()
            following.communicate()


def say(port: int) -> None:
    """Lets a turn of session `s` begin."""
    import httpx

    body = {"message": "hello", "session_id": "s"}
    httpx.post(f"http://127.0.0.1:{port}/worker", json=body).raise_for_status()


def test_server_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.commands.ledger.server_reader.PAGE", 2)
    with serving(worker.app) as server:
        say(server.port)
        result = run("events", "s", "--url", server.http, "--json")
        found = [json.loads(line)["sequence"] for line in result.output.splitlines()]
        assert found == list(range(1, len(found) + 1))
        missing = run("events", "none", "--url", server.http)
        assert "no session 'none'" in missing.stderr
        unknown = run("events", "none", "--url", server.http, "--follow")
        assert "no session 'none'" in unknown.stderr


# -- verify ----------------------------------------------------------------------------------------


def test_facts_are_compared_with_the_hashes_that_the_file_keeps(file: Path, tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.db", "s", "other")
    good = run("events", "s", "--ledger", str(path), "--verify")
    assert good.exit_code == 0, good.output
    first, second = good.output.splitlines()
    assert first == "good  9 facts"
    assert second.startswith("head 9 ")
    changed = tampering.change(path, b"it failed", b"it worked")
    bad = run("events", "s", "--ledger", str(path), "--verify")
    assert bad.exit_code == 1
    assert "bad   one of the facts 1 to 9 is not what it was when its hash was kept" in bad.output
    assert "first bad sequence: 1" in bad.output
    assert changed == 8
    told = run("events", "s", "--ledger", str(path), "--verify", "--json")
    found = json.loads(told.output)
    assert (found["broken"]["sequence"], found["broken"]["through"]) == (1, 9)
    assert run("events", "other", "--ledger", str(path), "--verify").exit_code == 0
    assert run("events", "none", "--ledger", str(path), "--verify").exit_code == 1


def test_a_fact_that_does_not_pass_its_checksum_is_bad_for_verify_too(tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.db", "s")
    tampering.run(path, "UPDATE segment SET crc = crc + 1")
    bad = run("events", "s", "--ledger", str(path), "--verify")
    assert bad.exit_code == 1
    assert "first bad sequence: 1" in bad.output


def test_a_server_is_asked_to_verify_its_own_ledger(tmp_path: Path) -> None:
    path = ledger(tmp_path / "l.db", "s", "t")
    tampering.change(path, b"it failed", b"it worked")
    with serving(worker.app, ledger=f"sqlite:{path}") as server:
        bad = run("events", "s", "--url", server.http, "--verify")
        good = run("events", "t", "--url", server.http, "--verify")
    assert bad.exit_code == 1
    assert "first bad sequence: 1" in bad.output
    assert good.exit_code == 0, good.output
    assert "good  9 facts" in good.output


def test_facts_that_were_just_written_have_no_kept_hash_yet(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with serving(worker.app, ledger=f"sqlite:{path}") as server:
        say(server.port)
        following = follow("--url", server.http, "--type", "turn")
        try:
            types_of(following, "t1")
        finally:
            following.kill()
            following.communicate()
        found = run("events", "s", "--ledger", str(path), "--verify")
    assert found.exit_code == 0, found.output
    assert "no hash is stored yet for the facts 1 to" in found.output
