"""From what a person writes (`memory:`, `sqlite:PATH`, a path) to a store and its blobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from arp.store.blobs import Blobs, BlobStore, MemoryBlobs
from arp.store.errors import StoreUnavailable
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import Store

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""Two characters at least, so that `C:\\ledger.db` is a path."""


def open_store(location: str) -> Store:
    """Return the store that `location` names, not yet opened.

    Args:
        location: `memory:`, `sqlite:PATH`, or a path.

    Raises:
        StoreUnavailable: Another scheme, or `sqlite:` without a path.
    """
    path = path_of(location)
    return MemoryStore() if path is None else SqliteStore(path)


def open_blobs(location: str) -> Blobs:
    """Return the blobs that live beside the store of the same `location`.

    For `sqlite:.arp/ledger.db` that is the directory `.arp/ledger.blobs`. To be called while the
    store is open: what a killed process left unfinished is removed here.

    Raises:
        StoreUnavailable: As `open_store`.
    """
    path = path_of(location)
    if path is None:
        return MemoryBlobs()
    blobs = BlobStore(path.with_suffix(".blobs"))
    blobs.sweep()
    return blobs


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
