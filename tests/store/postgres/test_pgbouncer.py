"""PgBouncer in transaction mode: each transaction may run on another connection of the server."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite
from tests.store.samples import facts, meta, numbered, put
from tests.support.postgres import PostgresServer, new_database, pgbouncer


@pytest.fixture
def pooled(server: PostgresServer, requires: Callable[[str], str]) -> Iterator[str]:
    """The location of a new database behind PgBouncer, which has two connections to it."""
    program = requires("pgbouncer")
    location = new_database(server)
    with tempfile.TemporaryDirectory(prefix="arp-pgbouncer-") as name:
        directory = Path(name)
        os.chmod(directory, 0o755)
        with pgbouncer(program, server, directory) as port:
            yield location.replace(f":{server.port}/", f":{port}/")


async def test_a_ledger_works_behind_pgbouncer(pooled: str) -> None:
    stores = [PostgresStore(pooled) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    first, second, third = stores
    for number in range(1, 30):
        await put(stores[number % 3], number, number)
        assert await stores[(number + 1) % 3].read("s1", number - 1) == numbered(number, number)
    row = meta("s1", title="a\0b", active=True)
    assert await first.append([SessionWrite("s1", 29, [], row)]) == {}
    assert await second.open_sessions() == ["s1"]
    assert [match.meta.id for match in (await third.search(["a\0b"], owner="ann")).matches] == [
        "s1"
    ]
    await second.save_model("s1", "thread", 29, b"\0model")
    assert await third.load_model("s1", "thread") == (29, b"\0model")
    await first.note_removal("files", "s1")
    assert await second.removals() == {"files": "s1"}
    assert await first.raise_fence("s1") == 1
    assert list(await second.append([SessionWrite("s1", 29, facts(30, 30))])) == ["s1"]
    assert await third.delete("s1")
    for store in stores:
        await store.aclose()


async def test_stores_that_open_at_the_same_time_behind_pgbouncer(pooled: str) -> None:
    """The lock of the upgrade is that of a transaction, so it is never left behind."""
    stores = [PostgresStore(pooled) for _ in range(5)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({await store.runtime_id() for store in stores}) == 1
    for store in stores:
        await store.aclose()
    again = PostgresStore(pooled)
    await again.open()
    await again.aclose()
