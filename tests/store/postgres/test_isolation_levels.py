"""A database with another default isolation level behaves like any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from arp.store.errors import SessionMoved
from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite
from tests.store.postgres.test_append import locked, waiting_for_locks, write
from tests.store.samples import facts, numbered, put
from tests.support.postgres import PostgresServer, new_database


@pytest.fixture(params=["repeatable read", "serializable"])
def strict(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The location of a new database with a stricter default."""
    location = new_database(server)
    database = location.rpartition("/")[2]
    server.execute(
        f"ALTER DATABASE {database} SET default_transaction_isolation = '{request.param}'"
    )
    return location


@pytest.fixture
async def stores(strict: str) -> AsyncIterator[list[PostgresStore]]:
    """Open stores in that database."""
    made = [PostgresStore(strict) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in made))
    yield made
    await asyncio.gather(*(store.aclose() for store in made))


async def test_stores_that_open_at_the_same_time_see_the_same_tables(
    stores: list[PostgresStore],
) -> None:
    """The check after the lock sees what the process before it has committed."""
    assert len({await store.runtime_id() for store in stores}) == 1


async def test_an_append_that_waits_for_another_transaction_succeeds(
    stores: list[PostgresStore], strict: str
) -> None:
    first, second, *_ = stores
    await put(first, 1, 1)
    async with locked(strict, "UPDATE arp_head SET last = last WHERE session = 's1'"):
        late = first.append([write("s1", 0, 1)])
        await waiting_for_locks(strict, 1)
    assert await late == {}
    async with locked(strict, "UPDATE arp_head SET fence = 1 WHERE session = 's1'"):
        late = first.append([write("s1", 0, 2)])
        await waiting_for_locks(strict, 1)
    assert isinstance((await late)["s1"], SessionMoved)
    assert await second.read("s1") == numbered(1, 2)


async def test_stores_that_write_different_sessions_are_never_refused(
    stores: list[PostgresStore],
) -> None:
    async def work(store: PostgresStore, name: str) -> None:
        for number in range(20):
            new = facts(number + 1, number + 1)
            assert await store.append([SessionWrite(name, number, new)]) == {}
            await store.note_removal("shared", f"{name} {number}")

    await asyncio.gather(*(work(store, f"s{number}") for number, store in enumerate(stores)))
