"""Tokens that expire and can be revoked, in a file beside the ledger: `arp token create`.

Theory of operation. A token is `arp_ID_SECRET`. The file has the id, and SHA-256 of the secret: the
secret has 256 random bits, so a slow hash would protect nothing more. The commands write the file,
the server only reads it. The server asks SQLite before each use whether another process has changed
the file, which reads one page from memory; so whatever a command does holds at once.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

PREFIX: Final = "arp_"
"""With which every token begins, so that scanners of secrets can find one that leaked."""

_FORM: Final = re.compile(r"arp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS token (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL,
        row BLOB NOT NULL
    ) WITHOUT ROWID
"""

_NO_HASH: Final = bytes(32)
"""Is compared for an id that there is none of, so that the answer takes as long."""


class IssuedToken(Struct, frozen=True, omit_defaults=True):
    """A token that was created; never its secret."""

    id: str
    """Names it in lists and to `arp token revoke`."""
    user: str
    created_at: float
    """Seconds since 1970, as all times here."""
    expires_at: float | None = None
    """`None`: never."""
    roles: tuple[str, ...] = ()
    note: str = ""
    """What it is for."""
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        """Return whether it lets its user in."""
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not is_over

    def state(self, now: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.is_valid(now) else "expired"


class TokenFile:
    """Writes the tokens of a ledger; for the commands.

    Args:
        path: Of the file. It is created with the first token, for its owner alone (0600).

    Raises:
        OSError, sqlite3.Error: The file cannot be used; nothing has changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self, token: IssuedToken) -> str:
        """Write a token; return its text, which nothing can show again."""
        secret = secrets.token_urlsafe(32)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self._path)) as db, db:
            db.execute(_SCHEMA)
            row = msgspec.json.encode(token)
            db.execute("INSERT INTO token VALUES (?, ?, ?)", (token.id, _hash(secret), row))
        return f"{PREFIX}{token.id}_{secret}"

    def tokens(self) -> list[IssuedToken]:
        """Return all tokens, also expired and revoked ones, the oldest first."""
        if not self._path.exists():
            return []
        with closing(_reading(self._path)) as db:
            found = [token for token, _ in _rows(db).values()]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def revoke(self, token_id: str, now: float) -> IssuedToken | None:
        """Revoke a token for ever; return it, or `None` if there is none of that id."""
        if not self._path.exists():
            return None
        with closing(sqlite3.connect(self._path)) as db, db:
            found = _rows(db).get(token_id)
            if found is None:
                return None
            token, _ = found
            if token.revoked_at is None:
                token = msgspec.structs.replace(token, revoked_at=now)
                row = msgspec.json.encode(token)
                db.execute("UPDATE token SET row = ? WHERE id = ?", (row, token_id))
        return token


def new_token_id() -> str:
    """Return the id of a token that is to be created."""
    return secrets.token_hex(6)


class Tokens:
    """Reads the tokens of a ledger; for a server, which sees at once what a command changes.

    Args:
        path: Of the file, which need not exist yet; `None`: there are none, and never will be.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._version: tuple[int, int, int] | None = None
        self._rows: dict[str, tuple[IssuedToken, bytes]] = {}
        self._has_been = False

    @property
    def may_be_created(self) -> bool:
        """Whether a command can create some while the server runs."""
        return self._path is not None

    def are_used(self) -> bool:
        """Return whether there is such a file, or was one: then nobody comes in without anything.

        To delete the file must open no server.
        """
        if not self._has_been and self._path is not None:
            self._has_been = self._path.exists()
        return self._has_been

    def find(self, text: str, now: float) -> IssuedToken | None:
        """Return the token that a text is, if it is valid.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        match = _FORM.fullmatch(text)
        if match is None or not self.are_used():
            return None
        self._refresh()
        found = self._rows.get(match[1])
        is_right = hmac.compare_digest(_hash(match[2]), _NO_HASH if found is None else found[1])
        return found[0] if is_right and found is not None and found[0].is_valid(now) else None

    def is_valid(self, token_id: str, now: float) -> bool:
        """Return whether a token that was valid still is.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        self._refresh()
        found = self._rows.get(token_id)
        return found is not None and found[0].is_valid(now)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = self._version = None

    def _refresh(self) -> None:
        """Read the file if it has changed."""
        assert self._path is not None
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            self.close()
            self._rows = {}
            return
        if self._version is None or self._version[:2] != (stat.st_dev, stat.st_ino):
            self.close()
            self._db = _reading(self._path)
        assert self._db is not None
        version = (stat.st_dev, stat.st_ino, self._db.execute("PRAGMA data_version").fetchone()[0])
        if version != self._version:
            self._rows = _rows(self._db)
            self._version = version


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _reading(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    # The loop's thread alone uses it; a server in tests is made in another one than it runs in.
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _rows(db: sqlite3.Connection) -> dict[str, tuple[IssuedToken, bytes]]:
    has_table = "SELECT 1 FROM sqlite_master WHERE name = 'token'"
    if db.execute(has_table).fetchone() is None:  # a command is just creating it
        return {}
    found = db.execute("SELECT id, hash, row FROM token").fetchall()
    return {name: (msgspec.json.decode(row, type=IssuedToken), hash_) for name, hash_, row in found}
