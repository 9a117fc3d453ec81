"""Appends of several processes: sequences, fences, order of locks, and what text may contain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import psycopg
import pytest

from arp.store.errors import InvalidWrite, SequenceConflict, SessionMoved
from arp.store.journal import AppendCall
from arp.store.postgres import writer as writer_module
from arp.store.postgres.append_batch import ROW_BYTES, AppendBatch
from arp.store.postgres.store import PostgresStore
from arp.store.session_list import TurnText
from arp.store.store import PAGE_BYTES, SessionWrite
from arp.store.store import facts as facts_of
from arp.store.writer import Pace
from tests.store.samples import fact, facts, meta, numbered, put
from tests.support.postgres import PostgresServer, new_database

TURN_S = 5.0
"""Maximum time in seconds to wait for something on the server."""


def write(session_id: str, fence: int, expected: int = 0) -> SessionWrite:
    return SessionWrite(
        session_id, expected, facts(expected + 1, expected + 1, session_id), fence=fence
    )


@asynccontextmanager
async def locked(location: str, statement: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """Run a statement in a transaction that ends with the block."""
    async with await psycopg.AsyncConnection.connect(location) as connection:
        await connection.execute(statement.encode())
        yield connection


async def waiting_for_locks(location: str, count: int) -> None:
    """Wait until this number of statements wait for a lock in the database."""
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with (
        asyncio.timeout(TURN_S),
        await psycopg.AsyncConnection.connect(location, autocommit=True) as connection,
    ):
        while await (await connection.execute(query)).fetchone() != (count,):  # noqa: ASYNC110 - the server reports no event
            await asyncio.sleep(0.005)


async def rows_of(location: str, query: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(location) as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def test_an_append_that_waits_for_a_takeover_is_refused(
    pg: PostgresStore, location: str
) -> None:
    """The fence is compared after the lock, in the statement that stores the facts."""
    assert await pg.raise_fence("s1") == 1
    assert await pg.append([write("s1", 1)]) == {}
    takeover = "UPDATE arp_head SET fence = fence + 1 WHERE session = 's1'"
    async with locked(location, takeover):
        late = pg.append([write("s1", 1, 1), write("other", 0)])
        await waiting_for_locks(location, 1)
    refused = await late
    assert list(refused) == ["s1"]
    assert isinstance(refused["s1"], SessionMoved)
    assert await pg.read("s1") == numbered(1, 1)
    assert await pg.read("other") == numbered(1, 1, "other")


async def test_a_takeover_waits_for_an_append_that_has_the_lock(
    pg: PostgresStore, second: PostgresStore, location: str
) -> None:
    """After `raise_fence` has returned, no append of the earlier owner can commit any more."""
    await put(pg, 1, 1, "a")
    await put(pg, 1, 1, "b")
    async with locked(location, "SELECT 1 FROM arp_head WHERE session = 'b' FOR UPDATE"):
        early = pg.append([write("a", 0, 1), write("b", 0, 1)])
        await waiting_for_locks(location, 1)
        takeover = asyncio.create_task(second.raise_fence("a"))
        await waiting_for_locks(location, 2)
        assert not takeover.done()
    assert await takeover == 1
    assert await second.read("a") == numbered(1, 2, "a")
    assert await early == {}
    refused = await pg.append([write("a", 0, 2)])
    assert isinstance(refused["a"], SessionMoved)


async def test_a_takeover_waits_for_an_append_that_has_compared_its_fence(
    pg: PostgresStore, second: PostgresStore, location: str
) -> None:
    """The append is held between the comparison and the commit."""
    await put(pg, 1, 1)
    pause = (
        "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';"
        "CREATE TRIGGER pause BEFORE INSERT ON arp_fact FOR EACH ROW EXECUTE FUNCTION pause()"
    )
    async with locked(location, pause):
        pass
    async with locked(location, "SELECT pg_advisory_xact_lock(1)"):
        early = pg.append([write("s1", 0, 1)])
        await waiting_for_locks(location, 1)
        takeover = asyncio.create_task(second.raise_fence("s1"))
        await waiting_for_locks(location, 2)
        assert not takeover.done()
    assert await takeover == 1
    assert await second.read("s1") == numbered(1, 2)
    assert await early == {}


async def test_appends_that_wait_behind_a_takeover_in_any_order(
    pg: PostgresStore, second: PostgresStore, location: str
) -> None:
    """A takeover and appends of the earlier owner wait for the same lock."""
    await put(pg, 1, 1)
    async with locked(location, "SELECT 1 FROM arp_head WHERE session = 's1' FOR UPDATE"):
        takeover = asyncio.create_task(second.raise_fence("s1"))
        await waiting_for_locks(location, 1)
        late = pg.append([write("s1", 0, 1)])
        await waiting_for_locks(location, 2)
    await takeover
    found = await second.read("s1")
    refused = await late
    assert await second.read("s1") == found
    assert found == numbered(1, 1 if refused else 2)


async def test_of_two_stores_that_race_each_sequence_is_written_once(
    pg: PostgresStore, second: PostgresStore
) -> None:
    stored = {pg: 0, second: 0}
    for expected in range(20):
        outcomes = await asyncio.gather(
            *(
                store.append([SessionWrite("s1", expected, [b'{"by":%d}' % number])])
                for number, store in enumerate(stored)
            )
        )
        for store, refused in zip(stored, outcomes, strict=True):
            stored[store] += not refused
            assert all(isinstance(error, SequenceConflict) for error in refused.values())
        assert sum(bool(refused) for refused in outcomes) == 1
    assert len(await pg.read("s1")) == sum(stored.values()) == 20


async def test_stores_that_write_the_same_sessions_in_any_order_do_not_block_each_other(
    location: str,
) -> None:
    """Locks are taken in the order of ids, also those of sessions that are new or deleted."""
    random = Random(1)
    stores = [PostgresStore(location) for _ in range(4)]
    for store in stores:
        await store.open()

    async def work(store: PostgresStore, number: int) -> None:
        for _ in range(40):
            names = random.sample([f"s{one}" for one in range(8)], 5)
            lasts = {name: (await store.read(name) or [(0, b"")])[-1][0] for name in names}
            batch = [SessionWrite(name, last, [b"{}"]) for name, last in lasts.items()]
            refused = await store.append(batch)
            assert all(isinstance(error, SequenceConflict) for error in refused.values())
            if number == 0:
                await store.delete(random.choice(names))

    await asyncio.gather(*(work(store, number) for number, store in enumerate(stores)))
    for store in stores:
        await store.aclose()
    heads = await rows_of(location, "SELECT session, last FROM arp_head ORDER BY 1")
    ends = await rows_of(location, "SELECT session, max(last) FROM arp_fact GROUP BY 1 ORDER BY 1")
    assert heads == ends


async def test_a_refused_session_leaves_no_row_behind(pg: PostgresStore, location: str) -> None:
    assert list(await pg.append([write("s1", 0, 3), write("s2", 7)])) == ["s1", "s2"]
    await pg.append([SessionWrite("row", 0, [], meta("row"))])
    assert await rows_of(location, "SELECT * FROM arp_head") == []


async def test_waiting_calls_share_one_statement(
    pg: PostgresStore, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    class Counted(AppendBatch):
        def __init__(self, calls: list[AppendCall]) -> None:
            super().__init__(calls)
            sizes.append(len(calls))

    monkeypatch.setattr(writer_module, "AppendBatch", Counted)
    monkeypatch.setattr(writer_module, "MAX_GROUP", 50)
    calls = [pg.append([write("s1", 0, expected)]) for expected in range(120)]
    assert await asyncio.gather(*calls) == [{}] * 120
    assert sizes == [50, 50, 20]
    assert await pg.read("s1") == numbered(1, 120)


async def test_a_call_that_is_no_append_runs_in_its_place(pg: PostgresStore) -> None:
    first = pg.append([write("s1", 0)])
    deleted = asyncio.create_task(pg.delete("s1"))
    await asyncio.sleep(0)
    again = pg.append([write("s1", 0)])
    assert await first == {}
    assert await deleted
    assert await again == {}
    assert await pg.read("s1") == numbered(1, 1)


async def test_closing_stores_what_waits(pg: PostgresStore, second: PostgresStore) -> None:
    calls = [pg.append([write("s1", 0, expected)]) for expected in range(10)]
    await pg.aclose()
    assert [await call for call in calls] == [{}] * 10
    assert await second.read("s1") == numbered(1, 10)


async def test_later_calls_see_what_earlier_calls_of_the_statement_did(pg: PostgresStore) -> None:
    unit = [frozenset({"a", "b"})]
    calls = [
        pg.append([write("a", 0), write("b", 0)], unit),
        pg.append([write("a", 0), write("b", 0, 1)], unit),
        pg.append([write("a", 0, 1), write("b", 0, 1)], unit),
        pg.append([write("b", 0, 2), write("c", 0)]),
    ]
    assert [sorted(await call) for call in calls] == [[], ["a", "b"], [], []]
    assert await pg.read("a") == numbered(1, 2, "a")
    assert await pg.read("b") == numbered(1, 3, "b")


async def test_nul_survives_wherever_text_may_have_it(pg: PostgresStore) -> None:
    row = meta("s1", title="a\0b", epoch="\0")
    texts = [TurnText("t\0", "\0violet\0")]
    nul = b'{"text":"\\u0000"}'
    assert await pg.append([SessionWrite("s1", 0, [nul], row, texts)]) == {}
    assert await pg.read("s1") == [(1, nul)]
    found = await pg.session("s1")
    assert found is not None
    assert (found.title, found.epoch) == ("a\0b", "\0")
    (match,) = (await pg.search(["violet"], owner="ann")).matches
    assert (match.turn_id, match.excerpt) == ("t\0", "\0violet\0")
    await pg.note_removal("a\0", "b\0")
    assert await pg.removals() == {"a\0": "b\0"}


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "\0", "2026\0~x", "2026-11-21T08:00:00Z~\0"])
async def test_arguments_that_no_text_can_be_are_harmless(pg: PostgresStore, text: str) -> None:
    await pg.append([SessionWrite("s1", 0, facts(1, 1), meta("s1"))])
    assert await pg.read(text) == []
    assert await pg.session(text) is None
    assert await pg.delete(text) is False
    assert await pg.load_model(text, "thread") is None
    assert await pg.sessions(owner=text) == []
    assert (await pg.search([text], owner=text)).matches == []
    await pg.search([text], owner="ann")
    await pg.sessions(before=text)
    with pytest.raises(SequenceConflict):
        await pg.save_model(text, "thread", 1, b"")
    with pytest.raises(InvalidWrite):
        await pg.raise_fence(text)


async def test_a_cursor_with_nul_has_its_place_in_the_order(pg: PostgresStore) -> None:
    rows = [meta(name, time) for time in ("1", "2") for name in ("a", "b")]
    for row in (*rows[:1], *rows[1:2]):
        await pg.append([SessionWrite(row.id, 0, [], row)])
    for before, ids in (
        ("1\0~", ["b", "a"]),
        ("1~a\0", ["a"]),
        ("1~b\0x", ["b", "a"]),
        ("0\0~b", []),
    ):
        assert [row.id for row in await pg.sessions(before=before)] == ids


async def test_keys_that_are_too_long_for_an_index_are_refused_alone(pg: PostgresStore) -> None:
    long = "é" * 501
    longest = "x" * 1000
    batch = [
        SessionWrite(long, 0, facts(1, 1)),
        SessionWrite("a", 0, [], meta("a", owner=long)),
        SessionWrite("b", 0, [], meta("b", updated_at="2" * 201)),
        SessionWrite("c", 0, [], None, [TurnText(long, "text")]),
        SessionWrite(
            longest,
            0,
            facts(1, 1),
            meta(longest, "2" * 200, owner=longest),
            [TurnText(longest, "text")],
        ),
    ]
    refused = await pg.append(batch)
    assert list(refused) == [long, "a", "b", "c"]
    assert all(isinstance(error, InvalidWrite) for error in refused.values())
    assert [row.id for row in await pg.sessions(owner=longest)] == [longest]
    with pytest.raises(InvalidWrite):
        await pg.note_removal(long, "note")


async def test_a_large_append_is_divided_into_rows(pg: PostgresStore, location: str) -> None:
    """A reader that wants one fact does not read megabytes."""
    new = [b'{"n":%d,"text":"%s"}' % (number, b"x" * 1000) for number in range(2000)]
    await put(pg, 1, 1)
    assert await pg.append([SessionWrite("s1", 1, new)]) == {}
    lengths = await rows_of(location, "SELECT octet_length(facts) FROM arp_fact ORDER BY first")
    assert len(lengths) == 9
    assert all(length <= ROW_BYTES + 2000 for (length,) in lengths)  # type: ignore[operator] # a number
    assert [body async for _, body in facts_of(pg, "s1")] == [fact(1), *new]
    assert await pg.read("s1", 1500, 3) == list(enumerate(new[1499:1502], 1501))


async def test_a_page_reads_little_more_than_its_limit(pg: PostgresStore, location: str) -> None:
    """The memory of the server and of this process is bounded, whatever `limit` is."""
    new = [b'{"text":"%s"}' % (b"x" * 100_000) for _ in range(200)]
    await pg.append([SessionWrite("s1", 0, new)])
    read = "SELECT coalesce(sum(octet_length(facts)), 0) FROM arp_read_v1('s1', 3, {}, {})"
    ((size,),) = await rows_of(location, read.format(10**9, PAGE_BYTES))
    assert PAGE_BYTES <= size <= PAGE_BYTES + 2 * ROW_BYTES  # type: ignore[operator] # a number
    ((size,),) = await rows_of(location, read.format(1, PAGE_BYTES))
    assert size <= 2 * ROW_BYTES  # type: ignore[operator] # a number
    assert 0 < len(await pg.read("s1", 0, 10**30)) < 50


async def test_the_order_of_ids_is_that_of_their_characters(server: PostgresServer) -> None:
    """Most collations put `b` before `A` and `é` after `e`; cursors need the order of Python."""
    options = "LOCALE_PROVIDER icu ICU_LOCALE 'en'"
    try:
        location = new_database(server, options)
    except psycopg.Error:
        pytest.skip("this PostgreSQL has no ICU")
    store = PostgresStore(location)
    await store.open()
    names = ["Z", "b", "é", "A", "a", "日", "🎈", "_", "-"]
    await store.append([SessionWrite(n, 0, [], meta(n, active=True)) for n in names])
    assert await store.open_sessions() == sorted(names)
    seen, before = [], None
    while page := await store.sessions(before=before, limit=2):
        seen += [row.id for row in page]
        before = page[-1].cursor
    assert seen == sorted(names, reverse=True)
    assert await store.append([write(name, 0) for name in names]) == {}
    await store.aclose()


async def test_the_first_waiting_call_decides_about_the_pace(
    pg: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`LedgerWriter` has the same rule, and the same test."""
    found: list[bool] = []

    def delay(_: Pace, *, is_awaited: bool = False) -> float:
        found.append(is_awaited)
        return 0.0

    monkeypatch.setattr(Pace, "delay", delay)
    last = 0
    for order in ([False, True], [True, False]):
        calls = [
            pg.append([write("s1", 0, last + number)], is_awaited=one)
            for number, one in enumerate(order)
        ]
        await asyncio.gather(*calls)
        last += 2
    assert found == [False, True]
