"""Cases about models of sessions, and about notes of removals."""

from __future__ import annotations

from arp.conformance.cases import expect_items, expect_same
from arp.conformance.store.sample_facts import numbered, put
from arp.conformance.store.store_case import StoreCases, StoreRun, refused
from arp.store.errors import SequenceConflict

CASES = StoreCases()

BINARY = bytes(range(256)) * 1000
"""Data that is neither text nor JSON."""


@CASES.add("the data of a model is stored as text")
async def model_as_saved(run: StoreRun) -> None:
    """A model is returned with the same bytes and the sequence that it covers."""
    store = await run.open()
    await put(store, 1, 5)
    expect_same(await store.load_model("s1", "thread"), None, "model before it is saved")
    await store.save_model("s1", "thread", 3, b'{"n":3}')
    await store.save_model("s1", "tasks", 5, BINARY)
    expect_same(await store.load_model("s1", "thread"), (3, b'{"n":3}'), "model thread")
    expect_same(await store.load_model("s1", "tasks"), (5, BINARY), "model tasks")
    expect_items(await store.read("s1"), numbered(1, 5), "facts of s1")


@CASES.add("a session has one model, whatever its name is")
async def model_names(run: StoreRun) -> None:
    """Each session has its own model of each name."""
    store = await run.open()
    for name in ("s1", "s2"):
        await put(store, 1, 5, name)
        await store.save_model(name, "thread", 5, b"thread of " + name.encode())
    await store.save_model("s1", "Thread", 5, b"another name")
    for name in ("s1", "s2"):
        model = await store.load_model(name, "thread")
        expect_same(model, (5, b"thread of " + name.encode()), f"model of {name}")
    expect_same(await store.load_model("s2", "Thread"), None, "model of another name")


@CASES.add("an older model replaces a newer one")
async def newer_model(run: StoreRun) -> None:
    """A model that covers fewer facts than the stored one is not stored."""
    store = await run.open()
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 4, b"four")
    await store.save_model("s1", "thread", 2, b"two")
    expect_same(await store.load_model("s1", "thread"), (4, b"four"), "model after an older one")
    await store.save_model("s1", "thread", 5, b"five")
    expect_same(await store.load_model("s1", "thread"), (5, b"five"), "model after a newer one")


@CASES.add("a model of the same sequence is not stored")
async def same_sequence_model(run: StoreRun) -> None:
    """A model that covers the same facts replaces the stored one."""
    store = await run.open()
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 4, b"four")
    await store.save_model("s1", "thread", 4, b"rebuilt")
    expect_same(await store.load_model("s1", "thread"), (4, b"rebuilt"), "model")


@CASES.add("the sequence of a model is not compared with the facts")
async def model_ahead(run: StoreRun) -> None:
    """A model of more facts than the session has is refused, and the stored one stays."""
    store = await run.open()
    await put(store, 1, 5)
    await store.save_model("s1", "thread", 5, b"five")
    for sequence in (-1, 0, 6):
        with refused(SequenceConflict, f"a model of sequence {sequence} of 5"):
            await store.save_model("s1", "thread", sequence, b"x")
    with refused(SequenceConflict, "a model of an unknown session"):
        await store.save_model("unknown", "thread", 1, b"x")
    expect_same(await store.load_model("s1", "thread"), (5, b"five"), "model")


@CASES.add("`note_removal` with `None` stores an empty note")
async def removal_notes(run: StoreRun) -> None:
    """The note of a removal is stored, replaced, and deleted by `None`."""
    store = await run.open()
    expect_same(await store.removals(), {}, "notes at the beginning")
    await store.note_removal("removal/1", 'any text: "quoted", \n, 🎈')
    await store.note_removal("%", "")
    wanted = {"removal/1": 'any text: "quoted", \n, 🎈', "%": ""}
    expect_same(await store.removals(), wanted, "notes")
    await store.note_removal("removal/1", None)
    await store.note_removal("unknown", None)
    expect_same(await store.removals(), {"%": ""}, "notes after one is done")


@CASES.add("notes are sorted by name")
async def order_of_removals(run: StoreRun) -> None:
    """Notes are returned oldest first; a replaced note counts as new."""
    store = await run.open()
    for name in ("c", "a", "b", "d"):
        await store.note_removal(name, "first")
    await store.note_removal("a", "second")
    wanted = [("c", "first"), ("b", "first"), ("d", "first"), ("a", "second")]
    expect_items(list((await store.removals()).items()), wanted, "notes")
