"""Stores in new databases, and servers of their own for tests that stop them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from arp.store.postgres.store import PostgresStore
from tests.support.postgres import PostgresServer, new_schema, shared_server


@pytest.fixture
def server(requires: Callable[[str], str]) -> PostgresServer:
    """The server that all tests of this process share; do not stop it."""
    requires("postgres")
    return shared_server()


@pytest.fixture
def location(server: PostgresServer) -> str:
    """The location of a ledger in a new, empty schema of the shared server."""
    return new_schema()


@pytest.fixture
async def pg(location: str) -> AsyncIterator[PostgresStore]:
    """An open store in a new schema."""
    store = PostgresStore(location)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
async def second(location: str, pg: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Another open store in the schema of `pg`, as another process would have it."""
    store = PostgresStore(location)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
def own_server(requires: Callable[[str], str]) -> Iterator[PostgresServer]:
    """A server for one test, which may stop it. It syncs every commit."""
    requires("postgres")
    server = PostgresServer(is_durable=True)
    server.start()
    yield server
    server.end()
