"""Cases about damage: changed bytes are found, and only their session is affected."""

from __future__ import annotations

from arp.conformance.cases import CaseFailed, expect, expect_items, expect_same
from arp.conformance.store.checked_store import CheckedStore
from arp.conformance.store.sample_facts import meta, numbered, put, put_row
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_refused, refused
from arp.conformance.store.writer_roles import APPENDED
from arp.store.errors import StoreDamaged
from arp.store.store import Page, SessionWrite

CASES = StoreCases()

DAMAGED = 15
"""Sequence of the damaged fact; the store was closed after facts 10, 20 and 30."""


async def damaged(run: StoreRun) -> CheckedStore:
    """Return an open store with two sessions of 30 facts; fact 15 of session `a` is damaged."""
    store = await run.open()
    for first in (1, 11, 21):
        for name in ("a", "b"):
            await put(store, first, first + 9, name)
        await put_row_of(store, "b", first + 9)
        store = await run.reopened(store)
    await store.aclose()
    run.damage("a", DAMAGED)
    return await run.open()


async def put_row_of(store: CheckedStore, name: str, last: int) -> None:
    """Store the row of a session that has facts."""
    await store.append([SessionWrite(name, last, [], meta(name))])


async def intact_facts(store: CheckedStore, session_id: str) -> tuple[Page, StoreDamaged | None]:
    """Read a session to its end or to a damage; return the facts and the error."""
    found: Page = []
    while True:
        try:
            page = await store.read(session_id, len(found), 7)
        except StoreDamaged as error:
            return found, error
        if not page:
            return found, None
        found += page


@CASES.add("a damaged fact is taken for the end of its session", "durable")
async def damage_found(run: StoreRun) -> None:
    """A damaged session raises `StoreDamaged`, which names the session and the last intact fact."""
    store = await damaged(run)
    found, error = await intact_facts(store, "a")
    if error is None:
        raise CaseFailed(f"session a ends after {len(found)} facts of 30, without StoreDamaged")
    expect_same(error.after, len(found), "last intact fact")
    expect("session a" in str(error), f"the message should name the session: {error}")
    with refused(StoreDamaged, "reading the damaged fact alone"):
        await store.read("a", DAMAGED - 1, 1)


@CASES.add("a damaged session has no facts at all", "durable")
async def facts_before_damage(run: StoreRun) -> None:
    """The facts before the damage are read, and no fact is read wrongly."""
    store = await damaged(run)
    found, _ = await intact_facts(store, "a")
    expect_items(found, numbered(1, len(found), "a"), "facts before the damage")
    expect(10 <= len(found) < DAMAGED, f"{len(found)} facts are read; the damage is at {DAMAGED}")
    for after in range(len(found), 30):
        try:
            page = await store.read("a", after)
        except StoreDamaged:
            continue
        expect_items(page, numbered(after + 1, 30, "a")[: len(page)], f"facts after {after}")


@CASES.add("one damaged session makes every read fail", "durable")
async def other_sessions_work(run: StoreRun) -> None:
    """The other sessions are read, listed and written as before."""
    store = await damaged(run)
    expect_items(await store.read("b"), numbered(1, 30, "b"), "facts of b")
    expect_same([row.id for row in await store.sessions()], ["b"], "ids of the rows")
    await put(store, 31, 32, "b")
    await put(store, 1, 1, "new")
    await put_row(store, meta("row"))
    expect_items(await store.read("b", 28), numbered(29, 32, "b"), "facts of b after 28")


@CASES.add("new facts are stored after damaged ones", "durable")
async def append_to_damaged(run: StoreRun) -> None:
    """If the newest facts of a session are damaged after a kill, new ones are refused."""
    async with run.process("append") as process:
        await process.line()
        await process.kill()
    run.damage("s1", APPENDED)
    store = await run.open()
    found, error = await intact_facts(store, "s1")
    expect(error is not None, f"session s1 ends after {len(found)} facts, without StoreDamaged")
    for expected in {len(found), APPENDED}:
        refusals = await store.append([SessionWrite("s1", expected, [b"{}"])])
        expect_refused(refusals, StoreDamaged, "s1")
    await put(store, 1, 1, "other")


@CASES.add("a damaged session cannot be deleted", "durable")
async def damaged_deleted(run: StoreRun) -> None:
    """A damaged session can be deleted, and its id can be used again."""
    store = await damaged(run)
    expect_same(await store.delete("a"), True, "result of delete")
    expect_items(await store.read("a"), [], "facts of the deleted session")
    await put(store, 1, 2, "a")
    store = await run.reopened(store)
    expect_items(await store.read("a"), numbered(1, 2, "a"), "facts of the new session")
    expect_items(await store.read("b"), numbered(1, 30, "b"), "facts of b")


@CASES.add("the damaged data of a model is returned", "durable")
async def damaged_model(run: StoreRun) -> None:
    """The data of a damaged model is empty, and the model can be saved again."""
    store = await run.open()
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 5, b"all five")
    await store.save_model("s1", "tasks", 4, b"four")
    await store.aclose()
    run.damage_model("s1", "thread")
    store = await run.open()
    expect_same(await store.load_model("s1", "thread"), (5, b""), "damaged model")
    expect_same(await store.load_model("s1", "tasks"), (4, b"four"), "other model")
    await store.save_model("s1", "thread", 5, b"rebuilt")
    expect_same(await store.load_model("s1", "thread"), (5, b"rebuilt"), "rebuilt model")
