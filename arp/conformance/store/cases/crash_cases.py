"""Cases with a process that is killed: what was acknowledged is stored, and nothing is half done.

The process is killed right after an acknowledgement (`killed_after_…`), or at random moments while
it writes. Afterwards, each case uses a new store object over the same storage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from arp.conformance.cases import expect, expect_items, expect_same
from arp.conformance.store.checked_store import CheckedStore
from arp.conformance.store.sample_facts import (
    facts,
    found_ids,
    meta,
    numbered,
    put,
    read_all,
)
from arp.conformance.store.store_case import StoreCases, StoreRun
from arp.conformance.store.writer_roles import APPENDED, GROUPS, MODEL, UNITS
from arp.store.store import SessionWrite

CASES = StoreCases()

KILLS = 5
"""Number of times that a case kills a process at a random moment."""

MAX_DELAY_S = 0.1
"""Maximum time in seconds between the last line that is read and the kill."""

RANDOM_KILLS = frozenset({"acknowledged_facts", "facts_after_kills", "units_after_kills"})
"""Names of the cases that kill several times, which takes seconds."""


async def after_kill(run: StoreRun, role: str) -> CheckedStore:
    """Kill a process when it prints that its role is done; return a new open store object."""
    async with run.process(role) as process:
        await process.line()
        await process.kill()
    return await run.open()


@CASES.add("`append` returns before the facts are durable", "durable")
async def killed_after_append(run: StoreRun) -> None:
    """Facts, row and texts are durable when `append` returns."""
    store = await after_kill(run, "append")
    expect_items(await store.read("s1"), numbered(1, APPENDED), "facts of s1")
    row = await store.session("s1")
    expect_same(row and row.last_sequence, APPENDED, "last_sequence in the row of s1")
    expect_items(await found_ids(store, "violet"), ["s1"], "sessions that a search finds")


@CASES.add("`save_model` returns before the model is durable", "durable")
async def killed_after_save(run: StoreRun) -> None:
    """A model is durable when `save_model` returns."""
    store = await after_kill(run, "save")
    expect_same(await store.load_model("s1", "thread"), (APPENDED, MODEL), "model of s1")


@CASES.add("`delete` returns before the deletion is durable", "durable")
async def killed_after_delete(run: StoreRun) -> None:
    """A deletion and the note of a removal are durable when their calls return."""
    store = await run.open()
    for name in ("s1", "b"):
        await store.append([SessionWrite(name, 0, facts(1, 3, name), meta(name))])
    await store.aclose()
    store = await after_kill(run, "delete")
    expect_items(await store.read("s1"), [], "facts of s1")
    expect_same(await store.session("s1"), None, "row of s1")
    expect_items(await store.read("b"), numbered(1, 3, "b"), "facts of b")
    expect_same(await store.removals(), {"files": "s1"}, "notes of removals")


@CASES.add("a batch is acknowledged before it is durable", "durable")
async def acknowledged_facts(run: StoreRun) -> None:
    """After kills at random moments, every acknowledged fact is stored."""
    acknowledged: dict[str, int] = {}
    for number in range(KILLS):
        acknowledged |= last_acknowledged(await lines_until_kill(run, number))
        store = await run.open()
        for name, last in acknowledged.items():
            stored = len(await read_all(store, name))
            expect(stored >= last, f"{name}: {last} facts were acknowledged, {stored} are stored")
        await store.aclose()
    expect_same(len(acknowledged), 2 * len(UNITS), "number of written sessions")


@CASES.add("`open` stores the newest facts a second time", "durable")
async def facts_after_kills(run: StoreRun) -> None:
    """After kills at random moments, no fact is doubled, changed or missing in between."""
    for number in range(KILLS):
        await lines_until_kill(run, number)
        store = await run.open()
        for name in sorted(frozenset().union(*UNITS)):
            found = await read_all(store, name)
            expect_items(found, numbered(1, len(found), name), f"facts of {name}")
            await put(store, len(found) + 1, len(found) + 1, name)
        await store.aclose()


@CASES.add("the sessions of a unit are stored in several transactions", "durable")
async def units_after_kills(run: StoreRun) -> None:
    """After kills at random moments, the sessions of a unit are stored together or not at all."""
    for number in range(KILLS):
        await lines_until_kill(run, number)
        store = await run.open()
        for unit in UNITS:
            lengths = {name: len(await read_all(store, name)) for name in sorted(unit)}
            expect(len(set(lengths.values())) == 1, f"a unit has different lengths: {lengths}")
        await store.aclose()


async def lines_until_kill(run: StoreRun, number: int) -> list[str]:
    """Start a process that writes all the time, and kill it at a random moment.

    Returns:
        The lines that it wrote. Each names the acknowledged sequences of some sessions.
    """
    chance = Random(number)
    async with run.process("stream") as process:
        lines = [await process.line() for _ in range(chance.randint(len(GROUPS), 30))]
        await asyncio.sleep(chance.uniform(0, MAX_DELAY_S))
        lines += await process.kill()
    return lines


def last_acknowledged(lines: Iterable[str]) -> dict[str, int]:
    """Return the last acknowledged sequence of each session."""
    last: dict[str, int] = {}
    for line in lines:
        for word in line.split():
            name, _, sequence = word.partition("=")
            last[name] = int(sequence)
    return last
