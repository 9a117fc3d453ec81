"""Tokens that expire and can be revoked: what is stored, and what is let in."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from arp.access.tokens import IssuedToken, TokenFile, Tokens, new_token_id

NOW = 1_800_000_000.0


def issue(path: Path, user: str = "ann", **more: object) -> tuple[str, IssuedToken]:
    """Creates a token for an hour."""
    given = {"expires_at": NOW + 3600, **more}
    issued = IssuedToken(new_token_id(), user, NOW, **given)  # type: ignore[arg-type]
    return TokenFile(path).create(issued), issued


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "app.tokens"


def test_token_lets_its_user_in_until_it_expires(path: Path) -> None:
    text, issued = issue(path, roles=("admin",), note="laptop")
    tokens = Tokens(path)
    assert tokens.find(text, NOW + 3599) == issued
    assert tokens.find(text, NOW + 3600) is None
    assert tokens.is_valid(issued.id, NOW + 3599)
    assert not tokens.is_valid(issued.id, NOW + 3600)
    tokens.close()


def test_revoked_token_is_seen_by_a_reader_that_has_the_file_open(path: Path) -> None:
    text, issued = issue(path)
    tokens = Tokens(path)
    assert tokens.find(text, NOW) == issued
    TokenFile(path).revoke(issued.id, NOW + 1)
    assert tokens.find(text, NOW) is None
    assert not tokens.is_valid(issued.id, NOW)
    (listed,) = TokenFile(path).tokens()
    assert (listed.revoked_at, listed.state(NOW)) == (NOW + 1, "revoked")
    assert TokenFile(path).revoke(issued.id, NOW + 9) == listed  # the first time counts
    tokens.close()


def test_token_that_is_created_later_is_seen_too(path: Path) -> None:
    tokens = Tokens(path)
    assert not tokens.are_used()
    text, issued = issue(path)
    assert tokens.are_used()
    assert tokens.find(text, NOW) == issued
    other, second = issue(path, "bob")
    assert tokens.find(other, NOW) == second
    tokens.close()


@pytest.mark.parametrize("text", ["", "arp_", "arp_0123456789ab_", "arp_0123456789ab_" + "x" * 43])
def test_text_that_is_no_token_lets_nobody_in(path: Path, text: str) -> None:
    issue(path)
    tokens = Tokens(path)
    assert tokens.find(text, NOW) is None
    tokens.close()


def test_wrong_secret_with_a_known_id_lets_nobody_in(path: Path) -> None:
    text, issued = issue(path)
    tokens = Tokens(path)
    last = "A" if text[-1] != "A" else "B"
    assert tokens.find(text[:-1] + last, NOW) is None
    assert tokens.find(text + "A", NOW) is None
    assert tokens.find(text, NOW) == issued
    tokens.close()


def test_file_holds_no_secret_and_is_for_its_owner_alone(path: Path) -> None:
    text, _ = issue(path)
    secret = text.split("_", 2)[2]
    assert secret.encode() not in path.read_bytes()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_deleted_file_lets_nobody_in_and_opens_nothing(path: Path) -> None:
    text, issued = issue(path)
    tokens = Tokens(path)
    assert tokens.find(text, NOW) == issued
    path.unlink()
    assert tokens.find(text, NOW) is None
    assert not tokens.is_valid(issued.id, NOW)
    assert tokens.are_used()
    again, second = issue(path)
    assert tokens.find(again, NOW) == second
    tokens.close()


def test_file_that_is_no_database_is_an_error_and_not_an_empty_list(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"something else" * 100)
    tokens = Tokens(path)
    with pytest.raises(sqlite3.DatabaseError):
        tokens.find("arp_0123456789ab_" + "x" * 43, NOW)
    tokens.close()


def test_file_without_a_table_has_no_token(path: Path) -> None:
    """A command creates the file first, and then the table in it."""
    path.parent.mkdir()
    path.touch()
    tokens = Tokens(path)
    assert tokens.find("arp_0123456789ab_" + "x" * 43, NOW) is None
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE other (x)")
    assert TokenFile(path).tokens() == []
    assert TokenFile(path.with_name("none")).tokens() == []
    assert TokenFile(path.with_name("none")).revoke("x", NOW) is None
    tokens.close()


def test_ledger_in_memory_has_no_tokens() -> None:
    tokens = Tokens(None)
    assert not tokens.are_used()
    assert tokens.find("arp_0123456789ab_" + "x" * 43, NOW) is None
