"""Versions of the tables: upgrades, older programs, and tables of other programs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256

import psycopg
import pytest

from arp.store.errors import StoreUnavailable
from arp.store.postgres import schema
from arp.store.postgres.connections import PostgresConnections
from arp.store.postgres.location import PostgresLocation
from arp.store.postgres.schema import VERSIONS, TablesVersion, prepare_tables
from arp.store.postgres.store import PostgresStore
from tests.store.samples import numbered, put

VERSION_1 = "96c5ff9fee55b99236ba12264bdb924e52e2f6b61355ce681843188625fde49d"
"""SHA-256 of the statements of version 1: databases that they created exist."""

NEXT = TablesVersion(2, 1, "ALTER TABLE arp_session ADD COLUMN colour text; SELECT pg_sleep(0.1)")
"""A version whose tables processes of version 1 may use too."""

CLOSED = TablesVersion(3, 3, "CREATE TABLE arp_later (id integer)")
"""A version whose tables only processes of this version may use."""


async def prepare(location: str, versions: Sequence[TablesVersion]) -> str:
    """Create or upgrade the tables as a program does that knows these versions."""
    connections = PostgresConnections(PostgresLocation(location), 1)
    try:
        return await connections.run(lambda on: prepare_tables(on, "shown", versions))
    finally:
        await connections.aclose()


def version_of(location: str) -> tuple[int, int]:
    with psycopg.connect(location) as connection:
        row = connection.execute("SELECT version, min_version FROM arp_meta").fetchone()
        assert row is not None
        return row[0], row[1]


def test_the_statements_of_released_versions_do_not_change() -> None:
    assert sha256(VERSIONS[0].sql.encode()).hexdigest() == VERSION_1


async def test_an_upgrade_keeps_the_facts_and_the_runtime(location: str) -> None:
    created = await prepare(location, VERSIONS)
    store = PostgresStore(location)
    await store.open()
    await put(store, 1, 3)
    assert await prepare(location, [*VERSIONS, NEXT]) == created
    assert version_of(location) == (2, 1)
    # A process of version 1 that runs meanwhile goes on, and another one can start.
    await put(store, 4, 4)
    later = PostgresStore(location)
    await later.open()
    assert await later.read("s1") == numbered(1, 4)
    await later.aclose()
    await store.aclose()
    assert version_of(location) == (2, 1)


async def test_processes_that_upgrade_at_the_same_time_upgrade_once(location: str) -> None:
    await prepare(location, VERSIONS)
    ids = await asyncio.gather(*(prepare(location, [*VERSIONS, NEXT]) for _ in range(5)))
    assert len(set(ids)) == 1
    assert version_of(location) == (2, 1)


async def test_tables_of_a_newer_version_are_refused_by_an_older_program(location: str) -> None:
    await prepare(location, [*VERSIONS, NEXT, CLOSED])
    with pytest.raises(StoreUnavailable) as refused:
        await PostgresStore(location).open()
    assert str(refused.value).endswith(
        " was upgraded by a newer version (tables 3, this one knows 1); upgrade this program, or "
        "name another database"
    )
    assert version_of(location) == (3, 3)


async def test_an_upgrade_that_fails_changes_nothing(location: str) -> None:
    await prepare(location, VERSIONS)
    broken = TablesVersion(2, 2, "CREATE TABLE arp_new (id integer); SELECT 1/0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        await prepare(location, [*VERSIONS, broken])
    assert version_of(location) == (1, 1)
    with psycopg.connect(location) as connection:
        assert connection.execute("SELECT to_regclass('arp_new')").fetchone() == (None,)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE arp_fact (id integer)",
        "CREATE TABLE arp_meta (version integer)",
        "CREATE VIEW arp_session AS SELECT 1 AS id",
    ],
)
async def test_tables_of_another_program_are_left_alone(location: str, statement: str) -> None:
    with psycopg.connect(location) as connection:
        connection.execute(statement.encode())
    with pytest.raises(StoreUnavailable, match="of another program; name another database"):
        await PostgresStore(location).open()
    with psycopg.connect(location) as connection:
        count = (
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'arp%' AND relkind IN ('r', 'v')"
            " AND relnamespace = current_schema()::regnamespace"
        )
        assert connection.execute(count).fetchone() == (1,)


async def test_a_server_that_is_too_old_is_refused(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIN_SERVER", 99)
    with pytest.raises(StoreUnavailable, match="upgrade it to PostgreSQL 99 or newer"):
        await PostgresStore(location).open()
