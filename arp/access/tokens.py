"""Tokens that expire and can be revoked, in a file next to the ledger: `arp token create`.

Theory of operation. A token is `arp_ID_SECRET`. The file has the id and the SHA-256 of the secret.
The secret has 256 random bits, so a slow hash would add no protection. The commands write the file;
the server only reads it. Before each use, the server asks SQLite whether another process has
changed the file. That question is cheap: it reads one page from memory. So every change by a
command takes effect at once.
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
"""Prefix of every token, so that secret scanners can find leaked tokens."""

_FORM: Final = re.compile(r"arp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS token (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL,
        row BLOB NOT NULL
    ) WITHOUT ROWID
"""

_NO_HASH: Final = bytes(32)
"""Hash to compare with for an unknown id, so that the check takes as long as for a known id."""


class IssuedToken(Struct, frozen=True, omit_defaults=True):
    """A created token, without its secret."""

    id: str
    """Id in lists and for `arp token revoke`."""
    user: str
    created_at: float
    """Time of creation. All times are in seconds since the epoch."""
    expires_at: float | None = None
    """Time of expiry; `None` means never."""
    roles: tuple[str, ...] = ()
    note: str = ""
    """Purpose of the token, written by its creator."""
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        """Return whether the token gives access."""
        is_over = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is None and not is_over

    def state(self, now: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.is_valid(now) else "expired"


class TokenFile:
    """Writes the tokens of a ledger. Used by the commands.

    Args:
        path: Path of the file. The first token creates it, readable only by its owner (0600).

    Raises:
        OSError, sqlite3.Error: The file cannot be used; nothing has changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self, token: IssuedToken) -> str:
        """Write a token; return its text, which cannot be shown again."""
        secret = secrets.token_urlsafe(32)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite would create the file with permissions that depend on the umask.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self._path)) as db, db:
            db.execute(_SCHEMA)
            row = msgspec.json.encode(token)
            db.execute("INSERT INTO token VALUES (?, ?, ?)", (token.id, _hash(secret), row))
        return f"{PREFIX}{token.id}_{secret}"

    def tokens(self) -> list[IssuedToken]:
        """Return all tokens, including expired and revoked ones, oldest first."""
        if not self._path.exists():
            return []
        with closing(_open_read_only(self._path)) as db:
            found = [token for token, _ in _rows(db).values()]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def revoke(self, token_id: str, now: float) -> IssuedToken | None:
        """Revoke a token permanently; return it, or `None` if there is no token with this id."""
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
    """Return an id for a new token."""
    return secrets.token_hex(6)


class Tokens:
    """Reads the tokens of a ledger. Used by the server, which sees changes by commands at once.

    Args:
        path: Path of the file, which need not exist yet; `None` if there can be no tokens.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._version: tuple[int, int, int] | None = None
        self._rows: dict[str, tuple[IssuedToken, bytes]] = {}
        self._has_existed = False

    @property
    def may_be_created(self) -> bool:
        """Whether a command can create tokens while the server runs."""
        return self._path is not None

    def are_used(self) -> bool:
        """Return whether the file exists or has existed. Then every client needs a token.

        Deleting the file must not open the server to everyone.
        """
        if not self._has_existed and self._path is not None:
            self._has_existed = self._path.exists()
        return self._has_existed

    def find(self, text: str, now: float) -> IssuedToken | None:
        """Return the valid token with a text, or `None`.

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
        """Return whether a token is still valid.

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
        # If the file was replaced, the open connection would still read the old one.
        if self._version is None or self._version[:2] != (stat.st_dev, stat.st_ino):
            self.close()
            self._db = _open_read_only(self._path)
        assert self._db is not None
        version = (stat.st_dev, stat.st_ino, self._db.execute("PRAGMA data_version").fetchone()[0])
        if version != self._version:
            self._rows = _rows(self._db)
            self._version = version


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _open_read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    # Only the thread of the event loop uses the connection. SQLite's check is off because tests
    # create a server in one thread and run it in another.
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _rows(db: sqlite3.Connection) -> dict[str, tuple[IssuedToken, bytes]]:
    has_table = "SELECT 1 FROM sqlite_master WHERE name = 'token'"
    if db.execute(has_table).fetchone() is None:  # a command has created only the file so far
        return {}
    found = db.execute("SELECT id, hash, row FROM token").fetchall()
    return {name: (msgspec.json.decode(row, type=IssuedToken), hash_) for name, hash_, row in found}
