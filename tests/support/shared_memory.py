"""A shared store in memory: several store objects in this process use one storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from arp.conformance.store.store_under_test import StoreUnderTest
from arp.store.errors import SessionMoved
from arp.store.memory import MemoryStore
from arp.store.session_list import SessionMeta
from arp.store.store import Refusals, SessionWrite, Store, new_runtime_id


class SharedStorage:
    """The data of a ledger, which several store objects share."""

    def __init__(self) -> None:
        self.facts: dict[str, list[bytes]] = {}
        self.metas: dict[str, SessionMeta] = {}
        self.texts: dict[str, dict[str, str]] = {}
        self.models: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.removals: dict[str, str] = {}
        self.fences: dict[str, int] = {}
        self.runtime_id = new_runtime_id()


class SharedMemoryStore(MemoryStore):
    """A `SharedStore` in memory; all objects with the same storage see the same data."""

    def __init__(self, storage: SharedStorage) -> None:
        super().__init__()
        self.storage = storage
        self._facts = storage.facts
        self._metas = storage.metas
        self._texts = storage.texts
        self._models = storage.models
        self._removals = storage.removals
        self._runtime_id = storage.runtime_id
        self.moved: set[str] = set()
        """Sessions of the current batch with a write that has an old fence."""

    async def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> Refusals:
        self.moved = {write.session_id for write in batch if self.is_moved(write)}
        return await super().append(batch, together)

    async def delete(self, session_id: str) -> bool:
        for key in [key for key in self.storage.models if key[0] == session_id]:
            del self.storage.models[key]
        try:
            return await super().delete(session_id)
        finally:
            self._models = self.storage.models

    async def raise_fence(self, session_id: str) -> int:
        self._check_open()
        fence = self.storage.fences[session_id] = self.fence_of(session_id) + 1
        return fence

    async def fence(self, session_id: str) -> int:
        self._check_open()
        return self.fence_of(session_id)

    def fence_of(self, session_id: str) -> int:
        return self.storage.fences.get(session_id, 0)

    def is_moved(self, write: SessionWrite) -> bool:
        return write.fence != self.fence_of(write.session_id)

    def _last_of(self, session_id: str) -> int:
        if session_id in self.moved:
            raise SessionMoved(session_id)
        return super()._last_of(session_id)


class SharedUnderTest(StoreUnderTest):
    """A shared storage to test; `kind` is the class of its store objects."""

    name = "shared memory"

    def __init__(self, kind: type[SharedMemoryStore] = SharedMemoryStore) -> None:
        self.kind = kind
        self.storage = SharedStorage()

    def make(self) -> Store:
        return self.kind(self.storage)


def shared_memory(_: Path, /) -> StoreUnderTest:
    return SharedUnderTest()
