"""Cases about `delete`: everything of a session is gone, and nothing else."""

from __future__ import annotations

from arp.conformance.cases import expect_items, expect_same
from arp.conformance.store.sample_facts import facts, found_ids, meta, numbered, put, put_row
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_stored
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite, Store

CASES = StoreCases()

NEIGHBOURS = ("s1", "s", "s11", "S1", "s_", "s%")
"""Ids that look like each other."""


async def store_session(store: Store, session_id: str) -> None:
    """Store a session with facts, a row, a text and a model."""
    row = meta(session_id, title=f"title of {session_id}", active=True)
    texts = [TurnText("t1", f"violet {session_id}")]
    expect_stored(
        await store.append([SessionWrite(session_id, 0, facts(1, 3, session_id), row, texts)])
    )
    await store.save_model(session_id, "thread", 3, session_id.encode())


@CASES.add("`delete` deletes the row only")
async def deleted_facts(run: StoreRun) -> None:
    """The facts of a deleted session are gone."""
    store = await run.open()
    await store_session(store, "s1")
    await store.delete("s1")
    expect_items(await store.read("s1"), [], "facts of s1")
    expect_items(await store.read("s1", 2), [], "facts after 2")
    expect_same(await store.heads("s1"), [], "hashes of s1")


@CASES.add("`delete` deletes the facts only")
async def deleted_row(run: StoreRun) -> None:
    """The row of a deleted session is gone from every list."""
    store = await run.open()
    await store_session(store, "s1")
    await store.delete("s1")
    expect_same(await store.session("s1"), None, "row of s1")
    expect_items(await store.sessions(), [], "rows")
    expect_items(await store.sessions(owner="ann"), [], "rows of ann")
    expect_items(await store.open_sessions(), [], "open sessions")


@CASES.add("`delete` leaves the texts of the session")
async def deleted_texts(run: StoreRun) -> None:
    """The texts of a deleted session are not found, also if its id is used again."""
    store = await run.open()
    await store_session(store, "s1")
    await store.delete("s1")
    expect_items(await found_ids(store, "violet"), [], "sessions that a search finds")
    await put_row(store, meta("s1"))
    expect_items(await found_ids(store, "violet"), [], "sessions that a search finds later")


@CASES.add("`delete` leaves the models of the session")
async def deleted_models(run: StoreRun) -> None:
    """The models of a deleted session are gone, also if its id is used again."""
    store = await run.open()
    await store_session(store, "s1")
    await store.delete("s1")
    expect_same(await store.load_model("s1", "thread"), None, "model of s1")
    await put(store, 1, 9)
    expect_same(await store.load_model("s1", "thread"), None, "model of the new session")


@CASES.add("`delete` deletes every session whose id begins with that id")
async def other_sessions(run: StoreRun) -> None:
    """Other sessions keep their facts, rows, texts and models, whatever their ids are."""
    store = await run.open()
    for name in NEIGHBOURS:
        await store_session(store, name)
    await store.note_removal("s1", "files of s1")
    await store.delete("s%")
    await store.delete("s_")
    await store.delete("s")
    rest = {"s1", "s11", "S1"}
    for name in rest:
        expect_items(await store.read(name), numbered(1, 3, name), f"facts of {name}")
        expect_same(await store.load_model(name, "thread"), (3, name.encode()), f"model of {name}")
    expect_same({row.id for row in await store.sessions()}, rest, "ids of the rows")
    expect_same(set(await found_ids(store, "violet")), rest, "sessions that a search finds")
    expect_same(await store.removals(), {"s1": "files of s1"}, "notes")


@CASES.add("the sequence of a deleted session is remembered")
async def id_used_again(run: StoreRun) -> None:
    """The id of a deleted session can be used for a new session, from sequence 1."""
    store = await run.open()
    for _ in range(3):
        await store_session(store, "s1")
        expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")
        expect_same(await store.delete("s1"), True, "result of delete")
    await put(store, 1, 1)
    expect_items(await store.read("s1"), numbered(1, 1), "facts of s1")


@CASES.add("`delete` always returns `True`")
async def result_of_delete(run: StoreRun) -> None:
    """`delete` returns whether there was a row or a fact."""
    store = await run.open()
    await put(store, 1, 1, "facts")
    await put_row(store, meta("row"))
    for name, wanted in (("facts", True), ("row", True), ("neither", False), ("facts", False)):
        expect_same(await store.delete(name), wanted, f"result of delete({name!r})")
