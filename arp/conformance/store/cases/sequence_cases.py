"""Cases about conflicts: which sessions of a batch are refused, and which belong together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from arp.conformance.cases import expect, expect_items, expect_same
from arp.conformance.store.sample_facts import fact, facts, found_ids, meta, numbered, put
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_refused, expect_stored
from arp.store.errors import InvalidWrite, SequenceConflict
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite, Store

CASES = StoreCases()

RACES = 20
"""Number of times that two writers race."""


def write(session_id: str, expected: int = 0) -> SessionWrite:
    """Return a write of one fact."""
    return SessionWrite(session_id, expected, [fact(expected + 1, session_id)])


def units(*names: str) -> list[frozenset[str]]:
    """Return sets of sessions with names of one character; `"ab"` is the set of `a` and `b`."""
    return [frozenset(name) for name in names]


async def expect_written(store: Store, sessions: Iterable[str], what: str) -> None:
    """Expect that exactly these of the sessions `a` to `e` have a fact."""
    written = [name for name in "abcde" if await store.read(name)]
    expect_same(written, sorted(sessions), f"sessions that are written after {what}")


@CASES.add("only a sequence that is too low is refused")
async def wrong_sequence(run: StoreRun) -> None:
    """A write with an expected sequence that is too low or too high is refused."""
    store = await run.open()
    await put(store, 1, 2)
    for expected in (0, 1, 3, 50):
        refused = await store.append([SessionWrite("s1", expected, [b"{}"])])
        expect_refused(refused, SequenceConflict, "s1")
    expect_refused(await store.append([write("new", 1)]), SequenceConflict, "new")
    expect_items(await store.read("s1"), numbered(1, 2), "facts of s1")


@CASES.add("a conflict reports the expected sequence as the actual one")
async def conflict_reported(run: StoreRun) -> None:
    """A conflict names the session, the expected sequence and the actual one."""
    store = await run.open()
    await put(store, 1, 2)
    refused = await store.append([write("s1", 5)])
    expect_refused(refused, SequenceConflict, "s1", names="session s1")
    error = refused["s1"]
    assert isinstance(error, SequenceConflict)
    expect_same((error.expected, error.actual), (5, 2), "expected and actual sequence")


@CASES.add("the row of a refused session is stored")
async def conflict_stores_nothing(run: StoreRun) -> None:
    """Neither the facts nor the row nor the texts of a refused session are stored."""
    store = await run.open()
    await put(store, 1, 2)
    row, texts = meta("s1", title="refused"), [TurnText("t1", "stale words")]
    stale = [SessionWrite("s1", 1, [fact(2)], row, texts)]
    expect_refused(await store.append(stale), SequenceConflict, "s1")
    expect_items(await store.read("s1"), numbered(1, 2), "facts of s1")
    expect_same(await store.session("s1"), None, "row of s1")
    await store.append([SessionWrite("s1", 2, [], meta("s1"))])
    expect_same(await found_ids(store, "stale"), [], "sessions that a search finds")


@CASES.add("a conflict refuses the whole batch")
async def conflict_alone(run: StoreRun) -> None:
    """The other sessions of the batch are stored, with their rows and texts."""
    store = await run.open()
    await put(store, 1, 2)
    row, texts = meta("new"), [TurnText("t1", "new words")]
    batch = [write("a"), write("s1", 1), SessionWrite("new", 0, [fact(1, "new")], row, texts)]
    expect_refused(await store.append(batch), SequenceConflict, "s1")
    expect_items(await store.read("a"), numbered(1, 1, "a"), "facts of a")
    expect_items(await store.read("new"), numbered(1, 1, "new"), "facts of new")
    expect_same(await found_ids(store, "words"), ["new"], "sessions that a search finds")


@CASES.add("the sequence of a refused session rises in a cache")
async def append_after_conflict(run: StoreRun) -> None:
    """After a conflict, the session accepts a write at its sequence."""
    store = await run.open()
    await put(store, 1, 2)
    batch = [SessionWrite("s1", 2, facts(3, 4)), SessionWrite("s1", 9, facts(5, 5))]
    expect_refused(await store.append(batch), SequenceConflict, "s1")
    await put(store, 3, 3)
    expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")


@CASES.add("the store waits between the comparison and the write")
async def race(run: StoreRun) -> None:
    """If two writers race for a sequence, exactly one is refused."""
    store = await run.open()
    for number in range(RACES):
        name = f"s{number}"
        outcomes = await asyncio.gather(store.append([write(name)]), store.append([write(name)]))
        expect_same(sorted(map(len, outcomes)), [0, 1], "refusals of two writers")
        expect_items(await store.read(name), numbered(1, 1, name), f"facts of {name}")


@CASES.add("a unit of more than one session is refused")
async def together_stored(run: StoreRun) -> None:
    """Sessions that belong together are stored if none of them is refused."""
    store = await run.open()
    shapes = (units("ab"), units("ab", "cd"), units("ab", "bc"), units("a", ""), units("abc", "ab"))
    for number, together in enumerate(shapes):
        batch = [write(name, number) for name in "abcd"]
        expect_stored(await store.append(batch, together))
    for name in "abcd":
        expect_items(await store.read(name), numbered(1, 5, name), f"facts of {name}")


@CASES.add("`together` is ignored")
async def together_refused(run: StoreRun) -> None:
    """If one session of a unit is refused, none of the unit is stored, for the same reason."""
    store = await run.open()
    texts = [TurnText("t1", "violet")]
    batch = [SessionWrite("a", 0, [fact(1, "a")], meta("a"), texts), write("b", 1), write("c")]
    refused = await store.append(batch, units("abc"))
    expect_refused(refused, SequenceConflict, "a", "b", "c", names="session b")
    await expect_written(store, "", "a refused unit")
    expect_same(await store.session("a"), None, "row of a")
    expect_same(await found_ids(store, "violet"), [], "sessions that a search finds")


@CASES.add("a refused unit refuses the whole batch")
async def together_others(run: StoreRun) -> None:
    """Sessions and units of the batch that share nothing with a refused unit are stored."""
    store = await run.open()
    batch = [write("a"), write("b", 1), write("c"), write("d"), write("e")]
    refused = await store.append(batch, units("ab", "cd"))
    expect_refused(refused, SequenceConflict, "a", "b")
    await expect_written(store, "cde", "a refused unit")


@CASES.add("sets that share a session are compared one after the other")
async def together_overlapping(run: StoreRun) -> None:
    """Sets that share a session count as one set, in any order."""
    for number, together in enumerate((units("ab", "bc", "cd"), units("cd", "ab", "bc"))):
        for refused_name in "ad":
            store = await run.open_other()
            batch = [write(name, int(name == refused_name)) for name in "abcde"]
            refused = await store.append(batch, together)
            expect_refused(refused, SequenceConflict, "a", "b", "c", "d")
            await expect_written(store, "e", f"overlapping sets ({number}, {refused_name})")


@CASES.add("an invalid write does not refuse its unit")
async def together_invalid(run: StoreRun) -> None:
    """An invalid write refuses its unit too."""
    store = await run.open()
    batch = [write("a"), SessionWrite("b", 0, [b"[]"]), write("c")]
    expect_refused(await store.append(batch, units("ab")), InvalidWrite, "a", "b")
    await expect_written(store, "c", "an invalid write")


@CASES.add("only the first write to each session of a unit is compared")
async def together_several_writes(run: StoreRun) -> None:
    """A unit is refused if a later write to one of its sessions is refused."""
    store = await run.open()
    batch = [write("a"), write("b"), write("a", 1), write("b", 7)]
    refused = await store.append(batch, units("ab"))
    expect_refused(refused, SequenceConflict, "a", "b", names="session b")
    await expect_written(store, "", "a refused unit")
    expect(not await store.sessions(), "there should be no rows")
