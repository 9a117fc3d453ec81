"""Facts, rows and files for the tests of the store."""

from __future__ import annotations

import shutil
from pathlib import Path

from arp.conformance.store.sample_facts import fact as fact
from arp.conformance.store.sample_facts import facts as facts
from arp.conformance.store.sample_facts import meta as meta
from arp.conformance.store.sample_facts import numbered as numbered
from arp.conformance.store.sample_facts import put as put
from arp.store.journal import AppendCall
from arp.store.memory import MemoryStore
from arp.store.postgres.store import PostgresStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite, Store

MALFORMED = b'{"sequence":3,"payload":{"text":}}'
"""A fact as a version wrote it that did not look."""


async def slip_in(store: Store, session_id: str, after: int, *bodies: bytes) -> None:
    """Appends what the store would refuse, as an older version did."""
    if isinstance(store, MemoryStore):
        store._facts[session_id] += bodies
        return
    assert isinstance(store, SqliteStore | PostgresStore)
    assert store._writer is not None
    write = SessionWrite(session_id, after, list(bodies))
    assert await store._writer.append(AppendCall((write,), (), {})) == {}


def copy_of_a_crash(path: Path, target: Path) -> Path:
    """Copies a ledger as a kill would leave it at this moment: the file and its log."""
    target.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(path.with_name(path.name + suffix), target)
    return target / path.name
