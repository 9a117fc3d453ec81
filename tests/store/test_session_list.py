"""What was said is found again: the same in every store."""

from __future__ import annotations

from arp.store.errors import InvalidWrite
from arp.store.session_list import MAX_WORDS, TurnText, excerpt, fold, missing_words, words_of
from arp.store.store import SessionWrite, Store
from tests.store.samples import facts, meta


async def keep(store: Store, session_id: str, number: int, **said: str) -> None:
    """Stores a session with what its turns said."""
    row = meta(session_id, f"2026-11-21T08:00:0{number}Z", title=f"Chat {number}")
    turns = [TurnText(turn_id, text) for turn_id, text in said.items()]
    await store.append([SessionWrite(session_id, 0, facts(1, 1, session_id), row, turns)])


async def found(store: Store, query: str, **more: object) -> list[tuple[str, str | None]]:
    page = await store.search(words_of(query), owner="ann", **more)  # type: ignore[arg-type]
    return [(match.meta.id, match.turn_id) for match in page.matches]


async def test_sessions_are_found_by_title_or_text(store: Store) -> None:
    await keep(store, "a", 1, t1="Sales of 2013", t2="Ärger mit ZÖLLEN")
    await keep(store, "b", 2, t1="weather")
    assert await found(store, "chat") == [("b", None), ("a", None)]
    assert await found(store, "zöllen sales") == [("a", "t2")]
    assert await found(store, "chat weath") == [("b", "t1")]
    assert await found(store, "snow") == []
    assert (await store.search(["chat"], owner="bob")).matches == []


async def test_a_search_goes_on_where_its_page_ended(store: Store) -> None:
    for number in range(1, 4):
        await keep(store, f"s{number}", number, t1="same")
    page = await store.search(["same"], owner="ann", limit=2)
    assert [match.meta.id for match in page.matches] == ["s3", "s2"]
    rest = await store.search(["same"], owner="ann", before=page.next, limit=2)
    assert [match.meta.id for match in rest.matches] == ["s1"]
    assert rest.next is None


async def test_a_turn_that_is_indexed_again_replaces_its_text(store: Store) -> None:
    await keep(store, "a", 1, t1="before")
    await store.append([SessionWrite("a", 1, [], texts=[TurnText("t1", "after")])])
    assert await found(store, "before") == []
    assert await found(store, "after") == [("a", "t1")]


async def test_indexed_text_is_removed_with_its_session(store: Store) -> None:
    await keep(store, "a", 1, t1="gone")
    await store.delete("a")
    await keep(store, "a", 1)
    assert await found(store, "gone") == []


async def test_pinned_sessions_can_be_asked_for_alone(store: Store) -> None:
    await keep(store, "a", 1)
    await store.append([SessionWrite("b", 0, [], meta("b", pinned=True, title="Chat"))])
    assert [row.id for row in await store.sessions(pinned=True)] == ["b"]
    assert [row.id for row in await store.sessions(pinned=False)] == ["a"]
    assert await found(store, "chat", pinned=True) == [("b", None)]
    assert len(await store.sessions()) == 2


async def test_half_a_character_is_refused(store: Store) -> None:
    refused = await store.append(
        [SessionWrite("a", 0, facts(1, 1, "a"), texts=[TurnText("t1", "\ud800")])]
    )
    assert isinstance(refused["a"], InvalidWrite)


def test_folding_keeps_every_character_in_its_place() -> None:
    assert fold("ÀB ß İ ẞ") == "àb ß İ ß"
    assert len(fold("İstanbul")) == len("İstanbul")


def test_words_are_few_and_short() -> None:
    assert words_of("  One TWO\tthree ") == ["one", "two", "three"]
    assert len(words_of("x " * 99)) == MAX_WORDS
    assert words_of("y" * 99) == ["y" * 64]


def test_what_a_title_lacks() -> None:
    assert missing_words("Sales in Oslo", ["oslo", "snow"]) == ["snow"]


def test_an_excerpt_is_one_line_around_the_word() -> None:
    text = "a" * 100 + "\nfind\tME " + "b" * 100
    assert excerpt(text, "me") == "…" + "a" * 54 + " find ME " + "b" * 59 + "…"
    assert excerpt("short", "short") == "short"
    assert excerpt("short", "other") == ""
