"""The stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import Store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An open store of each kind."""
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "l.db")
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
