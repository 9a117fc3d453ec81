"""The location of a ledger: `memory:`, `sqlite:PATH`, a path, `postgresql://…`, or a target.

Data that belongs to a ledger but is stored outside of it (blobs, tokens, logins, hashes of recent
start tokens) is in files on this machine: beside the file of the ledger, or, for a database, in
`.arp`, under a name made from the first host, its port and the name of the database
(`PostgresLocation.file_stem`).

A target is what is served: `app.py`, `app.py:NAME` or a module. Each target has its own file in the
directory `.arp` of the working directory, so that two apps can be served at the same time. Earlier
versions had one file for all targets, `.arp/ledger.db`. If an agent of an app has sessions in that
file, it remains the ledger of the app until a file with the app's own name exists.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from arp.store.blobs import Blobs, BlobStore, MemoryBlobs
from arp.store.errors import StoreError, StoreUnavailable
from arp.store.memory import MemoryStore
from arp.store.postgres.location import PostgresLocation, is_postgres
from arp.store.reader import SessionQuery, list_sessions
from arp.store.schema import open_read_only
from arp.store.sqlite import SqliteStore
from arp.store.store import Store

if TYPE_CHECKING:
    from arp.store.postgres.store import PostgresStore

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""A scheme. It has at least two characters, so that `C:\\ledger.db` is a path."""

DIRECTORY: Final = Path(".arp")
SHARED: Final = DIRECTORY / "ledger.db"
"""The ledger that all targets shared in earlier versions."""

MAX_NAME: Final = 80
"""Maximum number of characters of a file name without its suffix.

File systems allow 255 bytes, and suffixes such as `.blobs` and `.db-wal` are appended.
"""

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_OBJECT: Final = re.compile(r"(?P<module>.{2,}):(?P<name>[^\W\d]\w*)", re.DOTALL)
"""A target with a name. Two or more characters precede the colon, because `C:app.py` is a path."""

_PYTHON_FILE: Final = re.compile(r"\.py(:\w+)?$")
_SCHEMES: Final = ("sqlite:", "memory:", "nats:", "postgresql:", "postgres:")

_LOCATIONS: Final = "sqlite:PATH, postgresql://… or memory:"


def open_store(location: str) -> Store:
    """Return the store that `location` names, not yet opened.

    Args:
        location: `memory:`, `sqlite:PATH`, a path, or `postgresql://…`.

    Raises:
        StoreUnavailable: The location is not valid, or the packages for it are not installed.
    """
    if is_postgres(location):
        return open_postgres(location)
    path = path_of(location)
    return MemoryStore() if path is None else SqliteStore(path)


def open_postgres(location: str, *, read_only: bool = False) -> PostgresStore:
    """Return the store in a database, not yet opened.

    Raises:
        StoreUnavailable: The location is not valid, or the extra `postgres` is not installed.
    """
    try:
        from arp.store.postgres.store import PostgresStore
    except ImportError as missing:
        if (missing.name or "psycopg").partition(".")[0] != "psycopg":
            raise
        raise StoreUnavailable(
            "a ledger in PostgreSQL needs psycopg, which is not installed here; run: "
            "pip install 'agent-rendering-protocol[postgres]'"
        ) from missing
    return PostgresStore(location, read_only=read_only)


def open_blobs(location: str) -> Blobs:
    """Return the blobs that belong to the store at the same `location`.

    The blobs of `sqlite:.arp/ledger.db` are in the directory `.arp/ledger.blobs`, those of
    `postgresql://db:5432/arp` in `.arp/db-5432-arp.blobs`. Call this only while the store is open,
    because it deletes the unfinished files of a killed process.

    Raises:
        StoreUnavailable: The location is not valid.
    """
    path = path_of(location)
    if path is None:
        return MemoryBlobs()
    blobs = BlobStore(path.with_suffix(".blobs"))
    blobs.sweep()
    return blobs


def tokens_of(location: str) -> Path | None:
    """Return the path of the file with the tokens for a ledger; `None` for memory.

    Raises:
        StoreUnavailable: The location is not valid.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".tokens")


def logins_of(location: str) -> Path | None:
    """Return the path of the file with the logins for a ledger; `None` for memory.

    Raises:
        StoreUnavailable: The location is not valid.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".logins")


def starts_of(location: str) -> Path | None:
    """Return the path of the file with the token hashes of recent starts; `None` for memory.

    A server makes a new access token each time it starts.

    Raises:
        StoreUnavailable: The location is not valid.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".starts")


def password_of(location: str) -> str:
    """Return the password in the location of a database, to be redacted; empty if it has none."""
    try:
        return PostgresLocation(location).password if is_postgres(location) else ""
    except StoreUnavailable:
        return ""  # opening the ledger reports the error


def path_of(location: str) -> Path | None:
    """Return the path of a ledger file; `None` for memory.

    For a database, no file has this path. Its files on this machine have the path with another or
    an additional suffix.

    Raises:
        StoreUnavailable: The location is not valid.
    """
    match = _SCHEME.match(location)
    scheme = match[1].lower() if match else "sqlite"
    rest = location[match.end() :] if match else location
    if scheme == "memory":
        return None
    if is_postgres(location):
        return DIRECTORY / f"{PostgresLocation(location).file_stem}.pg"
    if scheme == "nats":
        raise StoreUnavailable(f"nats: ledgers are not available in this version; use {_LOCATIONS}")
    if scheme != "sqlite":
        raise StoreUnavailable(f"no ledger of kind {scheme + ':'!r:.40}; use {_LOCATIONS}")
    if not rest:
        raise StoreUnavailable("sqlite: needs the path of a file, as in sqlite:.arp/ledger.db")
    return Path(rest)


def ledger_of(target: str) -> Path:
    r"""Return the path of a target's own ledger file, relative to the working directory.

    The file need not exist. `app.py`, `./app.py`, `app` and `app.py:app` are the same target, with
    the ledger `.arp/app.db`. The ledger of `demos/app.py` is `.arp/demos-app.db`, and the ledger of
    `app.py:sales` is `.arp/app-sales.db`. If the target is outside the working directory, the name
    contains a hash of its path.
    """
    match = _OBJECT.fullmatch(target)
    module, name = (match["module"], match["name"]) if match else (target, "app")
    parts = list(_parts(module))
    if name != "app":
        parts.append(name)
    stem = _UNSAFE.sub("_", "-".join(parts)).lstrip(".-") or "app"
    if len(stem) > MAX_NAME:
        stem = f"{stem[: MAX_NAME - 9]}-{_hash(stem)}"
    return DIRECTORY / f"{stem}.db"


def default_ledger(target: str, agents: Iterable[str]) -> Path:
    """Return the path of the ledger file to use for a target that is served.

    This is the target's own file. If that file does not exist and one of the agents has sessions
    in `.arp/ledger.db`, it is `.arp/ledger.db`.

    Args:
        target: Target, as on the command line.
        agents: Names of the agents of the app.
    """
    own = ledger_of(target)
    return SHARED if not own.exists() and _has_sessions_of(SHARED, agents) else own


def ledger_to_read(location: str) -> str:
    """Return the location of a ledger to read.

    Args:
        location: Location of the ledger, or the target that it belongs to. A text that ends in
            `.py` or `.py:NAME` is a target, and so is the name of a module that has a ledger in
            `.arp`.

    Returns:
        For a location, the same text. For a target, the location of its own file, or of
        `.arp/ledger.db` if only that file exists. The target is not loaded.
    """
    if location.lower().startswith(_SCHEMES):
        return location
    own = ledger_of(location)
    is_path = Path(location).exists() or not own.exists()
    if is_path and not _PYTHON_FILE.search(location):
        return location
    return f"sqlite:{SHARED if not own.exists() and SHARED.exists() else own}"


def _parts(module: str) -> Iterable[str]:
    """Return the parts of the ledger's name for a module or the path of a Python file."""
    path = Path(module)
    if path.suffix != ".py" and not path.is_file():  # the name of a module
        return module.split(".")
    # Not `resolve()`: a symbolic link is a target with its own name.
    absolute = Path(os.path.abspath(path))
    try:
        return absolute.relative_to(Path.cwd()).with_suffix("").parts
    except ValueError:
        return (absolute.stem, _hash(str(absolute)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _has_sessions_of(path: Path, agents: Iterable[str]) -> bool:
    """Return whether a ledger file has a session of one of these agents.

    Return `True` also if the file cannot be read. It may have sessions of the app, so the server
    must open it and report the problem, instead of silently creating a new file.
    """
    try:
        if not path.stat().st_size:  # a server was killed while it created the file
            return False
    except OSError:
        return False
    try:
        with closing(open_read_only(path)) as db:
            return any(list_sessions(db, SessionQuery(workflow=name), 1) for name in agents)
    except (StoreError, sqlite3.Error, msgspec.DecodeError):
        return True
