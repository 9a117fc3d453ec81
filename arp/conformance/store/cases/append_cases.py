"""Cases about `append`: the stored facts and their order, and writes that are invalid."""

from __future__ import annotations

import asyncio

from arp.conformance.cases import expect_items, expect_same
from arp.conformance.store.sample_facts import (
    fact,
    facts,
    found_ids,
    meta,
    numbered,
    put,
    read_all,
)
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_refused, expect_stored
from arp.store.errors import InvalidWrite, SequenceConflict
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite

CASES = StoreCases()

BATCH_SESSIONS = 300
"""Number of sessions in a large batch."""

TASKS = 100
"""Number of calls that wait at the same time."""

UNUSUAL_FACTS = (
    b'{"b":1,"a":2}',
    b'{ "spaces" :\t[1, 2] }',
    b'{"carriage":\r1}',
    b'{"twice":1,"twice":2}',
    b'{"number":12345678901234567890.10,"one":1.0,"small":1e-7}',
    '{"text":"é ☃ 🎈 \\u00e9 \\ud83c\\udf88 \\u0000 \\/ \\\\"}'.encode(),
    b"{}",
)
"""Valid facts that a store changes if it decodes and encodes them."""

UNUSUAL_IDS = (
    "s'1\"; DROP TABLE session --",
    "%",
    "_",
    "日本 🎈",
    "a~b",
    "a",
    "A",
    " a",
    "\u00e9",
    "e\u0301",
)
"""Printable ids; the last two look the same."""

UNPRINTABLE_IDS = ("", "a\nb", "a\0b", "\ud800")

NESTED_FACT = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

INVALID_FACTS = {
    "a key without a value": b'{"payload":{"text":}}',
    "an empty fact": b"",
    "an array": b"[]",
    "two objects": b'{"a":1}{}',
    "half an object": b'{"a":1',
    "bytes that are not UTF-8": b'{"a":"\xff"}',
    "too many levels": NESTED_FACT,
}


@CASES.add("`append` puts new facts before the stored ones")
async def order(run: StoreRun) -> None:
    """Facts are read in the order of their appends."""
    store = await run.open()
    await put(store, 1, 3)
    await put(store, 4, 4)
    expect_items(await store.read("s1"), numbered(1, 4), "facts of s1")


@CASES.add("`append` stores the facts of a batch in its first session")
async def several_sessions(run: StoreRun) -> None:
    """A call can write to several sessions, and each has its own facts only."""
    store = await run.open()
    batch = [SessionWrite("a", 0, facts(1, 2, "a")), SessionWrite("b", 0, facts(1, 1, "b"))]
    expect_stored(await store.append(batch))
    await put(store, 2, 2, "b")
    expect_items(await store.read("a"), numbered(1, 2, "a"), "facts of a")
    expect_items(await store.read("b"), numbered(1, 2, "b"), "facts of b")


@CASES.add("the sequence of each write is compared with that before the call")
async def several_writes(run: StoreRun) -> None:
    """A call can write to a session several times; each write follows the one before."""
    store = await run.open()
    writes = [SessionWrite("s1", 0, facts(1, 2)), SessionWrite("s1", 2, facts(3, 3))]
    expect_stored(await store.append(writes))
    expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")


@CASES.add("the first of two writes with the same sequence is stored")
async def conflicting_writes(run: StoreRun) -> None:
    """If one of several writes to a session is refused, none of them is stored."""
    store = await run.open()
    await put(store, 1, 3)
    twice = [SessionWrite("s1", 3, facts(4, 4)), SessionWrite("s1", 3, facts(4, 4))]
    expect_refused(await store.append(twice), SequenceConflict, "s1")
    expect_items(await store.read("s1"), numbered(1, 3), "facts after two equal writes")
    overtaking = [SessionWrite("s1", 4, facts(5, 5)), SessionWrite("s1", 3, facts(4, 4))]
    expect_refused(await store.append(overtaking), SequenceConflict, "s1")
    expect_items(await store.read("s1"), numbered(1, 3), "facts after writes in the wrong order")


@CASES.add("calls that wait are stored in another order")
async def order_of_calls(run: StoreRun) -> None:
    """A caller need not wait for one append before the next: calls are stored in their order."""
    store = await run.open()
    await asyncio.gather(*(put(store, each, each) for each in range(1, TASKS + 1)))
    expect_items(await store.read("s1"), numbered(1, TASKS), "facts of s1")


@CASES.add("a write without facts stores an empty fact")
async def empty_writes(run: StoreRun) -> None:
    """A call without writes and a write without facts change nothing."""
    store = await run.open()
    expect_stored(await store.append([]))
    expect_stored(await store.append([SessionWrite("s1", 0, [])]))
    expect_items(await store.read("s1"), [], "facts of s1")
    await put(store, 1, 1)


@CASES.add("a write that something waits for overtakes the writes before it")
async def awaited_writes(run: StoreRun) -> None:
    """Facts that something waits for are stored like others, after those of earlier calls."""
    store = await run.open()
    calls = [
        store.append(
            [SessionWrite("s1", number - 1, facts(number, number))], is_awaited=number % 2 == 0
        )
        for number in range(1, 21)
    ]
    for refused in await asyncio.gather(*calls):
        expect_stored(refused)
    expect_items(await store.read("s1"), numbered(1, 20), "facts of s1")


@CASES.add("only the first 100 writes of a batch are stored")
async def large_batch(run: StoreRun) -> None:
    """A batch can have many sessions, and a session many facts."""
    store = await run.open()
    names = [f"s{number}" for number in range(BATCH_SESSIONS)]
    expect_stored(await store.append([SessionWrite(n, 0, facts(1, 5, n)) for n in names]))
    await put(store, 6, 3000, names[-1])
    for name in names[:-1]:
        expect_items(await store.read(name), numbered(1, 5, name), f"facts of {name}")
    everything = await read_all(store, names[-1])
    expect_items(everything, numbered(1, 3000, names[-1]), f"facts of {names[-1]}")


@CASES.add("the store keeps the list of its caller")
async def list_not_kept(run: StoreRun) -> None:
    """The list of facts belongs to the caller: it is neither kept nor changed."""
    store = await run.open()
    mine = facts(1, 1)
    await store.append([SessionWrite("s1", 0, mine)])
    mine.append(fact(2))
    await put(store, 2, 3)
    expect_items(mine, facts(1, 2), "list of the caller")
    expect_items(await store.read("s1"), numbered(1, 3), "facts of s1")


@CASES.add("line breaks are stored")
async def line_breaks(run: StoreRun) -> None:
    """A line break between the tokens of a fact becomes a space."""
    store = await run.open()
    with_breaks = [b'{\n"a":\r\n1}', b"{}", b"{\n}"]
    batch = [SessionWrite("s1", 0, with_breaks), SessionWrite("b", 0, [b"{}"])]
    expect_stored(await store.append(batch))
    wanted = [(1, b'{ "a":\r 1}'), (2, b"{}"), (3, b"{ }")]
    expect_items(await store.read("s1"), wanted, "facts of s1")
    expect_items(await store.read("b"), [(1, b"{}")], "facts of b")


@CASES.add("facts are decoded and encoded again")
async def same_bytes(run: StoreRun) -> None:
    """Nothing else in a fact is changed: it is read as the same bytes."""
    store = await run.open()
    expect_stored(await store.append([SessionWrite("s1", 0, list(UNUSUAL_FACTS))]))
    expect_items(await store.read("s1"), list(enumerate(UNUSUAL_FACTS, 1)), "facts of s1")


@CASES.add("ids are compared without case")
async def any_printable_id(run: StoreRun) -> None:
    """A session id can have any printable characters, and none has a meaning."""
    store = await run.open()
    rows = {name: meta(name, owner=name, workflow=name) for name in UNUSUAL_IDS}
    batch = [SessionWrite(name, 0, [b"{}"] * n, rows[name]) for n, name in enumerate(rows, 1)]
    expect_stored(await store.append(batch))
    for number, name in enumerate(rows, 1):
        expect_same(len(await store.read(name)), number, f"number of facts of {name!r}")
        owned = [row.id for row in await store.sessions(owner=name)]
        expect_same(owned, [name], f"sessions of the owner {name!r}")
        same = [row.id for row in await store.sessions(workflow=name)]
        expect_same(same, [name], f"sessions of the workflow {name!r}")
    expect_same(await store.delete("%"), True, "result of delete")
    expect_same(len(await store.sessions()), len(rows) - 1, "number of rows after a deletion")


@CASES.add("the id of a session is not checked")
async def unprintable_id(run: StoreRun) -> None:
    """An empty id, or an id with an unprintable character, is refused as `InvalidWrite`."""
    store = await run.open()
    for number, name in enumerate(UNPRINTABLE_IDS):
        batch = [
            SessionWrite("s1", number, facts(number + 1, number + 1)),
            SessionWrite(name, 0, facts(1, 1)),
        ]
        refused = await store.append(batch)
        expect_refused(refused, InvalidWrite, name, names="is empty or not printable")
    expect_items(await store.read("s1"), numbered(1, len(UNPRINTABLE_IDS)), "facts of s1")


@CASES.add("facts are stored without a check")
async def invalid_fact(run: StoreRun) -> None:
    """A fact that is not a JSON object is refused as `InvalidWrite`, with its sequence."""
    store = await run.open()
    for what, bad in INVALID_FACTS.items():
        refused = await store.append([SessionWrite("s1", 0, [*facts(1, 2), bad])])
        expect_refused(refused, InvalidWrite, "s1", names="fact 3 of session s1")
        expect_items(await store.read("s1"), [], f"facts after a write with {what}")


@CASES.add("the row of a write is not checked")
async def invalid_row(run: StoreRun) -> None:
    """A row of another session, or with a NUL in a field for lists, is refused."""
    store = await run.open()
    refused = await store.append([SessionWrite("a", 0, [], meta("b"))])
    expect_refused(refused, InvalidWrite, "a", names="meta of session 'b'")
    for field in ("owner", "workflow", "updated_at"):
        refused = await store.append([SessionWrite("a", 0, [], meta("a", **{field: "a\0b"}))])
        expect_refused(refused, InvalidWrite, "a", names="NUL in owner, workflow or updated_at")
    expect_same(await store.sessions(), [], "rows")


@CASES.add("the texts of a write are not checked")
async def invalid_text(run: StoreRun) -> None:
    """A title or a text with half a character is refused before anything is stored."""
    store = await run.open()
    for row, texts in ((meta("s1", title="\ud800"), []), (None, [TurnText("t1", "\ud800")])):
        refused = await store.append([SessionWrite("s1", 0, facts(1, 1), row, texts)])
        expect_refused(refused, InvalidWrite, "s1", names="surrogates")
    expect_items(await store.read("s1"), [], "facts of s1")


@CASES.add("an invalid write refuses the whole batch")
async def invalid_alone(run: StoreRun) -> None:
    """An invalid write refuses its own session, and the others of the batch are stored."""
    store = await run.open()
    texts = [TurnText("t1", "violet")]
    batch = [
        SessionWrite("b", 0, facts(1, 1), meta("b"), texts),
        SessionWrite("s1", 0, [b"[]"]),
        SessionWrite("c", 0, facts(1, 1)),
    ]
    expect_refused(await store.append(batch), InvalidWrite, "s1")
    for name in ("b", "c"):
        expect_items(await store.read(name), numbered(1, 1), f"facts of {name}")
    expect_same(await found_ids(store, "violet"), ["b"], "sessions that a search finds")


@CASES.add("a cancelled call ends the writing")
async def cancelled_caller(run: StoreRun) -> None:
    """A caller that is cancelled does not disturb the others."""
    store = await run.open()
    others = [asyncio.create_task(put(store, 1, 1, f"other{number}")) for number in range(20)]
    task = asyncio.create_task(put(store, 1, 1, "cancelled"))
    await asyncio.sleep(0)
    task.cancel()
    outcomes = await asyncio.gather(task, *others, return_exceptions=True)
    failed = [repr(error) for error in outcomes[1:] if isinstance(error, Exception)]
    expect_same(failed, [], "errors of the other calls")
    await put(store, 1, 1)
    expect_items(await store.read("s1"), numbered(1, 1), "facts of s1")
