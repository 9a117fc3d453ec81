"""Mutants for the cases about `append`, conflicts and `read`."""

from __future__ import annotations

import asyncio

import msgspec

from arp.ledger.chain import genesis, links
from arp.store.batch import plan_batch, refuse_invalid
from arp.store.errors import (
    InvalidWrite,
    SequenceConflict,
    StoreUnreadable,
    StoreUnwritable,
)
from arp.store.memory import MemoryStore
from arp.store.store import PAGE_BYTES, Page, Refusals, SessionWrite
from tests.conformance.mutant_stores import Units, Writes, found_by, replace


class RawStore(MemoryStore):
    """A store that can store writes without any check."""

    def store_raw(self, write: SessionWrite) -> None:
        self._facts.setdefault(write.session_id, []).extend(write.facts)
        if write.meta is not None:
            self._metas[write.session_id] = write.meta

    def is_raw(self, write: SessionWrite) -> bool:
        return True

    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            if self.is_raw(write):
                self.store_raw(write)
        checked = [write for write in batch if not self.is_raw(write)]
        return await super().append(checked, together)


@found_by("order")
class PrependingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            self._facts.setdefault(write.session_id, [])[:0] = write.facts
        return {}


@found_by("several_sessions")
class OneSessionStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            self._facts.setdefault(batch[0].session_id, []).extend(write.facts)
        return {}


@found_by("several_writes")
class StaleSequenceStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        stale = [w for w in batch if w.expected_sequence != self._last_of(w.session_id)]
        if stale:
            return {w.session_id: SequenceConflict(w.session_id, 0, 0) for w in stale}
        return await super().append(batch, together)


@found_by("conflicting_writes")
class WriteByWriteStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused: Refusals = {}
        for write in batch:
            refused |= await super().append([write])
        return refused


@found_by("order_of_calls")
class OvertakingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        await asyncio.sleep(0.01 if batch[0].expected_sequence % 2 else 0)
        return await super().append(batch, together)


@found_by("awaited_writes")
class HurryingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        await asyncio.sleep(0 if is_awaited else 0.01)
        return await super().append(batch, together)


@found_by("empty_writes")
class EmptyFactStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        filled = [replace(write, facts=write.facts or [b"{}"]) for write in batch]
        return await super().append(filled, together)


@found_by("large_batch")
class SmallBatchStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        return await super().append(batch[:100], together)


@found_by("list_not_kept")
class ListKeepingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            if write.session_id in self._facts:
                self._facts[write.session_id] += write.facts
            else:
                self._facts[write.session_id] = write.facts
        return {}


@found_by("line_breaks")
class LineBreakStore(RawStore):
    pass


@found_by("same_bytes")
class ReencodingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        decode, encode = msgspec.json.decode, msgspec.json.encode
        changed = [replace(w, facts=[encode(decode(fact)) for fact in w.facts]) for w in batch]
        return await super().append(changed, together)


@found_by("any_printable_id")
class CaselessStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        return await super().read(session_id.lower(), after, limit)


@found_by("unprintable_id")
class AnyIdStore(RawStore):
    def is_raw(self, write: SessionWrite) -> bool:
        return not write.session_id.isprintable() or not write.session_id


@found_by("invalid_fact")
class AnyFactStore(RawStore):
    def is_raw(self, write: SessionWrite) -> bool:
        return bool(write.facts)


@found_by("invalid_row")
class AnyRowStore(RawStore):
    def is_raw(self, write: SessionWrite) -> bool:
        return write.meta is not None


@found_by("invalid_text")
class AnyTextStore(RawStore):
    def is_raw(self, write: SessionWrite) -> bool:
        return bool(write.texts)


@found_by("invalid_alone")
class InvalidBatchStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        if refuse_invalid(batch):
            return {write.session_id: InvalidWrite("invalid batch") for write in batch}
        return await super().append(batch, together)


@found_by("cancelled_caller")
class CancelledStore(MemoryStore):
    is_cancelled = False

    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        if self.is_cancelled:
            raise StoreUnwritable("memory", "cancelled")
        return await super().append(batch, together)


@found_by("wrong_sequence")
class GapStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        lowered = [
            replace(w, expected_sequence=min(w.expected_sequence, self._last_of(w.session_id)))
            for w in batch
        ]
        return await super().append(lowered, together)


@found_by("conflict_reported")
class WrongReportStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = await super().append(batch, together)
        for name, error in refused.items():
            if isinstance(error, SequenceConflict):
                refused[name] = SequenceConflict(name, error.expected, error.expected)
        return refused


@found_by("conflict_stores_nothing")
class RefusedRowStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        for write in batch:
            if write.meta is not None:
                self._metas[write.session_id] = write.meta
        return await super().append(batch, together)


def everything(batch: Writes) -> Units:
    """Return one unit with all sessions of a batch."""
    return [frozenset(write.session_id for write in batch)]


@found_by("conflict_alone")
class AllOrNothingStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        return await super().append(batch, everything(batch))


@found_by("append_after_conflict")
class StaleCacheStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.cached: dict[str, int] = {}

    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = await super().append(batch, together)
        for write in batch:
            self.cached[write.session_id] = write.expected_sequence + len(write.facts)
        return refused

    def _last_of(self, session_id: str) -> int:
        return self.cached.get(session_id, super()._last_of(session_id))


@found_by("race")
class TwoStepStore(RawStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = refuse_invalid(batch)
        writes, _ = plan_batch(batch, together, refused, self._last_of)
        await asyncio.sleep(0)
        for write in writes:
            self.store_raw(write)
        return refused


@found_by("together_stored")
class NoUnitsStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        if any(len(unit) > 1 for unit in together):
            return {write.session_id: InvalidWrite("no units") for write in batch}
        return await super().append(batch, together)


@found_by("together_refused")
class NotTogetherStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        return await super().append(batch)


@found_by("together_others")
class LargeUnitStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        return await super().append(batch, everything(batch) if together else ())


@found_by("together_overlapping")
class UnmergedUnitsStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = refuse_invalid(batch)
        plan_batch(batch, (), refused, self._last_of)
        for unit in together:
            for name in unit & refused.keys():
                refused |= dict.fromkeys(unit, refused[name])
        await super().append([w for w in batch if w.session_id not in refused])
        return refused


@found_by("together_invalid")
class InvalidUnitStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        invalid = refuse_invalid(batch)
        valid = [write for write in batch if write.session_id not in invalid]
        units = [unit - invalid.keys() for unit in together]
        return invalid | await super().append(valid, units)


@found_by("together_several_writes")
class FirstWritesStore(MemoryStore):
    async def append(
        self, batch: Writes, together: Units = (), *, is_awaited: bool = False
    ) -> Refusals:
        refused = refuse_invalid(batch)
        first = {write.session_id: write for write in reversed(batch)}
        plan_batch(list(first.values()), together, refused, self._last_of)
        rest = [write for write in batch if write.session_id not in refused]
        return refused | await super().append(rest)


@found_by("after_and_limit")
class InclusiveStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        return await super().read(session_id, after - 1, limit)


@found_by("odd_limits")
class EmptyPageStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        return await super().read(session_id, after, limit) if limit > 0 else []


@found_by("unknown_session")
class KnownSessionStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        if session_id not in self._facts:
            raise StoreUnreadable("no such session")
        return await super().read(session_id, after, limit)


@found_by("page_bytes")
class UnboundedPageStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        facts = self._facts.get(session_id, [])
        return list(enumerate(facts[after : after + limit], after + 1))


@found_by("huge_fact")
class SmallFactStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        page = await super().read(session_id, after, limit)
        return [entry for entry in page if len(entry[1]) <= PAGE_BYTES]


@found_by("all_pages")
class ShortSessionStore(MemoryStore):
    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        return await super().read(session_id, after, limit) if after < 1000 else []


@found_by("appended_while_reading")
class SnapshotStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.snapshots: dict[str, Page] = {}

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        if session_id not in self.snapshots:
            self.snapshots[session_id] = await super().read(session_id, 0, 10**6)
        return self.snapshots[session_id][after : after + limit]


@found_by("heads")
class NoEpochStore(MemoryStore):
    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        hashes = links(genesis(session_id, ""), self._facts.get(session_id, []))
        return [*enumerate(hashes, 1)]
