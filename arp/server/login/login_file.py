"""Logins that survive a restart, in a file beside the ledger.

Theory of operation. A row contains the hash of a cookie's secret, the end of the login, and the
identity. The identity is encrypted with a key that is derived from the secret. The server never
writes the secret, so a stolen file reveals neither users nor tokens of the provider. The settings
of the provider are part of the key: after a change of provider or claim, old logins cannot be read.
The write-ahead log is not synced: a power loss may lose the newest logins, and users sign in again.
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
    """Content of an encrypted row: an identity."""

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
        """Return the stored form of an identity."""
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
        """The stored identity."""
        user = User(self.name, self.display_name, self.roles, self.claims)
        return Identity(user, self.is_admin, self.id_token, self.refresh_token, self.renew_at)


class Seal:
    """Encryption of the row of one login.

    Args:
        secret: Secret in the cookie.
        oidc: Settings of the provider.
    """

    def __init__(self, secret: str, oidc: Oidc) -> None:
        from cryptography.fernet import Fernet

        settings = (oidc.issuer, oidc.client_id, oidc.user_claim, oidc.roles_claim, oidc.admin)
        content = msgspec.json.encode(("arp login", *settings))
        key = hmac.digest(secret.encode(), content, "sha256")
        self._fernet = Fernet(urlsafe_b64encode(key))

    def encrypt(self, identity: Identity) -> bytes:
        """Return an identity, encrypted so that only the secret in the cookie can decrypt it."""
        return self._fernet.encrypt(msgspec.msgpack.encode(StoredLogin.of(identity)))

    def decrypt(self, row: bytes) -> Identity | None:
        """Return the identity in a row; `None` if the settings of the provider have changed."""
        from cryptography.fernet import InvalidToken

        try:
            plain = self._fernet.decrypt(row)
            return msgspec.msgpack.decode(plain, type=StoredLogin).identity
        except (InvalidToken, msgspec.DecodeError):
            return None


class LoginFile:
    """The file of logins. Only one server uses it.

    Args:
        path: Path of the file. The first login creates it with mode 0600. With `None`, no login is
            stored.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def write(self, key: bytes, until: float, row: bytes, now: float) -> None:
        """Write a login, and remove logins that have ended.

        Raises:
            OSError, sqlite3.Error: The file cannot be written; nothing has changed.
        """
        if (db := self._open(is_new=True)) is not None:
            with db:
                db.execute("DELETE FROM login WHERE until <= ?", (now,))
                db.execute("INSERT OR REPLACE INTO login VALUES (?, ?, ?)", (key, until, row))

    def read(self, key: bytes, now: float) -> tuple[float, bytes] | None:
        """Return end and row of a login; `None` if there is none or it has ended.

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
            # SQLite would create the file with permissions that depend on the umask.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            # Only the thread of the event loop uses the connection. SQLite's check is off because
            # tests create a server in one thread and run it in another.
            db = sqlite3.connect(self._path, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(_SCHEMA)
            self._db = db
        return self._db
