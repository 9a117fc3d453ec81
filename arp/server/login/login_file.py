"""Logins that outlast a restart, in a file beside the ledger.

Theory of operation. A row has the hash of a cookie's secret, the end of the login, and who that is,
encrypted with a key that is made of the secret. The server never writes the secret, so the file
tells a thief neither who has signed in nor any token of the provider. The settings of the provider
are in the key too: a login at another provider, or with another claim, cannot be read any more.
The write-ahead log is not synced: a power loss may take the last logins, and people sign in again.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from arp.access.oidc import Oidc
from arp.access.principal import User
from arp.server.login.oidc_provider import Identity

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS login (
        hash BLOB PRIMARY KEY,
        until REAL NOT NULL,
        row BLOB NOT NULL
    ) WITHOUT ROWID
"""


class StoredLogin(Struct, frozen=True, array_like=True):
    """Who has signed in, as it is encrypted in the file."""

    name: str
    display_name: str
    roles: tuple[str, ...]
    claims: dict[str, Any]
    is_admin: bool
    id_token: str
    refresh_token: str | None
    renew_at: float | None

    @classmethod
    def of(cls, identity: Identity) -> StoredLogin:
        """Return an identity as it is stored."""
        user = identity.user
        return cls(
            user.name,
            user.display_name,
            tuple(user.roles),
            dict(user.claims),
            identity.is_admin,
            identity.id_token,
            identity.refresh_token,
            identity.renew_at,
        )

    @property
    def identity(self) -> Identity:
        """The identity that was stored."""
        user = User(self.name, self.display_name, self.roles, self.claims)
        return Identity(user, self.is_admin, self.id_token, self.refresh_token, self.renew_at)


class Seal:
    """Encrypts the row of one login.

    Args:
        secret: Of the cookie.
        oidc: Where its user has signed in.
    """

    def __init__(self, secret: str, oidc: Oidc) -> None:
        from cryptography.fernet import Fernet

        place = (oidc.issuer, oidc.client_id, oidc.user_claim, oidc.roles_claim, oidc.admin)
        key = hmac.digest(secret.encode(), msgspec.json.encode(("arp login", *place)), "sha256")
        self._fernet = Fernet(urlsafe_b64encode(key))

    def close(self, identity: Identity) -> bytes:
        """Return an identity as nobody without the cookie can read it."""
        return self._fernet.encrypt(msgspec.msgpack.encode(StoredLogin.of(identity)))

    def open(self, row: bytes) -> Identity | None:
        """Return the identity; `None` if the provider's settings were others then."""
        from cryptography.fernet import InvalidToken

        try:
            plain = self._fernet.decrypt(row)
            return msgspec.msgpack.decode(plain, type=StoredLogin).identity
        except (InvalidToken, msgspec.DecodeError):
            return None


class LoginFile:
    """The file; one server uses it.

    Args:
        path: It is created for its owner alone (0600), with the first login; `None`: nothing is
            kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def write(self, key: bytes, until: float, row: bytes, now: float) -> None:
        """Write a login, and remove those that are over.

        Raises:
            OSError, sqlite3.Error: The file cannot be written; nothing has changed.
        """
        if (db := self._open(is_new=True)) is not None:
            with db:
                db.execute("DELETE FROM login WHERE until <= ?", (now,))
                db.execute("INSERT OR REPLACE INTO login VALUES (?, ?, ?)", (key, until, row))

    def read(self, key: bytes, now: float) -> tuple[float, bytes] | None:
        """Return the end and the row of a login that is not over.

        Raises:
            OSError, sqlite3.Error: The file cannot be read.
        """
        if (db := self._open()) is None:
            return None
        query = "SELECT until, row FROM login WHERE hash = ? AND until > ?"
        found: tuple[float, bytes] | None = db.execute(query, (key, now)).fetchone()
        return found

    def remove(self, key: bytes) -> None:
        """Remove a login.

        Raises:
            OSError, sqlite3.Error: The file cannot be written; the login is still there.
        """
        if (db := self._open()) is not None:
            with db:
                db.execute("DELETE FROM login WHERE hash = ?", (key,))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self, *, is_new: bool = False) -> sqlite3.Connection | None:
        if self._db is None and self._path is not None and (is_new or self._path.exists()):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            # The loop's thread alone uses it; a server in tests is made in another one.
            db = sqlite3.connect(self._path, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(_SCHEMA)
            self._db = db
        return self._db
