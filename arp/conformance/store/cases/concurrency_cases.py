"""Cases about many tasks, and about several store objects over one storage."""

from __future__ import annotations

import asyncio

from arp.conformance.cases import CaseFailed, expect, expect_items, expect_same
from arp.conformance.store.checked_store import CheckedStore
from arp.conformance.store.sample_facts import facts, last_of, meta, numbered, put, read_all
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_row, expect_stored
from arp.store.errors import SequenceConflict
from arp.store.store import SessionWrite

CASES = StoreCases()

TASKS = 8
SESSIONS = 50
"""Number of sessions of each task."""

RACES = 40
"""Number of times that two store objects race."""

MAX_ATTEMPTS = 500
"""Number of attempts after which a writer gives up."""


@CASES.add("the batch of a waiting call is replaced by that of the next call")
async def many_tasks(run: StoreRun) -> None:
    """8 tasks that write to 50 sessions each lose nothing and mix nothing up."""
    store = await run.open()

    async def write(task: int) -> None:
        names = [f"t{task}-s{number}" for number in range(SESSIONS)]
        for first in (1, 4, 7):
            batch = [SessionWrite(n, first - 1, facts(first, first + 2, n)) for n in names]
            expect_stored(await store.append(batch))

    await asyncio.gather(*(write(task) for task in range(TASKS)))
    for task in range(TASKS):
        for number in range(SESSIONS):
            name = f"t{task}-s{number}"
            expect_items(await store.read(name), numbered(1, 9, name), f"facts of {name}")


@CASES.add("stored facts cannot be read while new ones are written")
async def read_while_writing(run: StoreRun) -> None:
    """A read during a write returns all acknowledged facts, in order, without gaps."""
    store = await run.open()
    acknowledged = 0
    is_done = False

    async def write() -> None:
        nonlocal acknowledged, is_done
        for first in range(1, 200, 5):
            await put(store, first, first + 4)
            acknowledged = first + 4
        is_done = True

    async def read() -> None:
        while not is_done:
            least = acknowledged
            found = await read_all(store)
            expect_items(found, numbered(1, len(found)), "facts during a write")
            expect(len(found) >= least, f"{least} facts are acknowledged, {len(found)} are read")
            await asyncio.sleep(0)

    await asyncio.gather(write(), read())


@CASES.add("the comparison of the sequence and the write are two steps", "shared")
async def shared_race(run: StoreRun) -> None:
    """If two store objects race for a sequence, exactly one wins, and their facts do not mix."""
    stores = await run.open(), await run.open()
    for number in range(RACES):
        name = f"s{number}"
        writes = [
            SessionWrite(name, 0, [b'{"writer":%d,"n":%d}' % (writer, n) for n in (1, 2)])
            for writer in (0, 1)
        ]
        outcomes = await asyncio.gather(
            *(store.append([write]) for store, write in zip(stores, writes, strict=True))
        )
        errors = [error for outcome in outcomes for error in outcome.values()]
        expect_same(
            [type(error) for error in errors], [SequenceConflict], "refusals of two store objects"
        )
        winner = writes[0 if not outcomes[0] else 1]
        for store in stores:
            wanted = list(enumerate(winner.facts, 1))
            expect_items(await store.read(name), wanted, f"facts of {name}")


@CASES.add("a write replaces the facts after its expected sequence", "shared")
async def shared_writers(run: StoreRun) -> None:
    """Two store objects that try again after a conflict lose nothing and leave no gap."""
    stores = await run.open(), await run.open()

    async def write(store: CheckedStore, writer: int) -> None:
        written = 0
        for _ in range(MAX_ATTEMPTS):
            if written == RACES:
                return
            last = await last_of(store, "s1")
            await asyncio.sleep(0)
            fact = b'{"writer":%d,"n":%d}' % (writer, written)
            if not await store.append([SessionWrite("s1", last, [fact])]):
                written += 1
        raise CaseFailed(f"{MAX_ATTEMPTS} attempts stored {written} facts of {RACES}")

    await asyncio.gather(*(write(store, writer) for writer, store in enumerate(stores)))
    found = await read_all(stores[0])
    sequences = [sequence for sequence, _ in found]
    expect_items(sequences, list(range(1, 2 * RACES + 1)), "sequences of s1")
    for writer in (0, 1):
        own = [fact for _, fact in found if b'"writer":%d' % writer in fact]
        wanted = [b'{"writer":%d,"n":%d}' % (writer, n) for n in range(RACES)]
        expect_items(own, wanted, f"facts of store object {writer}")


@CASES.add("a store object reads what it has read before", "shared")
async def shared_reads(run: StoreRun) -> None:
    """What a store object stored, the others read as soon as it is acknowledged."""
    writer, reader = await run.open(), await run.open()
    for last in range(1, 6):
        await put(writer, last, last)
        expect_items(await reader.read("s1"), numbered(1, last), "facts in the other object")
    await writer.append([SessionWrite("s1", 5, [], meta("s1"))])
    row = await writer.session("s1")
    expect_row(await reader.session("s1"), row, "row in the other object")
    await writer.save_model("s1", "thread", 5, b"five")
    expect_same(await reader.load_model("s1", "thread"), (5, b"five"), "model in the other object")
    await writer.delete("s1")
    expect_items(await reader.read("s1"), [], "deleted facts in the other object")
    await put(reader, 1, 1)
