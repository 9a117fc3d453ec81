"""The store in memory, beyond the contract in `test_store.py`."""

from __future__ import annotations

import pytest

from arp.store.errors import StoreClosed
from arp.store.memory import MemoryStore
from tests.store.samples import put


async def test_it_is_not_open_until_it_is_opened() -> None:
    """As a file would not be, so that a missing `open` shows in the first test."""
    with pytest.raises(StoreClosed):
        await put(MemoryStore(), 1, 1)
