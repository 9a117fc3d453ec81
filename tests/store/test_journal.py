"""The two homes of a fact: all of it is found in any state of the file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arp.store import tails as tails_module
from arp.store.errors import SequenceConflict, StoreDamaged, StoreUnavailable
from arp.store.journal import AppendCall, Journal
from arp.store.memory import MemoryStore
from arp.store.reader import read_segments
from arp.store.sqlite import SqliteStore
from arp.store.store import Refusals, SessionWrite, Store
from tests.store.samples import copy_of_a_crash, fact, facts, meta, numbered, put
from tests.support.examples import examples


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "ledger.db")
    made.open()
    yield made
    made.abandon()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tails fall due after a few facts (one is about 30 bytes)."""
    monkeypatch.setattr(tails_module, "JOURNAL_BYTES", 600)
    monkeypatch.setattr(tails_module, "SPILL_BYTES", 150)


def append(session_id: str, first: int, last: int) -> list[SessionWrite]:
    return [SessionWrite(session_id, first - 1, facts(first, last, session_id))]


def commit(journal: Journal, batches: Sequence[Sequence[SessionWrite]]) -> list[Refusals]:
    """Commit each batch as a call of its own; return what is refused of each."""
    calls = [AppendCall(batch, (), {}) for batch in batches]
    journal.commit(calls)
    return [call.refused for call in calls]


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_transaction_is_one_row_of_the_journal(journal: Journal) -> None:
    outcomes = commit(journal, [append("a", 1, 3), append("b", 1, 2), append("a", 4, 4)])
    assert outcomes == [{}, {}, {}]
    assert rows(journal.path, "journal") == 1
    assert rows(journal.path, "segment") == 0


def test_a_refused_session_does_not_take_the_others_with_it(journal: Journal) -> None:
    wrong = [*append("a", 4, 4), *append("b", 3, 3)]
    outcomes = commit(journal, [append("a", 1, 3), wrong, append("a", 5, 5)])
    assert outcomes[0] == outcomes[2] == {}
    assert list(outcomes[1]) == ["b"]
    assert isinstance(outcomes[1]["b"], SequenceConflict)
    assert journal.last_of("a") == 5
    assert journal.last_of("b") == 0


def test_a_transaction_in_which_all_is_refused_writes_nothing(journal: Journal) -> None:
    assert isinstance(commit(journal, [append("a", 2, 2)])[0]["a"], SequenceConflict)
    assert rows(journal.path, "journal") == 0


def test_a_row_of_a_session_alone_needs_no_journal(journal: Journal) -> None:
    assert commit(journal, [[SessionWrite("a", 0, [], meta("a"))]]) == [{}]
    assert rows(journal.path, "journal") == 0
    assert rows(journal.path, "session") == 1


def test_closing_sorts_everything(journal: Journal) -> None:
    commit(journal, [append("a", 1, 3), append("b", 1, 2)])
    commit(journal, [append("a", 4, 5)])
    journal.close()
    journal.close()
    with closing(sqlite3.connect(journal.path)) as db:
        assert db.execute("SELECT count(*) FROM journal").fetchone() == (0,)
        found = db.execute("SELECT session, first, last, facts FROM segment ORDER BY session")
        assert found.fetchall() == [
            ("a", 1, 5, b"\n".join(facts(1, 5, "a"))),
            ("b", 1, 2, b"\n".join(facts(1, 2, "b"))),
        ]


@pytest.mark.usefixtures("small")
def test_the_journal_stays_short_while_facts_are_sorted(journal: Journal) -> None:
    for sequence in range(1, 201):
        commit(journal, [append("loud", sequence, sequence)])
        if sequence % 50 == 1:
            commit(journal, [append(f"quiet {sequence}", 1, 1)])
    assert rows(journal.path, "journal") < 40
    segments = read_segments(journal._db, "loud", 0, 1000)
    tail = journal.tails.get("loud")
    assert tail is not None
    assert segments == numbered(1, tail.first - 1, "loud")
    assert tail.facts == facts(tail.first, 200, "loud")


@pytest.mark.usefixtures("small")
def test_what_a_crash_leaves_is_complete(journal: Journal, tmp_path: Path) -> None:
    for sequence in range(1, 31):
        commit(journal, [append("a", sequence, sequence), append("b", sequence, sequence)])
    crashed = Journal(copy_of_a_crash(journal.path, tmp_path / "crash"))
    crashed.open()
    assert 0 < rows(crashed.path, "journal") < 30
    assert crashed.last_of("a") == 30
    assert commit(crashed, [append("a", 31, 31), append("b", 31, 31)]) == [{}, {}]
    crashed.close()
    with closing(sqlite3.connect(crashed.path)) as db:
        assert read_segments(db, "a", 0, 1000) == numbered(1, 31, "a")
        assert read_segments(db, "b", 0, 1000) == numbered(1, 31, "b")


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


def test_a_damaged_journal_row_stops_its_sessions_and_no_others(
    journal: Journal, tmp_path: Path
) -> None:
    """threats.md F06: the session is quarantined, others run."""
    commit(journal, [append("a", 1, 2), append("b", 1, 1)])
    commit(journal, [append("a", 3, 3)])
    commit(journal, [append("b", 2, 2)])
    copy = copy_of_a_crash(journal.path, tmp_path / "crash")
    damage(copy, "UPDATE journal SET facts = replace(facts, '3', '8') WHERE id = 2")
    for _ in range(2):
        crashed = Journal(copy)
        crashed.open()
        assert crashed.damaged == {"a": 2}
        outcomes = commit(crashed, [append("a", 4, 4), append("b", crashed.last_of("b") + 1, 4)])
        assert isinstance(outcomes[0]["a"], StoreDamaged)
        assert str(outcomes[0]["a"]) == (
            "session a: the facts after sequence 2 are damaged on the disk; "
            "restore the ledger from a backup, or delete the session"
        )
        assert outcomes[1] == {}
        crashed.close()
    assert rows(copy, "journal") == 1


def test_a_missing_journal_row_stops_its_sessions(journal: Journal, tmp_path: Path) -> None:
    commit(journal, [append("a", 1, 2), append("b", 1, 1)])
    commit(journal, [append("a", 3, 3)])
    commit(journal, [append("a", 4, 4), append("b", 2, 2)])
    copy = copy_of_a_crash(journal.path, tmp_path / "crash")
    damage(copy, "DELETE FROM journal WHERE id = 2")
    crashed = Journal(copy)
    crashed.open()
    assert crashed.damaged == {"a": 2}
    assert crashed.last_of("b") == 2
    crashed.abandon()


def test_a_journal_row_without_readable_heads_keeps_the_file_shut(
    journal: Journal, tmp_path: Path
) -> None:
    commit(journal, [append("a", 1, 2)])
    copy = copy_of_a_crash(journal.path, tmp_path / "crash")
    damage(copy, "UPDATE journal SET heads = CAST('[[\"a\"' AS BLOB)")
    with pytest.raises(StoreUnavailable, match="row 1 of its journal is damaged"):
        Journal(copy).open()


def test_deleting_a_damaged_session_allows_a_new_one_with_its_id(
    journal: Journal, tmp_path: Path
) -> None:
    commit(journal, [append("a", 1, 2)])
    commit(journal, [append("a", 3, 3), append("b", 1, 1)])
    copy = copy_of_a_crash(journal.path, tmp_path / "crash")
    damage(copy, "UPDATE journal SET crc = crc + 1")
    crashed = Journal(copy)
    crashed.open()
    assert crashed.damaged == {"a": 0, "b": 0}
    assert crashed.delete("a") is True
    assert commit(crashed, [append("a", 1, 2)]) == [{}]
    crashed.abandon()
    crashed.open()
    assert crashed.damaged == {"b": 0}
    assert crashed.last_of("a") == 2
    assert crashed.delete("b") is True
    crashed.close()
    assert rows(copy, "journal") == 0


def test_a_full_file_refuses_all_of_a_transaction(journal: Journal) -> None:
    commit(journal, [append("a", 1, 1)])
    journal._db.execute("PRAGMA max_page_count = 20")
    with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
        commit(journal, [append("a", 2, 5000), [SessionWrite("b", 0, [], meta("b"))]])
    journal.abandon()
    with pytest.raises(sqlite3.OperationalError, match="not open"):
        commit(journal, [append("a", 2, 2)])
    journal.reopen()
    assert journal.last_of("a") == 1
    assert rows(journal.path, "session") == 0
    assert commit(journal, [append("a", 2, 2)]) == [{}]


def test_facts_that_were_promised_and_are_gone_keep_the_ledger_shut(journal: Journal) -> None:
    """threats.md F05: verify from the disk, else stay read-only."""
    commit(journal, [append("a", 1, 3)])
    journal.abandon()
    damage(journal.path, "DELETE FROM journal")
    with pytest.raises(StoreUnavailable, match="session a lost acknowledged facts"):
        journal.reopen()
    tail = journal.tails.get("a")
    assert tail is not None
    assert tail.facts == facts(1, 3, "a")


def test_only_so_many_sessions_are_remembered(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.store.journal._MAX_KNOWN", 3)
    monkeypatch.setattr(tails_module, "SPILL_BYTES", 1)
    for number in range(10):
        commit(journal, [append(f"s{number}", 1, 2)])
    assert len(journal._last) <= 4
    assert journal.last_of("s0") == 2


def test_a_failed_commit_is_rolled_back(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr("arp.store.journal._session_rows", fail)
    with pytest.raises(MemoryError):
        commit(journal, [[SessionWrite("a", 0, facts(1, 1, "a"), meta("a"))]])
    assert not journal._db.in_transaction
    assert rows(journal.path, "journal") == 0


SESSIONS = st.sampled_from(["a", "b", "c"])
STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.tuples(SESSIONS, st.integers(0, 4)), max_size=4)),
    st.tuples(st.just("conflict"), SESSIONS),
    st.tuples(st.just("read"), st.tuples(SESSIONS, st.integers(0, 12), st.integers(1, 6))),
    st.tuples(st.just("delete"), SESSIONS),
    st.tuples(st.just("reopen"), st.none()),
)


async def step(store: Store, name: str, argument: Any) -> object:
    """Does one step and gives what a caller sees of it."""
    if name == "append":
        await append_runs(store, argument)
    elif name == "conflict":
        refused = await store.append([SessionWrite(argument, 99, [fact(100)], meta(argument))])
        assert isinstance(refused[argument], SequenceConflict)
        return str(refused[argument])
    elif name == "read":
        session_id, after, limit = argument
        return await store.read(session_id, after, limit)
    elif name == "delete":
        return await store.delete(argument)
    else:
        await store.aclose()
        await store.open()
    return None


async def append_runs(store: Store, runs: list[tuple[str, int]]) -> None:
    """Appends so many facts to each session, all in one call."""
    ends: dict[str, int] = {}
    batch = []
    for session_id, count in runs:
        last = ends.get(session_id, len(await store.read(session_id)))
        batch.append(
            SessionWrite(session_id, last, facts(last + 1, last + count), meta(session_id))
        )
        ends[session_id] = last + count
    assert await store.append(batch) == {}


@pytest.mark.usefixtures("small")
@settings(max_examples=examples(60))
@given(steps=st.lists(STEPS, max_size=25))
def test_whatever_is_done_the_file_answers_as_memory_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    """style.md: replaying the ledger rebuilds the live state, from either home of a fact."""

    async def compare(stores: list[Store]) -> None:
        for store in stores:
            await store.open()
        for name, argument in steps:
            one, other = [await step(store, name, argument) for store in stores]
            assert one == other
        for session_id in ("a", "b", "c"):
            one, other = [
                (await store.read(session_id), await store.session(session_id)) for store in stores
            ]
            assert one == other
        for store in stores:
            await store.aclose()

    path = tmp_path_factory.mktemp("steps") / "ledger.db"
    asyncio.run(compare([MemoryStore(), SqliteStore(path)]))


async def test_a_segment_of_one_session_is_written_while_another_is_read(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers and the sorting writer never hide a fact from each other."""
    monkeypatch.setattr(tails_module, "SPILL_BYTES", 100)
    written = 0

    async def write() -> None:
        nonlocal written
        for sequence in range(1, 150):
            await put(sqlite, sequence, sequence)
            written = sequence

    task = asyncio.create_task(write())
    while not task.done():
        promised = written
        found = await sqlite.read("s1")
        assert found == numbered(1, len(found))
        assert len(found) >= promised
        await asyncio.sleep(0)
    await task
