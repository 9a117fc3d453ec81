"""What every store promises; each test runs on each of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from arp.store.errors import FactUnreadable, InvalidWrite, SequenceConflict, StoreClosed
from arp.store.session_list import SessionMeta, TurnText, page_limit, split_cursor
from arp.store.sqlite import SqliteStore
from arp.store.store import PAGE_BYTES, Refusals, SessionWrite, Store, check_append, pages
from arp.store.store import facts as facts_of
from tests.store.samples import MALFORMED, fact, facts, meta, numbered, put, slip_in


async def test_facts_are_read_in_the_order_in_which_they_were_appended(store: Store) -> None:
    await put(store, 1, 3)
    await put(store, 4, 4)
    assert await store.read("s1") == numbered(1, 4)


async def test_reading_begins_behind_a_sequence_and_ends_at_the_limit(store: Store) -> None:
    await put(store, 1, 10)
    assert await store.read("s1", after=3, limit=4) == numbered(4, 7)
    assert await store.read("s1", after=9) == numbered(10, 10)
    assert await store.read("s1", after=10) == []
    assert await store.read("s1", after=11) == []
    assert await store.read("s1", after=2**60) == []
    assert await store.read("s1", after=-5, limit=2) == numbered(1, 2)
    assert await store.read("s1", limit=0) == numbered(1, 1)


async def test_a_page_has_a_bound_in_bytes_and_at_least_one_fact(store: Store) -> None:
    big = [b'{"text":"%s"}' % (b"x" * (PAGE_BYTES * 2 // 5)) for _ in range(5)]
    await store.append([SessionWrite("s1", 0, big)])
    huge = b'{"text":"%s"}' % (b"x" * PAGE_BYTES)
    await store.append([SessionWrite("s1", 5, [huge, fact(7)])])
    assert [len(await store.read("s1", after)) for after in range(7)] == [2, 2, 2, 2, 1, 1, 1]
    assert [fact async for _, fact in facts_of(store, "s1")] == [*big, huge, fact(7)]
    assert [len(page) async for page in pages(store, "s1")] == [2, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("after", "through"), [(0, None), (3, None), (0, 4), (2, 7), (5, 5), (9, 4)]
)
async def test_all_facts_of_a_range_are_yielded_once(
    store: Store, after: int, through: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.store.store.PAGE_FACTS", 2)
    await put(store, 1, 9)
    expected = numbered(after + 1, 9 if through is None else through)
    assert [entry async for entry in facts_of(store, "s1", after, through)] == expected
    found = [page async for page in pages(store, "s1", after, through)]
    assert [entry for page in found for entry in page] == expected
    assert all(len(page) <= 2 for page in found)


async def test_facts_that_are_appended_while_they_are_read_are_yielded_too(store: Store) -> None:
    await put(store, 1, 2)
    seen = []
    async for sequence, _ in facts_of(store, "s1"):
        seen.append(sequence)
        if sequence == 1:
            await put(store, 3, 4)
    assert seen == [1, 2, 3, 4]


async def test_facts_before_one_that_nobody_can_read_are_yielded(store: Store) -> None:
    await put(store, 1, 2)
    await slip_in(store, "s1", 2, MALFORMED)
    found = facts_of(store, "s1")
    assert [await anext(found), await anext(found)] == numbered(1, 2)
    with pytest.raises(FactUnreadable):
        await anext(found)


async def test_a_session_that_nobody_wrote_to_has_no_facts(store: Store) -> None:
    assert await store.read("nobody") == []
    assert await store.session("nobody") is None


async def test_sessions_do_not_see_each_others_facts(store: Store) -> None:
    """architecture.md, what must always hold 10."""
    await store.append(
        [SessionWrite("a", 0, facts(1, 2, "a")), SessionWrite("b", 0, facts(1, 1, "b"))]
    )
    await put(store, 2, 2, "b")
    assert await store.read("a") == numbered(1, 2, "a")
    assert await store.read("b") == numbered(1, 2, "b")


def new_and_conflicting() -> list[SessionWrite]:
    """A new session, and a write to `s1` that expects a wrong sequence if `s1` has two facts."""
    row, stale = meta("new", title="seen"), meta("s1", title="never seen")
    return [
        SessionWrite("new", 0, [fact(1, "new")], row, [TurnText("t1", "new words")]),
        SessionWrite("s1", 1, [fact(2)], stale, [TurnText("t1", "stale words")]),
    ]


async def found(store: Store, word: str) -> list[str]:
    """Return the ids of the sessions that a search finds."""
    return [match.meta.id for match in (await store.search([word], owner="ann")).matches]


async def test_a_wrong_expected_sequence_stores_nothing_of_the_session(store: Store) -> None:
    """ledger.md 5: optimistic concurrency on `expected_sequence`."""
    await put(store, 1, 2)
    refused = await store.append(new_and_conflicting())
    assert list(refused) == ["s1"]
    error = refused["s1"]
    assert isinstance(error, SequenceConflict)
    assert str(error) == (
        "session s1 is at sequence 2, not at 1; read the newer facts and append after them"
    )
    assert (error.expected, error.actual) == (1, 2)
    assert await store.read("s1") == numbered(1, 2)
    assert await store.session("s1") is None
    assert await store.read("new") == numbered(1, 1, "new")
    assert [await found(store, word) for word in ("new", "stale")] == [["new"], []]
    await put(store, 2, 2, "new")
    await put(store, 3, 3)
    assert await store.read("s1") == numbered(1, 3)


@pytest.mark.parametrize(
    "together", [[{"new", "s1"}], [{"other", "s1"}, {"other", "new"}], [{"s1", "new", "other"}]]
)
async def test_sessions_that_belong_together_are_stored_together_or_not_at_all(
    store: Store, together: list[set[str]]
) -> None:
    """A surface that moves from one session to another is in exactly one of them."""
    await put(store, 1, 2)
    other, free = SessionWrite("other", 0, facts(1, 1)), SessionWrite("free", 0, facts(1, 1))
    batch = [*new_and_conflicting(), other, free]
    refused = await store.append(batch, [frozenset(unit) for unit in together])
    is_in_unit = any("other" in unit for unit in together)
    assert set(refused) == {"new", "s1"} | ({"other"} if is_in_unit else set())
    assert {str(error) for error in refused.values()} == {
        "session s1 is at sequence 2, not at 1; read the newer facts and append after them"
    }
    assert await store.read("new") == []
    assert await store.session("new") is None
    assert await found(store, "new") == []
    assert await store.read("free") == numbered(1, 1)
    assert await store.read("other") == ([] if is_in_unit else numbered(1, 1))
    unit = [SessionWrite("new", 0, facts(1, 2)), SessionWrite("s1", 2, facts(3, 3))]
    assert await store.append(unit, [frozenset({"new", "s1"})]) == {}
    assert await store.read("new") == numbered(1, 2)
    assert await store.read("s1") == numbered(1, 3)


async def test_a_call_may_append_to_a_session_twice(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, facts(1, 2)), SessionWrite("s1", 2, facts(3, 3))])
    twice = [SessionWrite("s1", 3, facts(4, 4)), SessionWrite("s1", 3, facts(4, 4))]
    assert list(await store.append(twice)) == ["s1"]
    assert await store.read("s1") == numbered(1, 3)
    overtaking = [SessionWrite("s1", 4, facts(5, 5)), SessionWrite("s1", 3, facts(4, 4))]
    assert list(await store.append(overtaking)) == ["s1"]
    assert await store.read("s1") == numbered(1, 3)
    await put(store, 4, 4)


async def test_of_two_writers_that_race_one_is_refused(store: Store) -> None:
    outcomes = await asyncio.gather(
        put(store, 1, 1), put(store, 1, 2), put(store, 1, 1, "b"), return_exceptions=True
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], SequenceConflict)
    assert outcomes[2] is None
    assert await store.read("s1") == numbered(1, 1)


async def test_a_caller_need_not_wait_for_one_append_before_the_next(store: Store) -> None:
    await asyncio.gather(*(put(store, each, each) for each in range(1, 101)))
    assert await store.read("s1") == numbered(1, 100)


async def test_an_empty_call_and_an_empty_append_are_harmless(store: Store) -> None:
    await store.append([])
    await store.append([SessionWrite("s1", 0, [])])
    assert await store.read("s1") == []
    await put(store, 1, 1)


async def test_a_line_break_between_tokens_becomes_a_space(store: Store) -> None:
    await store.append(
        [SessionWrite("s1", 0, [b'{\n"a":\r\n1}', b"{}", b"{\n}"]), SessionWrite("b", 0, [b"{}"])]
    )
    assert await store.read("s1") == [(1, b'{ "a":\r 1}'), (2, b"{}"), (3, b"{ }")]
    assert await store.read("b") == [(1, b"{}")]


async def test_the_callers_list_is_not_kept(store: Store) -> None:
    mine = facts(1, 1)
    await store.append([SessionWrite("s1", 0, mine)])
    mine.append(fact(2))
    await put(store, 2, 3)
    assert mine == facts(1, 2)
    assert await store.read("s1") == numbered(1, 3)


@pytest.mark.parametrize("session_id", ["s'1\"; DROP TABLE session --", "%", "_", "日本 🎈", "a~b"])
async def test_any_printable_id_is_only_an_id(store: Store, session_id: str) -> None:
    """threats.md T80: bound parameters, no meaning in names."""
    row = meta(session_id, owner=session_id, workflow=session_id, title=session_id)
    await store.append(
        [SessionWrite(session_id, 0, facts(1, 1), row), SessionWrite("other", 0, facts(1, 1))]
    )
    assert await store.read(session_id) == numbered(1, 1)
    assert [each.id for each in await store.sessions(owner=session_id)] == [session_id]
    assert [each.id for each in await store.sessions(workflow=session_id)] == [session_id]
    assert await store.delete(session_id) is True
    assert await store.read("other") == numbered(1, 1)


@pytest.mark.parametrize("session_id", ["", "a\nb", "a\0b", "\ud800"])
async def test_an_id_that_cannot_be_printed_is_refused(store: Store, session_id: str) -> None:
    refused = await store.append(
        [SessionWrite("s1", 0, facts(1, 1)), SessionWrite(session_id, 0, facts(1, 1))]
    )
    assert_invalid(refused, session_id, "is empty or not printable")
    assert await store.read("s1") == numbered(1, 1)


def assert_invalid(refused: Refusals, session_id: str, reason: str) -> None:
    assert list(refused) == [session_id]
    error = refused[session_id]
    assert isinstance(error, InvalidWrite)
    assert reason in str(error)


NESTED = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "bad",
    [b'{"payload":{"text":}}', b"", b"[]", b'{"a":1}{}', b'{"a":1', b'{"a":"\xff"}', NESTED],
    ids=["no value", "empty", "array", "two", "cut", "not UTF-8", "nested too deeply"],
)
async def test_a_session_with_a_fact_that_could_not_be_read_again_is_refused(
    store: Store, bad: bytes
) -> None:
    """The session could not be read again. The other sessions of the batch are stored."""
    refused = await store.append(
        [SessionWrite("b", 0, facts(1, 1)), SessionWrite("s1", 0, [*facts(1, 2), bad])]
    )
    assert_invalid(refused, "s1", "fact 3 of session s1: ")
    assert await store.read("s1") == []
    assert await store.read("b") == numbered(1, 1)
    one_unit = [SessionWrite("b", 1, facts(2, 2)), SessionWrite("s1", 0, [bad])]
    assert set(await store.append(one_unit, [frozenset({"b", "s1"})])) == {"b", "s1"}
    assert await store.read("b") == numbered(1, 1)


async def test_a_fact_of_an_older_ledger_that_is_no_json_is_named(store: Store) -> None:
    """Those before it are given, and those of other sessions."""
    await put(store, 1, 2)
    await put(store, 1, 1, "b")
    await slip_in(store, "s1", 2, MALFORMED, fact(4))
    assert await store.read("s1") == numbered(1, 2)
    assert await store.read("s1", 3) == numbered(4, 4)
    with pytest.raises(FactUnreadable, match="session s1: fact 3 cannot be read") as error:
        await store.read("s1", 2)
    assert (error.value.after, error.value.sequence) == (2, 3)
    assert await store.read("b") == numbered(1, 1, "b")


async def test_a_meta_of_another_session_is_refused(store: Store) -> None:
    refused = await store.append([SessionWrite("a", 0, [], meta("b"))])
    assert_invalid(refused, "a", "meta of session 'b' in an append to a")
    assert await store.sessions() == []


@pytest.mark.parametrize("name", ["owner", "workflow", "updated_at"])
async def test_nul_in_what_the_list_is_sorted_by_is_refused(store: Store, name: str) -> None:
    refused = await store.append([SessionWrite("s1", 0, [], meta("s1", **{name: "a\0b"}))])
    assert_invalid(refused, "s1", "NUL in owner, workflow or updated_at")


async def test_a_text_that_no_encoding_has_is_refused_before_anything_is_stored(
    store: Store,
) -> None:
    for row, texts in ((meta("s1", title="\ud800"), []), (None, [TurnText("t1", "\ud800")])):
        refused = await store.append([SessionWrite("s1", 0, facts(1, 1), row, texts)])
        assert_invalid(refused, "s1", "surrogates")
    assert await store.read("s1") == []


async def test_a_session_is_listed_as_it_was_written(store: Store) -> None:
    row = SessionMeta(
        id="s1",
        epoch="e9",
        owner="ann",
        workflow="explore",
        title='Nul \0, quote ", snow ☃, line\nbreak',
        created_at="2026-11-21T07:00:00Z",
        updated_at="2026-11-21T08:00:00Z",
        turn_count=3,
        last_sequence=2,
        active=True,
    )
    await store.append([SessionWrite("s1", 0, facts(1, 2), row)])
    assert await store.session("s1") == row
    assert await store.sessions() == [row]


async def test_the_last_sequence_comes_from_the_facts(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, [], meta("s1", last_sequence=77))])
    assert [row.last_sequence for row in await store.sessions()] == [0]
    await put(store, 1, 5)
    row = await store.session("s1")
    assert row is not None
    assert row.last_sequence == 5


async def test_a_row_is_left_alone_by_an_append_without_one(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, [], meta("s1", title="first"))])
    await put(store, 1, 1)
    row = await store.session("s1")
    assert row is not None
    assert row.title == "first"


async def test_the_last_row_of_a_call_wins(store: Store) -> None:
    rows = [meta("s1", title=title) for title in ("one", "two")]
    await store.append([SessionWrite("s1", 0, [], row) for row in rows])
    assert [row.title for row in await store.sessions()] == ["two"]


async def test_a_session_without_a_row_is_not_listed(store: Store) -> None:
    await put(store, 1, 1)
    assert await store.sessions() == []
    assert await store.session("s1") is None


async def fill(store: Store) -> None:
    rows = [
        meta("a", "2026-11-21T08:00:01Z", owner="ann", workflow="chat"),
        meta("b", "2026-11-21T08:00:03Z", owner="bob", workflow="explore"),
        meta("c", "2026-11-21T08:00:02Z", owner="ann", workflow="explore"),
        meta("d", "2026-11-21T08:00:02Z", owner="ann", workflow="chat"),
    ]
    await store.append([SessionWrite(row.id, 0, [], row) for row in rows])


async def test_sessions_come_newest_first(store: Store) -> None:
    await fill(store)
    assert [row.id for row in await store.sessions()] == ["b", "d", "c", "a"]
    assert [row.id for row in await store.sessions(owner="ann")] == ["d", "c", "a"]
    assert [row.id for row in await store.sessions(workflow="chat")] == ["d", "a"]
    assert [row.id for row in await store.sessions(owner="ann", workflow="explore")] == ["c"]
    assert await store.sessions(owner="") == []


async def test_pages_of_sessions_have_each_row_once(store: Store) -> None:
    await fill(store)
    seen, before = [], None
    while page := await store.sessions(before=before, limit=1):
        seen += [row.id for row in page]
        before = page[-1].cursor
    assert seen == ["b", "d", "c", "a"]
    mine = await store.sessions(owner="ann", before="2026-11-21T08:00:02Z~d")
    assert [row.id for row in mine] == ["c", "a"]


async def test_a_cursor_may_be_a_time_alone_and_nonsense_is_harmless(store: Store) -> None:
    await fill(store)
    assert [row.id for row in await store.sessions(before="2026-11-21T08:00:02Z")] == ["a"]
    assert await store.sessions(before="") == []
    assert len(await store.sessions(before="~' OR 1=1")) == 0
    assert len(await store.sessions(before="zzz~~~")) == 4


async def test_a_page_has_at_least_one_row_whatever_is_asked(store: Store) -> None:
    await fill(store)
    assert len(await store.sessions(limit=-3)) == 1
    assert len(await store.sessions(limit=10**9)) == 4


async def test_a_newer_row_moves_the_session_to_the_top(store: Store) -> None:
    await fill(store)
    await store.append([SessionWrite("a", 0, [], meta("a", "2026-11-21T09:00:00Z", owner="bob"))])
    assert [row.id for row in await store.sessions()] == ["a", "b", "d", "c"]
    assert [row.id for row in await store.sessions(owner="ann")] == ["d", "c"]


async def test_active_sessions_are_found(store: Store) -> None:
    rows = [meta("z", active=True), meta("a", active=True), meta("m")]
    await store.append([SessionWrite(row.id, 0, [], row) for row in rows])
    assert await store.open_sessions() == ["a", "z"]
    await store.append([SessionWrite("a", 0, [], meta("a"))])
    assert await store.open_sessions() == ["z"]


async def test_a_deleted_session_is_gone_and_its_id_is_free(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, facts(1, 3), meta("s1", active=True))])
    await put(store, 1, 2, "other")
    assert await store.delete("s1") is True
    assert await store.read("s1") == []
    assert await store.session("s1") is None
    assert await store.open_sessions() == []
    assert await store.read("other") == numbered(1, 2, "other")
    assert await store.delete("s1") is False
    await put(store, 1, 1)
    assert await store.read("s1") == numbered(1, 1)


async def test_facts_alone_or_a_row_alone_can_be_deleted(store: Store) -> None:
    await put(store, 1, 1, "facts")
    await store.append([SessionWrite("row", 0, [], meta("row"))])
    assert await store.delete("facts") is True
    assert await store.delete("row") is True
    assert await store.delete("neither") is False


async def test_a_store_that_is_not_open_says_so(store: Store) -> None:
    await store.aclose()
    await store.aclose()
    with pytest.raises(StoreClosed, match="the store is not open"):
        await put(store, 1, 1)
    with pytest.raises(StoreClosed):
        await store.read("s1")
    with pytest.raises(StoreClosed):
        await store.sessions()
    with pytest.raises(StoreClosed):
        await store.session("s1")
    with pytest.raises(StoreClosed):
        await store.delete("s1")
    with pytest.raises(StoreClosed):
        await store.open_sessions()


async def test_a_store_that_is_opened_again_has_everything(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, facts(1, 3), meta("s1", active=True))])
    await store.aclose()
    await store.open()
    assert await store.read("s1") == numbered(1, 3)
    assert await store.open_sessions() == ["s1"]
    await put(store, 4, 4)
    assert await store.read("s1", after=2) == numbered(3, 4)


async def test_a_caller_that_gives_up_does_not_disturb_the_others(store: Store) -> None:
    task = asyncio.create_task(put(store, 1, 1, "impatient"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await put(store, 1, 1)
    assert await store.read("s1") == numbered(1, 1)


def test_a_cursor_is_taken_apart_at_the_first_mark() -> None:
    assert meta("s~1", "2026-11-21T08:00:00Z").cursor == "2026-11-21T08:00:00Z~s~1"
    assert split_cursor("2026-11-21T08:00:00Z~s~1") == ("2026-11-21T08:00:00Z", "s~1")
    assert split_cursor("") == ("", "")


def test_page_sizes_are_brought_inside() -> None:
    assert [page_limit(limit) for limit in (-1, 0, 1, 1000, 1001)] == [1, 1, 1, 1000, 1000]


def test_an_append_that_any_store_can_keep_passes() -> None:
    check_append(SessionWrite("s1", 0, [], meta("s1")))
    check_append(SessionWrite("s1", 0, []))


async def test_no_hash_is_kept_of_what_is_not_sorted(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    assert await store.heads("s1") == []
    assert await store.heads("none") == []


async def test_a_ledger_names_its_runtime_and_no_other_has_that_name(
    store: Store, tmp_path: Path
) -> None:
    named = await store.runtime_id()
    assert named.startswith("arp-")
    await store.aclose()
    await store.open()
    assert await store.runtime_id() == named
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    assert await other.runtime_id() != named
    await other.aclose()
    with pytest.raises(StoreClosed):
        await other.runtime_id()
