"""The stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from arp.store.memory import MemoryStore
from arp.store.postgres.store import PostgresStore
from arp.store.sqlite import SqliteStore
from arp.store.store import Store
from tests.support.postgres import new_schema


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, requires: Callable[[str], str]
) -> AsyncIterator[Store]:
    """An open store of each kind."""
    made: Store
    if request.param == "postgres":
        requires("postgres")
        made = PostgresStore(new_schema())
    else:
        made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "l.db")
    await made.open()
    yield made
    await made.aclose()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store in a file of its own."""
    made = SqliteStore(tmp_path / "ledger.db")
    await made.open()
    yield made
    await made.aclose()
