"""Cases about `read`: pages of facts, their limits, and the stored hashes."""

from __future__ import annotations

from arp.conformance.cases import expect, expect_items, expect_same
from arp.conformance.store.sample_facts import fact, facts, meta, numbered, put, read_all
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_stored
from arp.ledger.chain import genesis, links
from arp.store.store import PAGE_BYTES, PAGE_FACTS, SessionWrite, pages
from arp.store.store import facts as facts_of

CASES = StoreCases()

LONG = 2 * PAGE_FACTS + 3
"""Number of facts of a session with three pages."""


@CASES.add("`read` includes the fact `after`")
async def after_and_limit(run: StoreRun) -> None:
    """A page begins after a sequence and ends at the limit."""
    store = await run.open()
    await put(store, 1, 10)
    expect_items(await store.read("s1", 3, 4), numbered(4, 7), "facts after 3")
    expect_items(await store.read("s1", 9), numbered(10, 10), "facts after 9")
    for after in (10, 11, 2**60):
        expect_items(await store.read("s1", after), [], f"facts after {after}")


@CASES.add("a limit of 0 returns an empty page")
async def odd_limits(run: StoreRun) -> None:
    """A limit below 1 counts as 1, and a sequence below 0 as 0."""
    store = await run.open()
    await put(store, 1, 10)
    expect_items(await store.read("s1", -5, 2), numbered(1, 2), "facts after -5")
    expect_items(await store.read("s1", 0, 0), numbered(1, 1), "facts with limit 0")
    expect_items(await store.read("s1", 4, -3), numbered(5, 5), "facts with limit -3")
    expect_items(await store.read("s1", 0, 10**9), numbered(1, 10), "facts with limit 10**9")


@CASES.add("reading an unknown session raises an error")
async def unknown_session(run: StoreRun) -> None:
    """An unknown session has no facts, no row, no model and no hashes."""
    store = await run.open()
    await put(store, 1, 1, "s1-known")
    for name in ("s1", "", "a\nb"):
        expect_items(await store.read(name), [], f"facts of {name!r}")
        expect_same(await store.session(name), None, f"row of {name!r}")
        expect_same(await store.load_model(name, "thread"), None, f"model of {name!r}")
        expect_same(await store.heads(name), [], f"hashes of {name!r}")


@CASES.add("a page has no limit in bytes")
async def page_bytes(run: StoreRun) -> None:
    """A page has at most `PAGE_BYTES`, and the next page continues after it."""
    store = await run.open()
    big = [b'{"text":"%s"}' % (b"x" * (PAGE_BYTES * 2 // 5)) for _ in range(5)]
    expect_stored(await store.append([SessionWrite("s1", 0, big)]))
    after = 0
    while page := await store.read("s1", after):
        size = sum(len(one) for _, one in page)
        expect(size <= PAGE_BYTES, f"the page after {after} has {size} bytes")
        expect_same(page[0][0], after + 1, "first sequence of a page")
        after = page[-1][0]
    expect_same(after, 5, "last sequence")


@CASES.add("a fact above `PAGE_BYTES` is left out of every page")
async def huge_fact(run: StoreRun) -> None:
    """A single fact above `PAGE_BYTES` is a page of its own."""
    store = await run.open()
    huge = b'{"text":"%s"}' % (b"x" * PAGE_BYTES)
    expect_stored(await store.append([SessionWrite("s1", 0, [fact(1), huge, fact(3)])]))
    expect_items([one for one, _ in await store.read("s1")], [1], "sequences of the first page")
    page = await store.read("s1", 1)
    expect_items([one for one, _ in page], [2], "sequences of the second page")
    expect(page[0][1] == huge, "the huge fact should be read as it was written")
    expect_items(await store.read("s1", 2), numbered(3, 3), "third page")


@CASES.add("facts after the first 1,000 cannot be read")
async def all_pages(run: StoreRun) -> None:
    """All facts of a range are read once, whatever the pages are."""
    store = await run.open()
    for first in range(1, LONG + 1, 200):
        await put(store, first, min(first + 199, LONG))
    for after, through in ((0, None), (3, None), (0, 4), (PAGE_FACTS, LONG - 1), (5, 5), (9, 4)):
        found = [entry async for entry in facts_of(store, "s1", after, through)]
        last = LONG if through is None else through
        expect_items(found, numbered(after + 1, last), f"facts from {after} to {through}")
    sizes = [len(page) async for page in pages(store, "s1")]
    expect(max(sizes) <= PAGE_FACTS, f"pages should have at most {PAGE_FACTS} facts: {sizes}")


@CASES.add("`read` returns the facts as of the first read")
async def appended_while_reading(run: StoreRun) -> None:
    """Facts that are appended while a session is read are read too."""
    store = await run.open()
    await put(store, 1, 2)
    seen: list[int] = []
    async for sequence, _ in facts_of(store, "s1"):
        seen.append(sequence)
        if sequence == 1:
            await put(store, 3, 4)
    expect_items(seen, [1, 2, 3, 4], "sequences")


@CASES.add("hashes are computed without the epoch of the session")
async def heads(run: StoreRun) -> None:
    """Each stored hash is the hash of the chain at its fact, in order; a store may store none."""
    store = await run.open()
    hashes = list(links(genesis("s1", "e1"), facts(1, 9)))
    for first, last in ((1, 4), (5, 9)):
        await store.append([SessionWrite("s1", first - 1, facts(first, last), meta("s1"))])
        await store.aclose()
        await store.open()
    stored = await store.heads("s1")
    sequences = [sequence for sequence, _ in stored]
    expect_items(sequences, sorted(set(sequences)), "sequences of the hashes")
    for sequence, stored_hash in stored:
        expect(1 <= sequence <= 9, f"there is no fact {sequence}")
        if stored_hash is not None:
            expect_same(stored_hash, hashes[sequence - 1], f"hash of fact {sequence}")
    expect_items(await read_all(store), numbered(1, 9), "facts of s1")
