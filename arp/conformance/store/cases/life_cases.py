"""Cases about opening and closing: what is kept, and who may have the storage open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from arp.conformance.cases import CaseFailed, expect, expect_items, expect_same
from arp.conformance.store.sample_facts import (
    facts,
    found_ids,
    meta,
    numbered,
    put,
)
from arp.conformance.store.store_case import (
    StoreCases,
    StoreRun,
    expect_row,
    expect_stored,
    refused,
)
from arp.store.errors import StoreClosed, StoreLocked
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite, Store

CASES = StoreCases()

WAITING = 20
"""Number of calls that wait when the store is closed."""

CALLS: Final[Mapping[str, Callable[[Store], Awaitable[object]]]] = {
    "append": lambda store: store.append([SessionWrite("s1", 0, facts(1, 1))]),
    "an empty append": lambda store: store.append([]),
    "read": lambda store: store.read("s1"),
    "sessions": lambda store: store.sessions(),
    "search": lambda store: store.search(["x"], owner="ann"),
    "session": lambda store: store.session("s1"),
    "delete": lambda store: store.delete("s1"),
    "note_removal": lambda store: store.note_removal("x", "x"),
    "removals": lambda store: store.removals(),
    "open_sessions": lambda store: store.open_sessions(),
    "heads": lambda store: store.heads("s1"),
    "save_model": lambda store: store.save_model("s1", "thread", 1, b"x"),
    "load_model": lambda store: store.load_model("s1", "thread"),
    "runtime_id": lambda store: store.runtime_id(),
}
"""One call of each method that needs an open store."""


@CASES.add("a store can be read before it is opened")
async def closed_before_open(run: StoreRun) -> None:
    """Before `open`, every method raises `StoreClosed`."""
    store = run.make()
    for what, call in CALLS.items():
        with refused(StoreClosed, f"{what} before open"):
            await call(store)


@CASES.add("a store can be read after it is closed")
async def closed_after_aclose(run: StoreRun) -> None:
    """After `aclose`, every method raises `StoreClosed`."""
    store = await run.open()
    await put(store, 1, 1)
    await store.aclose()
    for what, call in CALLS.items():
        with refused(StoreClosed, f"{what} after aclose"):
            await call(store)


@CASES.add("a second `aclose` raises `StoreClosed`")
async def closed_twice(run: StoreRun) -> None:
    """`aclose` can be called again, and before `open`."""
    await run.make().aclose()
    store = await run.open()
    await store.aclose()
    await store.aclose()


@CASES.add("`aclose` refuses the calls that wait")
async def close_finishes_calls(run: StoreRun) -> None:
    """`aclose` finishes the calls that wait, and what they stored is there after `open`."""
    store = await run.open()
    names = [f"s{number}" for number in range(WAITING)]
    tasks = [asyncio.create_task(put(store, 1, 3, name)) for name in names]
    await asyncio.sleep(0)
    await store.aclose()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    expect_same([repr(error) for error in outcomes if error], [], "errors of the waiting calls")
    await store.open()
    for name in names:
        expect_items(await store.read(name), numbered(1, 3, name), f"facts of {name}")


@CASES.add("`open` begins with an empty storage")
async def same_object_opened_again(run: StoreRun) -> None:
    """A store object that is closed and opened again has everything that was stored."""
    store = await run.open()
    write = SessionWrite("s1", 0, facts(1, 3), meta("s1", active=True))
    expect_stored(await store.append([write]))
    await store.aclose()
    await store.open()
    expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")
    expect_items(await store.open_sessions(), ["s1"], "open sessions")
    await put(store, 4, 4)
    expect_items(await store.read("s1", 2), numbered(3, 4), "facts after 2")


@CASES.add("the newest facts of a session are kept in memory only", "durable")
async def kept_facts(run: StoreRun) -> None:
    """A new store object has the facts that an earlier one stored, and continues after them."""
    store = await run.open()
    for first in (1, 11, 21):
        await put(store, first, first + 9)
        await put(store, first, first + 9, "b")
        store = await run.reopened(store)
        for name in ("s1", "b"):
            expect_items(await store.read(name), numbered(1, first + 9, name), f"facts of {name}")
    await put(store, 31, 33)
    expect_items(await store.read("s1", 25, 7), numbered(26, 32), "facts after 25")


@CASES.add("rows are kept in memory only", "durable")
async def kept_rows(run: StoreRun) -> None:
    """A new store object has the same rows."""
    store = await run.open()
    row = meta("s1", title="violet", active=True, pinned=True)
    expect_stored(await store.append([SessionWrite("s1", 0, facts(1, 3), row)]))
    stored_row = await store.session("s1")
    store = await run.reopened(store)
    expect_row(await store.session("s1"), stored_row, "row of s1")
    expect_same(await store.sessions(owner="ann", pinned=True), [stored_row], "pinned rows")
    expect_items(await store.open_sessions(), ["s1"], "open sessions")


@CASES.add("texts are kept in memory only", "durable")
async def kept_texts(run: StoreRun) -> None:
    """A new store object finds the same texts."""
    store = await run.open()
    texts = [TurnText("t1", "violet")]
    expect_stored(await store.append([SessionWrite("s1", 0, [], meta("s1"), texts)]))
    store = await run.reopened(store)
    expect_items(await found_ids(store, "violet"), ["s1"], "sessions that a search finds")


@CASES.add("models are kept in memory only", "durable")
async def kept_models(run: StoreRun) -> None:
    """A new store object has the same models."""
    store = await run.open()
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 4, b"\x00four")
    store = await run.reopened(store)
    expect_same(await store.load_model("s1", "thread"), (4, b"\x00four"), "model of s1")


@CASES.add("notes of removals are kept in memory only", "durable")
async def kept_removals(run: StoreRun) -> None:
    """A new store object has the same notes of removals."""
    store = await run.open()
    await store.note_removal("b", "first")
    await store.note_removal("a", "second")
    store = await run.reopened(store)
    wanted = [("b", "first"), ("a", "second")]
    expect_items(list((await store.removals()).items()), wanted, "notes")


@CASES.add("`delete` changes nothing in the storage", "durable")
async def kept_deletions(run: StoreRun) -> None:
    """What was deleted stays deleted in a new store object."""
    store = await run.open()
    for name in ("s1", "b"):
        await store.append([SessionWrite(name, 0, facts(1, 3, name), meta(name))])
    await store.delete("s1")
    store = await run.reopened(store)
    expect_items(await store.read("s1"), [], "facts of s1")
    expect_same([row.id for row in await store.sessions()], ["b"], "ids of the rows")
    await put(store, 1, 1)


@CASES.add("`runtime_id` is a new id at every `open`")
async def same_runtime_id(run: StoreRun) -> None:
    """A store object that is closed and opened again has the same runtime id."""
    store = await run.open()
    runtime_id = await store.runtime_id()
    expect(runtime_id, "the runtime id is empty")
    await store.aclose()
    await store.open()
    expect_same(await store.runtime_id(), runtime_id, "runtime id after open")


@CASES.add("the runtime id is kept in memory only", "durable")
async def kept_runtime_id(run: StoreRun) -> None:
    """A new store object has the same runtime id."""
    store = await run.open()
    runtime_id = await store.runtime_id()
    store = await run.reopened(store)
    expect_same(await store.runtime_id(), runtime_id, "runtime id in a new store object")


@CASES.add("every storage has the same runtime id")
async def own_runtime_id(run: StoreRun) -> None:
    """Two storages have different runtime ids, and different sessions."""
    store, other = await run.open(), await run.open_other()
    await put(store, 1, 3)
    expect_items(await other.read("s1"), [], "facts of s1 in another storage")
    if await store.runtime_id() == await other.runtime_id():
        raise CaseFailed("two storages have the same runtime id")


@CASES.add("the storage is not locked", "durable", "unshared")
async def locked(run: StoreRun) -> None:
    """While the storage is open, a second store object is refused with `StoreLocked`."""
    store, second = await run.open(), run.make()
    with refused(StoreLocked, "opening the storage twice"):
        await second.open()
    await put(store, 1, 1)
    await store.aclose()
    await second.open()
    expect_items(await second.read("s1"), numbered(1, 1), "facts of s1")


@CASES.add("only store objects of the same process are refused", "durable", "unshared")
async def locked_by_another_process(run: StoreRun) -> None:
    """Another process is refused too, and the lock ends with its process, also after SIGKILL."""
    store = run.make()
    async with run.process("hold") as process:
        await process.line()
        with refused(StoreLocked, "opening the storage of another process"):
            await store.open()
        await process.kill()
    await store.open()
    await put(store, 1, 1)
