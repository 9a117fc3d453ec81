"""Group commit, pace, and what happens when the disk refuses."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from arp.store import writer as writer_module
from arp.store.errors import SequenceConflict, StoreClosed, StoreUnavailable, StoreUnwritable
from arp.store.journal import AppendCall, Journal
from arp.store.store import SessionWrite
from arp.store.writer import LedgerWriter, Pace


class FakeJournal:
    """Takes what it is told to take, and notes it."""

    def __init__(self) -> None:
        self.path = Path("ledger.db")
        self.bytes_since_checkpoint = 0
        self.has_old_log = False
        self.commits: list[int] = []
        self.deleted: list[str] = []
        self.reopened = 0
        self.fault: Exception | None = None
        self.reopen_fault: Exception | None = None
        self.may_commit = Event()
        self.may_commit.set()
        self.is_busy = Event()

    def commit(self, calls: Sequence[AppendCall]) -> None:
        self.is_busy.set()
        assert self.may_commit.wait(timeout=10)
        if self.fault:
            raise self.fault
        self.commits.append(len(calls))
        for call in calls:
            if call.batch[0].expected_sequence == 5:
                call.refused["s1"] = SequenceConflict("s1", 5, 0)

    def delete(self, session_id: str) -> bool:
        if self.fault:
            raise self.fault
        self.deleted.append(session_id)
        return True

    def abandon(self) -> None:
        pass

    def reopen(self) -> None:
        self.reopened += 1
        if self.reopen_fault:
            raise self.reopen_fault


class Bench:
    """A writer on fakes, and a clock that stands still."""

    def __init__(self) -> None:
        self.journal = FakeJournal()
        self.checkpoints = 0
        self.now = 0.0
        self.writer = LedgerWriter(
            cast(Journal, self.journal),
            self.checkpoint,
            clock=lambda: self.now,
        )

    def checkpoint(self) -> None:
        self.checkpoints += 1


def one_fact(expected_sequence: int = 0) -> AppendCall:
    return AppendCall((SessionWrite("s1", expected_sequence, [b"{}"]),), (), {})


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.journal.may_commit.set()
    await made.writer.aclose()


async def test_what_gathers_during_a_commit_goes_into_the_next(bench: Bench) -> None:
    """ledger.md 2: what gathers while one write is under way goes into the next."""
    bench.journal.may_commit.clear()
    first = bench.writer.append(one_fact())
    assert await asyncio.to_thread(bench.journal.is_busy.wait, 10)
    others = [bench.writer.append(one_fact()) for _ in range(50)]
    bench.journal.may_commit.set()
    await asyncio.gather(first, *others)
    assert bench.journal.commits == [1, 50]


async def test_a_transaction_has_an_end(bench: Bench) -> None:
    bench.journal.may_commit.clear()
    first = bench.writer.append(one_fact())
    assert await asyncio.to_thread(bench.journal.is_busy.wait, 10)
    others = [bench.writer.append(one_fact()) for _ in range(300)]
    bench.journal.may_commit.set()
    await asyncio.gather(first, *others)
    assert bench.journal.commits == [1, 256, 44]


async def test_only_the_call_that_is_wrong_is_refused(bench: Bench) -> None:
    calls = [bench.writer.append(one_fact(expected)) for expected in (0, 5, 0)]
    good, wrong, also_good = await asyncio.gather(*calls)
    assert (good, also_good) == ({}, {})
    assert isinstance(wrong["s1"], SequenceConflict)


async def test_a_deletion_has_its_turn(bench: Bench) -> None:
    appended, deleted = bench.writer.append(one_fact()), bench.writer.delete("s2")
    await appended
    assert await deleted is True
    assert bench.journal.deleted == ["s2"]


async def test_a_refusing_disk_refuses_all_that_waits_and_what_follows_at_once(
    bench: Bench,
) -> None:
    """threats.md G8: fail closed."""
    bench.journal.fault = sqlite3.OperationalError("disk I/O error")
    outcomes = await asyncio.gather(
        bench.writer.append(one_fact()),
        bench.writer.append(one_fact()),
        bench.writer.delete("s1"),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [StoreUnwritable] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    bench.journal.fault = None
    bench.now = 0.9
    with pytest.raises(StoreUnwritable) as refused:
        await bench.writer.append(one_fact())
    assert str(refused.value) == (
        "ledger ledger.db cannot be written: SQLite refuses (disk I/O error)"
    )
    assert bench.journal.reopened == 0
    assert bench.journal.commits == []


async def test_after_the_delay_the_file_is_opened_again_before_anything_is_written(
    bench: Bench,
) -> None:
    """threats.md F05: never retry and trust; reopen, verify, else stay read-only."""
    bench.journal.fault = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(StoreUnwritable):
        await bench.writer.append(one_fact())
    bench.journal.fault = None
    bench.journal.reopen_fault = StoreUnavailable("lost facts")
    bench.now = 1.0
    with pytest.raises(StoreUnwritable, match="lost facts"):
        await bench.writer.append(one_fact())
    bench.journal.reopen_fault = None
    bench.now = 1.9
    with pytest.raises(StoreUnwritable):
        await bench.writer.append(one_fact())
    assert bench.journal.reopened == 1
    bench.now = 2.0
    await bench.writer.append(one_fact())
    await bench.writer.append(one_fact())
    assert bench.journal.reopened == 2
    assert bench.journal.commits == [1, 1]


async def test_an_internal_error_is_reported_and_does_not_end_the_thread(bench: Bench) -> None:
    bench.journal.fault = ZeroDivisionError("a bug")
    with pytest.raises(StoreUnwritable, match=r"fault in the writer \(ZeroDivisionError\)"):
        await bench.writer.append(one_fact())
    bench.journal.fault = None
    bench.now = 1.0
    await bench.writer.append(one_fact())


async def test_a_cancelled_waiter_gets_no_result(bench: Bench) -> None:
    bench.journal.may_commit.clear()
    call = bench.writer.append(one_fact())
    call.cancel()
    bench.journal.may_commit.set()
    await bench.writer.append(one_fact())


async def test_closing_serves_what_waits_and_takes_no_more(bench: Bench) -> None:
    calls = [bench.writer.append(one_fact()) for _ in range(3)]
    await bench.writer.aclose()
    await asyncio.gather(*calls)
    with pytest.raises(StoreClosed):
        bench.writer.append(one_fact())


async def test_a_checkpoint_is_asked_for_when_enough_is_written(bench: Bench) -> None:
    bench.journal.bytes_since_checkpoint = 8 * 2**20 - 1
    await bench.writer.append(one_fact())
    assert bench.checkpoints == 0
    bench.journal.bytes_since_checkpoint = 8 * 2**20
    await bench.writer.append(one_fact())
    await bench.writer.append(one_fact())
    assert bench.checkpoints == 1
    assert bench.journal.bytes_since_checkpoint == 0


def test_a_loop_that_is_gone_does_not_hold_the_writer() -> None:
    made: list[Bench] = []

    async def leave() -> None:
        made.append(Bench())
        made[0].journal.may_commit.clear()
        made[0].writer.append(one_fact())

    asyncio.run(leave())
    (left,) = made
    left.journal.may_commit.set()
    left.writer._calls.put(None)
    left.writer._thread.join(timeout=10)
    assert not left.writer._thread.is_alive()


def test_pace_lets_a_burst_pass_and_then_60_a_second() -> None:
    now = 0.0
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    pace = Pace(clock=lambda: now, sleep=sleep)
    for _ in range(32):
        pace.wait()
    assert slept == []
    for _ in range(5):
        pace.wait()
    assert slept == pytest.approx([1 / 60] * 5)


def test_pace_hardly_delays_what_something_waits_for() -> None:
    """An agent that runs one tool after the other must not wait 17 ms for each."""
    now = 0.0
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    pace = Pace(clock=lambda: now, sleep=sleep)
    for _ in range(132):
        pace.wait(is_awaited=True)
    assert now == pytest.approx(100 / 500, abs=0.01)
    slept.clear()
    pace.wait()
    assert slept == [pytest.approx(1 / 60, abs=0.02)]


def test_pace_costs_nothing_to_one_who_writes_now_and_then() -> None:
    now = 0.0
    pace = Pace(clock=lambda: now, sleep=lambda seconds: pytest.fail(f"slept {seconds}"))
    for _ in range(500):
        pace.wait()
        now += 0.017


def test_idle_time_earns_one_burst_and_no_more() -> None:
    now = 1000.0
    slept: list[float] = []
    pace = Pace(clock=lambda: now, sleep=slept.append)
    now = 9000.0
    for _ in range(33):
        pace.wait()
    assert slept == pytest.approx([1 / 60])


def test_the_constants_are_what_the_docstrings_say() -> None:
    assert (writer_module.COMMITS_PER_S, writer_module.RETRY_S) == (60, 1.0)


async def test_the_first_waiting_call_decides_about_the_pace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PostgresWriter` has the same rule, and the same test."""
    found: list[bool] = []

    def delay(_: Pace, *, is_awaited: bool = False) -> float:
        found.append(is_awaited)
        return 0.0

    monkeypatch.setattr(Pace, "delay", delay)
    for order in ([False, True], [True, False]):
        bench.journal.may_commit.clear()
        bench.journal.is_busy.clear()
        before = bench.writer.append(one_fact())
        assert await asyncio.to_thread(bench.journal.is_busy.wait, 10)
        calls = [bench.writer.append(one_fact(), is_awaited=one) for one in order]
        bench.journal.may_commit.set()
        await asyncio.gather(before, *calls)
    assert found == [False, False, False, True]
