"""Cases about the search in the titles of sessions and in the texts of their turns."""

from __future__ import annotations

from arp.conformance.cases import expect, expect_items, expect_same
from arp.conformance.store.sample_facts import found_ids, meta, search_all
from arp.conformance.store.store_case import StoreCases, StoreRun, expect_row, expect_stored
from arp.store.session_list import TurnText, words_of
from arp.store.store import SessionWrite, Store

CASES = StoreCases()

SESSIONS = 12
"""Number of sessions of a search with several pages."""


async def store_texts(store: Store, session_id: str, number: int, **texts: str) -> None:
    """Store a session with the texts of its turns; a higher number is a newer update."""
    row = meta(session_id, f"2026-11-21T08:00:{number:02}Z", title=f"Chat {number}")
    turns = [TurnText(turn_id, text) for turn_id, text in texts.items()]
    expect_stored(await store.append([SessionWrite(session_id, 0, [], row, turns)]))


@CASES.add("titles are not searched")
async def title_or_text(run: StoreRun) -> None:
    """A session is found by its title or by the text of a turn, newest update first."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="Sales of 2013")
    await store_texts(store, "b", 2, t1="weather")
    expect_items(await found_ids(store, "chat"), ["b", "a"], "sessions with chat")
    expect_items(await found_ids(store, "sales"), ["a"], "sessions with sales")
    expect_items(await found_ids(store, "snow"), [], "sessions with snow")


@CASES.add("one of the words is enough")
async def every_word(run: StoreRun) -> None:
    """Every word must be in the title or in the text of some turn."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="violet", t2="green")
    await store_texts(store, "b", 2, t1="violet")
    expect_items(await found_ids(store, "violet", "green"), ["a"], "sessions with both words")
    expect_items(await found_ids(store, "green", "chat", "violet"), ["a"], "with a title word")
    expect_items(await found_ids(store, "violet", "snow"), [], "sessions with an absent word")


@CASES.add("only ASCII letters are compared without case")
async def any_case(run: StoreRun) -> None:
    """Words are compared without case, and a part of a word is found."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="Ärger mit ZÖLLEN in OSLO", t2="東京の天気")
    for query in ("ärger", "ÄRGER", "zöll", "oslo", "öll", "京の"):
        expect_items(await found_ids(store, *words_of(query)), ["a"], f"sessions with {query}")


@CASES.add("`_` matches any character")
async def literal_words(run: StoreRun) -> None:
    """No character of a word has a meaning of its own."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="50% of a_b, c\\d, 'quoted' and [x]*")
    await store_texts(store, "b", 2, t1="50 of axb, cd, quoted and xx")
    for word in ("50%", "a_b", "c\\d", "'quoted'", "[x]*"):
        expect_items(await found_ids(store, word), ["a"], f"sessions with {word}")


@CASES.add("a match names the oldest turn that has the word")
async def match_of_a_turn(run: StoreRun) -> None:
    """A match has its row, and the newest turn with the first word that is not in the title."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="the violet one", t2="the violet two", t3="green")
    (match,) = await search_all(store, "chat", "violet", "green")
    expect_same((match.meta.id, match.turn_id), ("a", "t2"), "session and turn of the match")
    expect("the violet two" in match.excerpt, f"the excerpt should be text: {match.excerpt!r}")
    (match,) = await search_all(store, "chat")
    expect_same((match.turn_id, match.excerpt), (None, ""), "turn and excerpt of a title")
    expect_row(match.meta, await store.session("a"), "row of the match")


@CASES.add("sessions of other owners are found")
async def search_filters(run: StoreRun) -> None:
    """A search finds sessions of its owner only; workflow and `pinned` select among them."""
    store = await run.open()
    rows = [
        meta("a", "2026-11-21T08:00:01Z", workflow="chat", pinned=True),
        meta("b", "2026-11-21T08:00:02Z"),
        meta("c", "2026-11-21T08:00:03Z", owner="bob"),
    ]
    expect_stored(await store.append([SessionWrite(row.id, 0, [], row) for row in rows]))
    expect_items(await found_ids(store, "sales"), ["b", "a"], "sessions of ann")
    expect_items(await found_ids(store, "sales", owner="bob"), ["c"], "sessions of bob")
    expect_items(await found_ids(store, "sales", owner=""), [], "sessions of no owner")
    page = await store.search(["sales"], owner="ann", workflow="chat")
    expect_items([match.meta.id for match in page.matches], ["a"], "sessions of the workflow")
    page = await store.search(["sales"], owner="ann", pinned=False)
    expect_items([match.meta.id for match in page.matches], ["b"], "sessions that are not pinned")


@CASES.add("`next` is `None` after a full page")
async def search_pages(run: StoreRun) -> None:
    """A search continues at `next`, and its pages have each match once."""
    store = await run.open()
    for number in range(1, SESSIONS + 1):
        await store_texts(store, f"s{number}", number, t1="same" if number % 3 else "other")
    wanted = [f"s{number}" for number in range(SESSIONS, 0, -1) if number % 3]
    seen: list[str] = []
    before: str | None = None
    for _ in range(10 * SESSIONS):
        page = await store.search(["same"], owner="ann", before=before, limit=3)
        expect(len(page.matches) <= 3, f"a page has {len(page.matches)} matches, limit 3")
        seen += [match.meta.id for match in page.matches]
        before = page.next
        if before is None:
            break
    expect_items(seen, wanted, "matches of all pages")


@CASES.add("the earlier text of a turn stays")
async def text_replaced(run: StoreRun) -> None:
    """A newer text of a turn replaces the older one, and those of other turns stay."""
    store = await run.open()
    await store_texts(store, "a", 1, t1="before", t2="other")
    await store.append([SessionWrite("a", 0, [], texts=[TurnText("t1", "after")])])
    expect_items(await found_ids(store, "before"), [], "sessions with the older text")
    expect_items(await found_ids(store, "after"), ["a"], "sessions with the newer text")
    expect_items(await found_ids(store, "other"), ["a"], "sessions with the text of another turn")
