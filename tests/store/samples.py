"""Facts, rows and files for the tests of the store."""

from __future__ import annotations

import shutil
from pathlib import Path

from arp.store.journal import AppendCall
from arp.store.memory import MemoryStore
from arp.store.session_list import SessionMeta
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, Store, append_all


def fact(sequence: int, session_id: str = "s1") -> bytes:
    """An encoded fact that tells where it belongs."""
    return b'{"sessionId":"%s","sequence":%d}' % (session_id.encode(), sequence)


def facts(first: int, last: int, session_id: str = "s1") -> list[bytes]:
    """The facts from `first` to `last`, both included."""
    return [fact(sequence, session_id) for sequence in range(first, last + 1)]


def numbered(first: int, last: int, session_id: str = "s1") -> list[tuple[int, bytes]]:
    """The same as `Store.read` gives them."""
    return [(sequence, fact(sequence, session_id)) for sequence in range(first, last + 1)]


def meta(
    session_id: str = "s1", updated_at: str = "2026-11-21T08:00:00Z", **more: object
) -> SessionMeta:
    """The row of a session."""
    fields: dict[str, object] = {
        "epoch": "e1",
        "owner": "ann",
        "workflow": "explore",
        "title": "Sales",
        "created_at": "2026-11-21T07:00:00Z",
    }
    return SessionMeta(id=session_id, updated_at=updated_at, **(fields | more))  # type: ignore[arg-type] # checked by the tests that use it


async def put(store: Store, first: int, last: int, session_id: str = "s1") -> None:
    """Appends the facts from `first` to `last` in one call."""
    await append_all(store, [SessionWrite(session_id, first - 1, facts(first, last, session_id))])


MALFORMED = b'{"sequence":3,"payload":{"text":}}'
"""A fact as a version wrote it that did not look."""


async def slip_in(store: Store, session_id: str, after: int, *bodies: bytes) -> None:
    """Appends what the store would refuse, as an older version did."""
    if isinstance(store, MemoryStore):
        store._facts[session_id] += bodies
        return
    assert isinstance(store, SqliteStore)
    assert store._writer is not None
    write = SessionWrite(session_id, after, list(bodies))
    assert await store._writer.append(AppendCall((write,), (), {})) == {}


def copy_of_a_crash(path: Path, target: Path) -> Path:
    """Copies a ledger as a kill would leave it at this moment: the file and its log."""
    target.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(path.with_name(path.name + suffix), target)
    return target / path.name
