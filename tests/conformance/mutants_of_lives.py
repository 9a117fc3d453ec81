"""Mutants for the cases about opening, concurrency, fences, damage and kills."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import ClassVar

from arp.conformance.store.sample_facts import read_all
from arp.conformance.store.writer_roles import UNITS
from arp.store.batch import plan_batch, refuse_invalid
from arp.store.errors import SessionMoved, StoreDamaged
from arp.store.lock import FileLock
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import Page, Refusals, SessionWrite, new_runtime_id
from tests.conformance.mutant_stores import Units, Writes, found_by
from tests.conformance.mutants_of_writing import everything
from tests.support.shared_memory import SharedMemoryStore, SharedStorage


@found_by("closed_before_open")
class AlwaysOpenStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._is_open = True


@found_by("closed_after_aclose")
class NeverClosedStore(MemoryStore):
    async def aclose(self) -> None:
        pass


@found_by("closed_twice")
class ClosedOnceStore(MemoryStore):
    async def aclose(self) -> None:
        self._check_open()
        await super().aclose()


@found_by("close_finishes_calls")
class HastyStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        await asyncio.sleep(0.01)
        return await super().append(batch, together)


@found_by("same_object_opened_again")
class EmptyStore(MemoryStore):
    async def open(self) -> None:
        await super().open()
        self._facts.clear()


class ForgetfulStore(SqliteStore):
    """A store that loses some rows of its tables when it is closed."""

    lost: ClassVar[str]

    async def aclose(self) -> None:
        was_open = self._writer is not None
        await super().aclose()
        if was_open:
            with closing(sqlite3.connect(self.path)) as db, db:
                db.execute(f"DELETE FROM {self.lost}")


@found_by("kept_facts")
class ForgottenFactsStore(ForgetfulStore):
    lost = "segment WHERE last = (SELECT max(last) FROM segment)"


@found_by("kept_rows")
class ForgottenRowsStore(ForgetfulStore):
    lost = "session"


@found_by("kept_texts")
class ForgottenTextsStore(ForgetfulStore):
    lost = "said"


@found_by("kept_models")
class ForgottenModelsStore(ForgetfulStore):
    lost = "model"


@found_by("kept_removals")
class ForgottenRemovalsStore(ForgetfulStore):
    lost = "ledger WHERE name LIKE 'removal/%'"


@found_by("kept_runtime_id")
class ForgottenIdStore(ForgetfulStore):
    lost = "ledger WHERE name = 'runtimeId'"


@found_by("kept_deletions")
class UndeletedStore(SqliteStore):
    async def delete(self, session_id: str) -> bool:
        return True


@found_by("same_runtime_id")
class NewIdStore(MemoryStore):
    async def open(self) -> None:
        await super().open()
        self._runtime_id = new_runtime_id()


@found_by("own_runtime_id")
class ConstantIdStore(MemoryStore):
    async def runtime_id(self) -> str:
        self._check_open()
        return "arp-1"


class NoLock(FileLock):
    def acquire(self) -> None:
        pass


@found_by("locked")
class UnlockedStore(SqliteStore):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._lock = NoLock(self.path)


class ProcessLock(FileLock):
    def _lock_lock_file(self) -> None:
        pass

    def _lock_database(self) -> None:
        pass


@found_by("locked_by_another_process")
class ProcessLockStore(SqliteStore):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._lock = ProcessLock(self.path)


@found_by("many_tasks")
class OneBatchStore(MemoryStore):
    batch: Writes = ()

    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        self.batch = batch
        await asyncio.sleep(0)
        return await super().append(self.batch, together)


@found_by("read_while_writing")
class HidingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        hidden = {write.session_id: self._facts.pop(write.session_id, []) for write in batch}
        await asyncio.sleep(0)
        self._facts |= hidden
        return await super().append(batch, together)


@found_by("shared_race")
class TwoStepSharedStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = refuse_invalid(batch)
        writes, _ = plan_batch(batch, together, refused, self._last_of)
        await asyncio.sleep(0)
        for write in writes:
            self._facts.setdefault(write.session_id, []).extend(write.facts)
        return refused


@found_by("shared_writers")
class ReplacingStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            self._facts.setdefault(write.session_id, [])[write.expected_sequence :] = write.facts
        return {}


@found_by("shared_reads")
class CachingStore(SharedMemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        key = session_id, after, limit
        cache: dict[object, Page] = self.__dict__.setdefault("cache", {})
        if key not in cache:
            cache[key] = await super().read(session_id, after, limit)
        return cache[key]


@found_by("fence_ignored")
class ComparingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        moved = {w.session_id: SessionMoved(w.session_id) for w in batch if w.fence}
        return moved | await super().append([w for w in batch if w.session_id not in moved])


@found_by("fences_rise")
class EarlierFenceStore(SharedMemoryStore):
    async def raise_fence(self, session_id: str) -> int:
        return await super().raise_fence(session_id) - 1


@found_by("fence_read")
class OwnRaisesStore(SharedMemoryStore):
    def __init__(self, storage: SharedStorage) -> None:
        super().__init__(storage)
        self.raised: dict[str, int] = {}

    async def raise_fence(self, session_id: str) -> int:
        fence = self.raised[session_id] = await super().raise_fence(session_id)
        return fence

    async def fence(self, session_id: str) -> int:
        return self.raised.get(session_id, 0)


@found_by("own_fences")
class OneFenceStore(SharedMemoryStore):
    async def raise_fence(self, session_id: str) -> int:
        return await super().raise_fence("all")

    def fence_of(self, session_id: str) -> int:
        return super().fence_of("all")


@found_by("concurrent_raises")
class TwoStepFenceStore(SharedMemoryStore):
    async def raise_fence(self, session_id: str) -> int:
        fence = self.fence_of(session_id) + 1
        await asyncio.sleep(0)
        self.storage.fences[session_id] = fence
        return fence


@found_by("other_fences_refused")
class HighFenceStore(SharedMemoryStore):
    def is_moved(self, write: SessionWrite) -> bool:
        return write.fence < self.fence_of(write.session_id)


@found_by("moved_alone")
class MovedBatchStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        return await super().append(batch, everything(batch))


@found_by("moved_unit")
class MovedUnitStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        moved = {w.session_id for w in batch if self.is_moved(w)}
        return await super().append(batch, [unit - moved for unit in together])


@found_by("moved_row")
class MovedRowStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            if write.meta is not None:
                self._metas[write.session_id] = write.meta
        return await super().append(batch, together)


@found_by("delayed_writes")
class EarlyFenceStore(SharedMemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        moved = {w.session_id for w in batch if self.is_moved(w)}
        await asyncio.sleep(0)
        self.moved = moved
        return await MemoryStore.append(self, batch, together)


@found_by("kept_fences")
class ForgottenFencesStore(SharedMemoryStore):
    async def aclose(self) -> None:
        await super().aclose()
        self.storage.fences.clear()


@found_by("fence_of_a_deleted_session")
class DeletedFenceStore(SharedMemoryStore):
    async def delete(self, session_id: str) -> bool:
        self.storage.fences.pop(session_id, None)
        return await super().delete(session_id)


@found_by("damage_found")
class ShortenedStore(SqliteStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        try:
            return await super().read(session_id, after, limit)
        except StoreDamaged:
            return []


async def check_whole(store: SqliteStore, session_id: str) -> None:
    """Read a whole session; raise `StoreDamaged` if a fact is damaged."""
    after = 0
    while page := await SqliteStore.read(store, session_id, after):
        after = page[-1][0]


@found_by("facts_before_damage")
class WholeSessionStore(SqliteStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        await check_whole(self, session_id)
        return await super().read(session_id, after, limit)


@found_by("other_sessions_work")
class WholeStorageStore(SqliteStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        await check_whole(self, "a")
        return await super().read(session_id, after, limit)


@found_by("append_to_damaged")
class AppendingStore(SqliteStore):
    async def open(self) -> None:
        await super().open()
        self._journal._last_intact = self._journal.last_of  # type: ignore[method-assign] # the fault


@found_by("damaged_deleted")
class UndeletableStore(SqliteStore):
    async def delete(self, session_id: str) -> bool:
        await check_whole(self, session_id)
        return await super().delete(session_id)


@found_by("damaged_model")
class DamagedModelStore(SqliteStore):
    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        found = await super().load_model(session_id, name)
        return found and (found[0], found[1] or b"\0\0")


LATE_S = 5.0
"""Time in seconds between an acknowledgement and the write."""


async def later(call: Callable[[], Awaitable[object]]) -> None:
    """Call a function after `LATE_S`."""
    await asyncio.sleep(LATE_S)
    await call()


class EarlyStore(SqliteStore):
    """A store that acknowledges an append before it writes."""

    def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> asyncio.Future[Refusals]:
        asyncio.get_running_loop().call_later(LATE_S, super().append, batch, together)
        return asyncio.ensure_future(asyncio.sleep(0.001, {}))


@found_by("killed_after_append")
class EarlyAppendStore(EarlyStore):
    pass


@found_by("acknowledged_facts")
class EarlyBatchStore(EarlyStore):
    pass


@found_by("killed_after_save")
class EarlyModelStore(SqliteStore):
    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        save = super().save_model
        self.late = asyncio.create_task(later(lambda: save(session_id, name, sequence, data)))


@found_by("killed_after_delete")
class EarlyDeleteStore(SqliteStore):
    async def delete(self, session_id: str) -> bool:
        delete = super().delete
        self.late = asyncio.create_task(later(lambda: delete(session_id)))
        return True


@found_by("facts_after_kills")
class DoublingStore(SqliteStore):
    async def open(self) -> None:
        await super().open()
        for name in sorted(frozenset().union(*UNITS)):
            found = await read_all(self, name)
            if found:
                last, fact = found[-1]
                await super().append([SessionWrite(name, last, [fact])])


@found_by("units_after_kills")
class NoTransactionStore(SqliteStore):
    def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> asyncio.Future[Refusals]:
        return asyncio.ensure_future(self._append_each(batch))

    async def _append_each(self, batch: Writes) -> Refusals:
        refused: Refusals = {}
        for number, write in enumerate(batch):
            refused |= await super().append([write])
            await asyncio.sleep(0 if number % 2 else 0.05)
        return refused
