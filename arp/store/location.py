"""The location of a ledger: `memory:`, `sqlite:PATH`, a path, or the target that is served.

A target is `app.py`, `app.py:NAME` or a module. Each has its own file in `.arp` of the working
directory, so that two agents can be served at the same time. Earlier versions had one file for all
targets, `.arp/ledger.db`. It is still the ledger of an app whose agents have sessions in it, until
there is a file with the app's own name.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from arp.store.blobs import Blobs, BlobStore, MemoryBlobs
from arp.store.errors import StoreError, StoreUnavailable
from arp.store.memory import MemoryStore
from arp.store.reader import SessionQuery, list_sessions
from arp.store.schema import open_read_only
from arp.store.sqlite import SqliteStore
from arp.store.store import Store

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""At least two characters, so that `C:\\ledger.db` is a path."""

DIRECTORY: Final = Path(".arp")
SHARED: Final = DIRECTORY / "ledger.db"
"""The file that all targets shared in earlier versions."""

MAX_NAME: Final = 80
"""Characters of a name; file systems allow 255 bytes, and `.blobs` or `.db-wal` is appended."""

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_OBJECT: Final = re.compile(r"(?P<module>.{2,}):(?P<name>[^\W\d]\w*)", re.DOTALL)
"""At least two characters before the colon, so that `C:app.py` is a path."""

_IS_FILE: Final = re.compile(r"\.py(:\w+)?$")
_SCHEMES: Final = ("sqlite:", "memory:", "nats:")


def open_store(location: str) -> Store:
    """Return the store that `location` names, not yet opened.

    Args:
        location: `memory:`, `sqlite:PATH`, or a path.

    Raises:
        StoreUnavailable: It has another scheme, or is `sqlite:` without a path.
    """
    path = path_of(location)
    return MemoryStore() if path is None else SqliteStore(path)


def open_blobs(location: str) -> Blobs:
    """Return the blobs that belong to the store of the same `location`.

    For `sqlite:.arp/ledger.db` that is the directory `.arp/ledger.blobs`. Call it while the store
    is open: it removes unfinished files of a killed process.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    path = path_of(location)
    if path is None:
        return MemoryBlobs()
    blobs = BlobStore(path.with_suffix(".blobs"))
    blobs.sweep()
    return blobs


def tokens_of(location: str) -> Path | None:
    """Return the file with the tokens of a ledger, in the same directory; `None` for memory.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".tokens")


def logins_of(location: str) -> Path | None:
    """Return the file with the logins of a ledger, in the same directory; `None` for memory.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".logins")


def starts_of(location: str) -> Path | None:
    """Return the file with the tokens of the newest starts of a server; `None` for memory.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    path = path_of(location)
    return None if path is None else path.with_suffix(".starts")


def path_of(location: str) -> Path | None:
    """Return the path of a ledger file; `None` for memory.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    match = _SCHEME.match(location)
    scheme = match[1].lower() if match else "sqlite"
    rest = location[match.end() :] if match else location
    if scheme == "memory":
        return None
    if scheme == "nats":
        raise StoreUnavailable(
            "nats: ledgers are not available in this version; use sqlite:PATH or memory:"
        )
    if scheme != "sqlite":
        raise StoreUnavailable(
            f"no ledger of kind {scheme + ':'!r:.40}; use sqlite:PATH, a path, or memory:"
        )
    if not rest:
        raise StoreUnavailable("sqlite: needs the path of a file, as in sqlite:.arp/ledger.db")
    return Path(rest)


def ledger_of(target: str) -> Path:
    r"""Return the target's own ledger file, below the working directory; it need not exist.

    `app.py`, `./app.py`, `app` and `app.py:app` are one target: `.arp/app.db`. `demos/app.py` has
    `.arp/demos-app.db`, `app.py:sales` has `.arp/app-sales.db`. A file outside the working
    directory has a hash of its path in the name.
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
    """Return the ledger file with which a target is served.

    That is its own file; or `.arp/ledger.db` while the target has no file of its own and one of
    its agents has sessions in that one.

    Args:
        target: As on the command line.
        agents: Names of the agents of its app.
    """
    own = ledger_of(target)
    return SHARED if not own.exists() and _has_sessions_of(SHARED, agents) else own


def ledger_to_read(location: str) -> str:
    """Return the location of a ledger to read, named by its location or its target.

    A text that ends in `.py` or `.py:NAME` is a target, and so is the name of a module that has a
    ledger here. The target is not loaded: if it has no file of its own, the result is
    `.arp/ledger.db` if that exists. Every other text is returned as it is.
    """
    own = ledger_of(location)
    is_path = Path(location).exists() or not own.exists()
    if location.lower().startswith(_SCHEMES) or (is_path and not _IS_FILE.search(location)):
        return location
    return f"sqlite:{SHARED if not own.exists() and SHARED.exists() else own}"


def _parts(module: str) -> Iterable[str]:
    """Return the parts of the file name for a module or the path of one."""
    path = Path(module)
    if path.suffix != ".py" and not path.is_file():  # the name of a module
        return module.split(".")
    absolute = Path(os.path.abspath(path))  # not resolve(): a link keeps its own name
    try:
        return absolute.relative_to(Path.cwd()).with_suffix("").parts
    except ValueError:
        return (absolute.stem, _hash(str(absolute)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _has_sessions_of(path: Path, agents: Iterable[str]) -> bool:
    """Return whether a ledger file has a session of one of these agents.

    `True` for a file that cannot be read: it may have sessions of the app, so the server opens it
    and reports what is wrong with it, instead of creating a new file silently.
    """
    try:
        if not path.stat().st_size:  # left by a server that was killed while it started
            return False
    except OSError:
        return False
    try:
        with closing(open_read_only(path)) as db:
            return any(list_sessions(db, SessionQuery(workflow=name), 1) for name in agents)
    except (StoreError, sqlite3.Error, msgspec.DecodeError):
        return True
