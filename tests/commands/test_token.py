"""`arp token`: tokens are created, listed and revoked, in a file beside the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arp.access.tokens import IssuedToken, Tokens
from arp.cli import main
from arp.commands.token import table

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `arp token …` in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["token", *arguments])


def test_token_of_a_target_lets_its_user_in_for_a_time(run: Run) -> None:
    began = time.time()
    made = run("create", "--user", "ann", "--for", "30d", "--ledger", "app.py", "--role", "admin")
    assert made.exit_code == 0
    tokens = Tokens(Path(".arp/app.tokens"))
    found = tokens.find(made.stdout.strip(), time.time())
    tokens.close()
    assert found is not None
    assert (found.user, found.roles) == ("ann", ("admin",))
    assert found.expires_at is not None
    assert 30 * 86_400 <= found.expires_at - began < 30 * 86_400 + 60
    assert f"Token {found.id} gives ann access until " in made.stderr
    assert made.stdout.strip() not in made.stderr


def test_list_shows_what_became_of_each_and_no_secret(run: Run) -> None:
    place = ("--ledger", "sqlite:l.db")
    first = run("create", "--user", "ann", "--for", "forever", "--note", "laptop", *place)
    second = run("create", "--user", "bob", *place)
    ids = [made.stdout.split("_")[1] for made in (first, second)]
    revoked = run("revoke", ids[1], *place)
    assert revoked.output == f"revoked {ids[1]} of bob\n"
    listed = run("list", *place)
    _, ann, bob = listed.output.splitlines()
    assert ann.split() == [ids[0], "ann", "valid", "forever", "laptop"]
    assert bob.split()[:3] == [ids[1], "bob", "revoked"]
    rows = [json.loads(line) for line in run("list", "--json", *place).output.splitlines()]
    assert [(row["user"], "revoked_at" in row) for row in rows] == [("ann", False), ("bob", True)]
    assert first.stdout.strip().split("_", 2)[2] not in listed.output + str(rows)


def test_all_tokens_of_a_user_are_revoked_together(run: Run) -> None:
    place = ("--ledger", "l.db")
    for user in ("ann", "ann", "bob"):
        run("create", "--user", user, *place)
    assert run("revoke", "--user", "ann", *place).output.count("revoked") == 2
    states = [line.split()[1:3] for line in run("list", *place).output.splitlines()[1:]]
    assert states == [["ann", "revoked"], ["ann", "revoked"], ["bob", "valid"]]
    again = run("revoke", "--user", "ann", *place)
    assert again.stderr == "arp: There is no valid token of user 'ann' in l.tokens.\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "--user", "ann"), "There is no ledger in .arp/ here; name it: --ledger app.py"),
        (("create", "--user", "", "--ledger", "l.db"), "--user: expected a name of up to 200"),
        (("create", "--user", "a\n", "--ledger", "l.db"), "--user: expected a name of up to 200"),
        (
            ("create", "--user", "a", "--for", "30", "--ledger", "l.db"),
            "expected a time as 30d, 12h, 15m or 90s, or forever, got '30'",
        ),
        (("create", "--user", "a", "--for", "0d", "--ledger", "l.db"), "expected a time as 30d"),
        (("create", "--user", "a", "--for", "99999w", "--ledger", "l.db"), "expected a time"),
        (("create", "--user", "a", "--ledger", "memory:"), "A ledger in memory has no tokens"),
        (("create", "--user", "a", "--ledger", "mysql:x"), "no ledger of kind 'mysql:'"),
        (("revoke", "--ledger", "l.db"), "Give the ID of a token, as arp token list shows it"),
        (("revoke", "x", "--ledger", "l.db"), "There is no token 'x' in l.tokens"),
    ],
)
def test_wrong_argument_is_said_in_one_line(
    run: Run, arguments: tuple[str, ...], says: str
) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert says.lower() in result.stderr.lower()
    assert result.stderr.count("\n") == 1
    assert not Path("l.tokens").exists()


def test_the_only_ledger_here_is_meant_where_none_is_named(run: Run) -> None:
    Path(".arp").mkdir()
    Path(".arp/app.db").touch()
    assert run("create", "--user", "ann").exit_code == 0
    assert Path(".arp/app.tokens").exists()
    Path(".arp/other.db").touch()
    refused = run("list")
    assert "several ledgers here (.arp/app.db, .arp/other.db)" in refused.stderr


def test_file_that_is_no_database_is_said_in_one_line(run: Run) -> None:
    Path("l.tokens").write_text("something else " * 100)
    result = run("list", "--ledger", "l.db")
    assert result.stderr == "arp: l.tokens cannot be used: file is not a database.\n"


def test_nothing_is_said_to_be_nothing(run: Run) -> None:
    assert run("list", "--ledger", "l.db").output == "no tokens\n"


def test_name_of_a_user_shows_every_character_and_a_long_note_is_cut() -> None:
    issued = IssuedToken("0123456789ab", "an\x07n", 0.0, 60.0, note="word " * 40)
    line = table([issued], 0.0, 80)[1]
    assert "an␇n" in line
    assert line.endswith("…")
