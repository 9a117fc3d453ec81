"""A second process with a ledger: `python -m tests.store.child ROLE PATH`.

Roles: `hold` opens the ledger, says so, and waits to be killed; `append` appends to ten sessions
until it is killed and says each time what was acknowledged; `save` does so with a model;
`small_disk` meets a disk that takes no more; `try_sqlite` says whether SQLite may write.
"""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from arp.store import tails, writer
from arp.store.errors import StoreUnwritable
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.store.samples import facts, meta, numbered, put

SESSIONS = [f"s{number}" for number in range(10)]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def hold(store: SqliteStore) -> None:
    await store.open()
    say("open")
    await asyncio.Event().wait()


async def append(store: SqliteStore) -> None:
    """Facts come in batches of several sessions, and are sorted and checkpointed all the time."""
    tails.JOURNAL_BYTES, tails.SPILL_BYTES = 20_000, 4_000  # type: ignore[misc] # small, to meet each state often
    writer.CHECKPOINT_BYTES = 30_000  # type: ignore[misc]
    await store.open()
    await asyncio.gather(*(append_to(store, group) for group in (SESSIONS[:4], SESSIONS[4:])))


async def append_to(store: SqliteStore, sessions: list[str]) -> None:
    last = {name: (await store.read(name, limit=10**9) or [(0, b"")])[-1][0] for name in sessions}
    turn = 0
    while True:
        turn += 1
        count = turn % 5 + 1
        batch = [
            SessionWrite(
                name,
                last[name],
                facts(last[name] + 1, last[name] + count, name),
                meta(name, active=True) if turn % 7 == 0 else None,
            )
            for name in sessions
        ]
        await store.append(batch)
        for name in sessions:
            last[name] += count
        say(" ".join(f"{name}={last[name]}" for name in sessions))


async def save(store: SqliteStore) -> None:
    """Saves a model of many pages again and again, and says each time what was acknowledged."""
    writer.CHECKPOINT_BYTES = 100_000  # type: ignore[misc] # as in `append`
    await store.open()
    last = (await store.read("s1", limit=10**9) or [(0, b"")])[-1][0]
    while True:
        await put(store, last + 1, last + 1)
        last += 1
        await store.save_model("s1", "thread", last, b"%d;" % last * 5_000)
        say(str(last))


async def small_disk(store: SqliteStore) -> None:
    """The disk takes no more, reading goes on; it takes more again, writing goes on by itself."""
    await store.open()
    await put(store, 1, 100)
    log = store.path.with_name(store.path.name + "-wal")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 20_000, most))
    last = 100
    try:
        while True:
            await put(store, last + 1, last + 100)
            last += 100
    except StoreUnwritable as error:
        say(str(error))
    try:
        await put(store, last + 1, last + 100)
    except StoreUnwritable:
        say("still refused")
    assert await store.read("s1", limit=10**6) == numbered(1, last)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert store._writer is not None
    store._writer._retry_at = 0.0  # as if the delay were over
    await put(store, last + 1, last + 500)
    assert await store.read("s1", limit=10**6) == numbered(1, last + 500)
    await store.aclose()
    say(f"stored {last + 500}")


async def try_sqlite(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.path, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            say(str(error))
        else:
            say("it may")


ROLES = {
    "hold": hold,
    "append": append,
    "save": save,
    "small_disk": small_disk,
    "try_sqlite": try_sqlite,
}

if __name__ == "__main__":
    asyncio.run(ROLES[sys.argv[1]](SqliteStore(Path(sys.argv[2]))))
