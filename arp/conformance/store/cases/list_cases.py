"""Cases about the list of sessions: its rows, its order, its pages and its filters."""

from __future__ import annotations

from arp.conformance.cases import expect_items, expect_same
from arp.conformance.store.sample_facts import facts, meta, put, put_row
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_row, expect_stored
from arp.store.session_list import MAX_PAGE, SessionMeta
from arp.store.store import SessionWrite, Store

CASES = StoreCases()

ROWS = (
    meta("a", "2026-11-21T08:00:01Z", owner="ann", workflow="chat"),
    meta("b", "2026-11-21T08:00:03Z", owner="bob", workflow="explore"),
    meta("c", "2026-11-21T08:00:02Z", owner="ann", workflow="explore", pinned=True),
    meta("d", "2026-11-21T08:00:02Z", owner="ann", workflow="chat"),
)
"""Four rows; newest first, they are b, d, c, a."""

CODE_POINT_ORDER = ("%", "A", "B", "a", "a!", "a0", "b", "é", "日", "🎈")
"""Ids in the order of their characters; most languages sort them in other orders."""


async def filled(run: StoreRun) -> Store:
    """Return an open store with `ROWS`."""
    store = await run.open()
    expect_stored(await store.append([SessionWrite(row.id, 0, [], row) for row in ROWS]))
    return store


def ids(rows: list[SessionMeta]) -> list[str]:
    """Return the ids of rows."""
    return [row.id for row in rows]


@CASES.add("one field of the row is not stored")
async def row_as_written(run: StoreRun) -> None:
    """A row is returned as it was written, whatever its texts are."""
    store = await run.open()
    row = SessionMeta(
        id="s1",
        epoch="e9",
        owner="ann",
        workflow="explore",
        title='NUL \0, quote ", backslash \\, snow ☃, 🎈, line\nbreak',
        created_at="2026-11-21T07:00:00Z",
        updated_at="2026-11-21T08:00:00Z",
        turn_count=3,
        last_sequence=2,
        active=True,
        pinned=True,
        is_named=True,
        failed=True,
    )
    expect_stored(await store.append([SessionWrite("s1", 0, facts(1, 2), row)]))
    expect_row(await store.session("s1"), row, "row of s1")
    expect_items(await store.sessions(), [row], "rows")


@CASES.add("`last_sequence` is that of the caller")
async def last_sequence(run: StoreRun) -> None:
    """`last_sequence` of a row comes from the facts, not from the caller."""
    store = await run.open()
    await put_row(store, meta("s1", last_sequence=77))
    expect_same([row.last_sequence for row in await store.sessions()], [0], "last_sequence")
    await put(store, 1, 5)
    expect_same([row.last_sequence for row in await store.sessions()], [5], "last_sequence")
    row = await store.session("s1")
    expect_same(row and row.last_sequence, 5, "last_sequence of session()")


@CASES.add("a write without a row deletes the row")
async def row_unchanged(run: StoreRun) -> None:
    """A write without a row leaves the stored row unchanged."""
    store = await run.open()
    await put_row(store, meta("s1", title="first"))
    await put(store, 1, 1)
    row = await store.session("s1")
    expect_same(row and row.title, "first", "title of s1")


@CASES.add("the first row of a call is stored")
async def last_row(run: StoreRun) -> None:
    """If a call has several rows of a session, the last one is stored."""
    store = await run.open()
    rows = [meta("s1", title=title) for title in ("one", "two", "three")]
    expect_stored(await store.append([SessionWrite("s1", 0, [], row) for row in rows]))
    expect_same([row.title for row in await store.sessions()], ["three"], "titles")


@CASES.add("a session without a row gets an empty one")
async def no_row(run: StoreRun) -> None:
    """A session without a row is not listed."""
    store = await run.open()
    await put(store, 1, 1)
    expect_same(await store.sessions(), [], "rows")
    expect_same(await store.session("s1"), None, "row of s1")
    expect_same(await store.open_sessions(), [], "open sessions")


@CASES.add("rows are returned oldest first")
async def newest_first(run: StoreRun) -> None:
    """Rows are returned newest update first; equal times in reverse order of id."""
    store = await filled(run)
    expect_items(ids(await store.sessions()), ["b", "d", "c", "a"], "ids")


@CASES.add("ids are sorted without case")
async def order_of_ids(run: StoreRun) -> None:
    """Ids are ordered by their characters, as Python compares them, in lists and in cursors."""
    store = await run.open()
    rows = [meta(name, active=True) for name in reversed(CODE_POINT_ORDER)]
    expect_stored(await store.append([SessionWrite(row.id, 0, [], row) for row in rows]))
    expect_items(await store.open_sessions(), CODE_POINT_ORDER, "open sessions")
    newest_first_ids = list(reversed(CODE_POINT_ORDER))
    expect_items(ids(await store.sessions()), newest_first_ids, "ids")
    for position, row in enumerate(await store.sessions(), 1):
        rest = ids(await store.sessions(before=row.cursor))
        expect_items(rest, newest_first_ids[position:], f"ids after {row.id!r}")


@CASES.add("an empty owner means any owner")
async def filters(run: StoreRun) -> None:
    """Owner and workflow select rows; an empty text is a value like any other."""
    store = await filled(run)
    expect_items(ids(await store.sessions(owner="ann")), ["d", "c", "a"], "rows of ann")
    expect_items(ids(await store.sessions(workflow="chat")), ["d", "a"], "rows of chat")
    both = await store.sessions(owner="ann", workflow="explore")
    expect_items(ids(both), ["c"], "rows of ann and explore")
    expect_items(await store.sessions(owner=""), [], "rows of an empty owner")
    expect_items(await store.sessions(workflow=""), [], "rows of an empty workflow")


@CASES.add("`pinned=False` selects all rows")
async def pinned(run: StoreRun) -> None:
    """`pinned` selects the pinned rows, the others, or all."""
    store = await filled(run)
    expect_items(ids(await store.sessions(pinned=True)), ["c"], "pinned rows")
    expect_items(ids(await store.sessions(pinned=False)), ["b", "d", "a"], "other rows")
    expect_items(ids(await store.sessions(owner="bob", pinned=True)), [], "pinned rows of bob")


@CASES.add("a page begins with the row of its cursor")
async def cursors(run: StoreRun) -> None:
    """Pages of rows have each row once, with and without filters."""
    store = await filled(run)
    for owner, wanted in ((None, ["b", "d", "c", "a"]), ("ann", ["d", "c", "a"])):
        seen: list[str] = []
        before: str | None = None
        while page := await store.sessions(owner=owner, before=before, limit=1):
            seen += ids(page)
            before = page[-1].cursor
            if len(seen) > len(ROWS):
                break
        expect_items(seen, wanted, f"ids of all pages for the owner {owner}")


@CASES.add("a cursor without an id raises an error")
async def odd_cursors(run: StoreRun) -> None:
    """A cursor can be a time alone, or any text."""
    store = await filled(run)
    wanted = {
        "2026-11-21T08:00:02Z": ["a"],
        "2026-11-21T08:00:02Z~d": ["c", "a"],
        "": [],
        "~": [],
        "~' OR 1=1": [],
        "zzz~~~": ["b", "d", "c", "a"],
        "日~🎈": ["b", "d", "c", "a"],
    }
    for before, rest in wanted.items():
        expect_items(ids(await store.sessions(before=before)), rest, f"ids before {before!r}")


@CASES.add("a limit of 0 returns no rows")
async def list_limits(run: StoreRun) -> None:
    """A limit is clamped to 1 … `MAX_PAGE`."""
    store = await run.open()
    rows = [meta(f"s{number:04}") for number in range(MAX_PAGE + 1)]
    expect_stored(await store.append([SessionWrite(row.id, 0, [], row) for row in rows]))
    for limit, size in ((-3, 1), (0, 1), (2, 2), (MAX_PAGE, MAX_PAGE), (10**9, MAX_PAGE)):
        page = await store.sessions(limit=limit)
        expect_same(len(page), size, f"number of rows with limit {limit}")


@CASES.add("a row stays in the list of its earlier owner")
async def row_moves(run: StoreRun) -> None:
    """A newer row of a session moves it to the top, and to the list of its new owner."""
    store = await filled(run)
    await put_row(store, meta("a", "2026-11-21T09:00:00Z", owner="bob"))
    expect_items(ids(await store.sessions()), ["a", "b", "d", "c"], "ids")
    expect_items(ids(await store.sessions(owner="ann")), ["d", "c"], "rows of ann")
    expect_items(ids(await store.sessions(owner="bob")), ["a", "b"], "rows of bob")


@CASES.add("a session stays open when its row is no longer active")
async def open_sessions(run: StoreRun) -> None:
    """`open_sessions` returns the sessions with an active row, in order of id."""
    store = await run.open()
    rows = [meta("z", active=True), meta("a", active=True), meta("m")]
    expect_stored(await store.append([SessionWrite(row.id, 0, [], row) for row in rows]))
    expect_items(await store.open_sessions(), ["a", "z"], "open sessions")
    await put_row(store, meta("a"))
    expect_items(await store.open_sessions(), ["z"], "open sessions")
