"""Cases about fences, which decide which store object may write to a session."""

from __future__ import annotations

import asyncio

from arp.conformance.cases import expect, expect_items, expect_same
from arp.conformance.store.checked_store import CheckedStore
from arp.conformance.store.sample_facts import facts, found_ids, meta, numbered, put
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_refused, expect_stored
from arp.store.errors import SessionMoved
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite

CASES = StoreCases()

RAISES = 100
"""Number of fences that are raised at the same time."""

TAKEOVERS = 20
"""Number of takeovers during the writes of an earlier owner."""


def write(session_id: str, fence: int, expected: int = 0) -> SessionWrite:
    """Return a write of one fact with a fence."""
    new = facts(expected + 1, expected + 1, session_id)
    return SessionWrite(session_id, expected, new, fence=fence)


async def moved(run: StoreRun, *names: str) -> tuple[CheckedStore, CheckedStore]:
    """Return an earlier owner with fence 1, and the owner of these sessions with fence 2."""
    earlier, owner = await run.open(), await run.open()
    for store in (earlier, owner):
        for name in names:
            await store.raise_fence(name)
    return earlier, owner


@CASES.add("a store that only one process opens compares fences", "unshared")
async def fence_ignored(run: StoreRun) -> None:
    """A store that only one process can open ignores fences."""
    store = await run.open()
    for expected, fence in enumerate((0, 7, 3)):
        expect_stored(await store.append([write("s1", fence, expected)]))
    expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")


@CASES.add("`raise_fence` returns the earlier fence", "shared")
async def fences_rise(run: StoreRun) -> None:
    """The first fence of a session is 1, and each further one is higher, in every object."""
    first, second = await run.open(), await run.open()
    fences = [await store.raise_fence("s1") for store in (first, second, second, first)]
    expect_same(fences[0], 1, "first fence")
    expect_same(fences, sorted(set(fences)), "fences in order")


@CASES.add("`fence` returns the fence that this object has raised", "shared")
async def fence_read(run: StoreRun) -> None:
    """Every object reads the newest fence; 0 if it was never raised."""
    first, second = await run.open(), await run.open()
    expect_same(await first.fence("s1"), 0, "fence that was never raised")
    for store in (first, second, second):
        newest = await store.raise_fence("s1")
        for reader in (first, second):
            expect_same(await reader.fence("s1"), newest, "fence")
    expect_same(await first.fence("other"), 0, "fence of another session")


@CASES.add("all sessions have the same fence", "shared")
async def own_fences(run: StoreRun) -> None:
    """Each session has its own fence; 0 is the fence of a session until it is raised."""
    store = await run.open()
    for _ in range(3):
        await store.raise_fence("other")
    expect_stored(await store.append([write("s1", 0)]))
    expect_same(await store.raise_fence("s1"), 1, "first fence of s1")
    expect_stored(await store.append([write("s1", 1, 1)]))


@CASES.add("`raise_fence` reads and writes in two steps", "shared")
async def concurrent_raises(run: StoreRun) -> None:
    """100 raises at the same time return 100 different fences."""
    stores = await run.open(), await run.open()
    raises = [stores[number % 2].raise_fence("s1") for number in range(RAISES)]
    fences = await asyncio.gather(*raises)
    expect_same(len(set(fences)), RAISES, "number of different fences")
    newest = await stores[0].raise_fence("s1")
    expect(newest > max(fences), f"fence {newest} should be higher than {max(fences)}")


@CASES.add("a fence that is too high is accepted", "shared")
async def other_fences_refused(run: StoreRun) -> None:
    """A write at the right sequence is refused unless its fence is the session's fence."""
    earlier, owner = await moved(run, "s1")
    for store in (earlier, owner):
        for fence in (0, 1, 3):
            expect_refused(await store.append([write("s1", fence)]), SessionMoved, "s1")
    expect_items(await owner.read("s1"), [], "facts of s1")
    expect_stored(await owner.append([write("s1", 2)]))
    expect_refused(await earlier.append([write("s1", 1, 1)]), SessionMoved, "s1")
    expect_items(await owner.read("s1"), numbered(1, 1), "facts of s1")


@CASES.add("a session that moved refuses the whole batch", "shared")
async def moved_alone(run: StoreRun) -> None:
    """The other sessions of the batch are written."""
    earlier, _ = await moved(run, "s1")
    batch = [write("a", 0), write("s1", 1), write("b", 0)]
    expect_refused(await earlier.append(batch), SessionMoved, "s1")
    for name in ("a", "b"):
        expect_items(await earlier.read(name), numbered(1, 1, name), f"facts of {name}")


@CASES.add("the fences of a unit are compared after it is stored", "shared")
async def moved_unit(run: StoreRun) -> None:
    """A unit is refused if one of its sessions moved."""
    earlier, _ = await moved(run, "s1")
    batch = [write("a", 0), write("s1", 1), write("b", 0)]
    refused = await earlier.append(batch, [frozenset({"a", "s1"})])
    expect_refused(refused, SessionMoved, "a", "s1", names="session s1")
    expect_items(await earlier.read("a"), [], "facts of a")
    expect_items(await earlier.read("b"), numbered(1, 1, "b"), "facts of b")


@CASES.add("the row of a session that moved is stored", "shared")
async def moved_row(run: StoreRun) -> None:
    """Neither the row nor the texts of a write with an old fence are stored."""
    earlier, owner = await moved(run, "s1")
    row, texts = meta("s1", title="stale"), [TurnText("t1", "violet")]
    stale = [SessionWrite("s1", 0, [], row, texts, fence=1)]
    expect_refused(await earlier.append(stale), SessionMoved, "s1")
    expect_same(await owner.session("s1"), None, "row of s1")
    await owner.append([SessionWrite("s1", 0, [], meta("s1"), fence=2)])
    expect_items(await found_ids(owner, "violet"), [], "sessions that a search finds")


@CASES.add("the fence is compared before a call waits for its turn", "shared")
async def delayed_writes(run: StoreRun) -> None:
    """No write of an earlier owner is stored after `raise_fence`, also if it began before."""
    earlier, owner = await run.open(), await run.open()
    for number in range(TAKEOVERS):
        name = f"s{number}"
        fence = await earlier.raise_fence(name)
        writes = [
            asyncio.create_task(earlier.append([write(name, fence, expected)]))
            for expected in range(10)
        ]
        for _ in range(number % 4):
            await asyncio.sleep(0)
        await owner.raise_fence(name)
        taken_over = await owner.read(name)
        await asyncio.gather(*writes)
        found = await owner.read(name)
        expect_items(found, taken_over, f"facts of {name} after the takeover")
        expect_items(found, numbered(1, len(found), name), f"facts of {name}")


@CASES.add("fences are kept in memory only", "shared", "durable")
async def kept_fences(run: StoreRun) -> None:
    """A new store object has the same fences."""
    store = await run.open()
    fences = [await store.raise_fence("s1") for _ in range(3)]
    await put(store, 1, 1, fence=fences[-1])
    store = await run.reopened(store)
    expect_refused(await store.append([write("s1", fences[0], 1)]), SessionMoved, "s1")
    expect_stored(await store.append([write("s1", fences[-1], 1)]))
    newest = await store.raise_fence("s1")
    expect(newest > fences[-1], f"fence {newest} should be higher than {fences[-1]}")


@CASES.add("`delete` deletes the fence", "shared")
async def fence_of_a_deleted_session(run: StoreRun) -> None:
    """`delete` keeps the fence, because an earlier owner may still write to the id."""
    earlier, owner = await moved(run, "s1")
    await put(owner, 1, 3, fence=2)
    expect_same(await owner.delete("s1"), True, "result of delete")
    expect_refused(await earlier.append([write("s1", 1)]), SessionMoved, "s1")
    expect_refused(await earlier.append([write("s1", 0)]), SessionMoved, "s1")
    await put(owner, 1, 1, fence=2)
    newest = await earlier.raise_fence("s1")
    expect(newest > 2, f"fence {newest} should be higher than 2")
