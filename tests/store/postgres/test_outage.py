"""The database is away, does not answer, or crashes; it comes back, and everything continues."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from random import Random
from urllib.parse import urlsplit

import pytest

from arp.store.errors import SequenceConflict, StoreError, StoreUnreadable, StoreUnwritable
from arp.store.postgres import connections
from arp.store.postgres import writer as writer_module
from arp.store.postgres.append_batch import AppendBatch
from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite, append_all
from tests.store.samples import fact, facts, numbered, put
from tests.support.holding import HoldingProxy
from tests.support.postgres import PASSWORD, PostgresServer, new_database

WITHIN_S = 20.0
"""Maximum time in seconds until a store continues."""


@pytest.fixture
async def own(own_server: PostgresServer) -> AsyncIterator[PostgresStore]:
    """An open store on a server that the test may stop."""
    store = PostgresStore(new_database(own_server))
    await store.open()
    yield store
    await store.aclose()


async def put_when_possible(store: PostgresStore, last: int, session_id: str = "s1") -> int:
    """Append the fact after `last`, or find that it is stored; return the new last sequence."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await put(store, last + 1, last + 1, session_id)
            except StoreUnwritable:
                await asyncio.sleep(0.05)
            except SequenceConflict as conflict:
                if conflict.actual != last + 1:
                    raise
                return last + 1
            else:
                return last + 1


async def test_calls_fail_at_once_while_the_server_is_down_and_continue_afterwards(
    own: PostgresStore, own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await put(own, 1, 3)
    own_server.stop()
    began = asyncio.get_running_loop().time()
    for _ in range(50):
        with pytest.raises(StoreUnwritable) as unwritable:
            await put(own, 4, 4)
        with pytest.raises(StoreUnreadable, match="the ledger cannot be read: no server listens"):
            await own.read("s1")
    assert asyncio.get_running_loop().time() - began < 5
    assert str(unwritable.value) == (
        f"ledger {own.shown} cannot be written: no server listens there; start it, or correct the "
        "host and the port"
    )
    assert unwritable.value.message == (
        "the ledger cannot be written now, so nothing new is accepted; try again later"
    )
    own_server.start()
    last = await put_when_possible(own, 3)
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                assert await own.read("s1") == numbered(1, last)
                break
            except StoreUnreadable:
                await asyncio.sleep(0.05)
    assert f"ledger {own.shown} can be written again" in caplog.text
    assert PASSWORD not in caplog.text
    for problem in ("cannot be written", "cannot be read"):
        assert len([one for one in caplog.records if problem in one.getMessage()]) < 3


async def test_a_restart_between_two_calls_is_not_noticed(
    own: PostgresStore, own_server: PostgresServer
) -> None:
    """Idle connections that the server has closed are not used."""
    await put(own, 1, 3)
    assert await own.read("s1") == numbered(1, 3)
    own_server.stop()
    own_server.start()
    await put(own, 4, 4)
    assert await own.read("s1") == numbered(1, 4)


async def test_the_server_restarts_while_appends_wait(
    own: PostgresStore, own_server: PostgresServer
) -> None:
    """Calls of unknown outcome are errors; those that were acknowledged are stored."""
    acknowledged = 0
    is_stopping = False

    async def write() -> None:
        nonlocal acknowledged
        while not is_stopping:
            acknowledged = await put_when_possible(own, acknowledged)

    async def write_much(name: str) -> None:
        """Ten calls wait at the same time."""
        last = 0
        while not is_stopping:
            calls = [
                own.append([SessionWrite(name, last + one, facts(last + one + 1, last + one + 1))])
                for one in range(10)
            ]
            await asyncio.gather(*calls, return_exceptions=True)
            await asyncio.sleep(0.01)
            try:
                last = (await own.read(name, max(0, last - 1), 1000) or [(last, b"")])[-1][0]
            except StoreUnreadable:
                await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(write()), asyncio.create_task(write_much("much"))]
    for _ in range(2):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own_server.stop)
        await asyncio.sleep(0.2)
        await asyncio.to_thread(own_server.start)
    is_stopping = True
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*tasks)
    await asyncio.sleep(1.1)
    assert await own.read("s1", limit=10**6) == numbered(1, acknowledged)
    much = await own.read("much", limit=10**6)
    assert much == [(number, fact(number)) for number in range(1, len(much) + 1)]


@pytest.mark.kill
@pytest.mark.timeout(300)
async def test_a_crash_of_the_server_loses_nothing_that_was_acknowledged(
    own: PostgresStore, own_server: PostgresServer
) -> None:
    random = Random(7)
    lasts = dict.fromkeys("abc", 0)
    is_stopping = False

    async def write(name: str) -> None:
        while not is_stopping:
            lasts[name] = await put_when_possible(own, lasts[name], name)

    tasks = [asyncio.create_task(write(name)) for name in lasts]
    for _ in range(3):
        await asyncio.sleep(random.uniform(0.1, 0.5))
        await asyncio.to_thread(own_server.stop, signal.SIGKILL)
        acknowledged = dict(lasts)
        await asyncio.to_thread(own_server.start)
        fresh = PostgresStore(own_server.location(database_of(own)))
        await fresh.open()
        for name, last in acknowledged.items():
            found = await fresh.read(name, limit=10**6)
            assert found[:last] == numbered(1, last, name)
            assert found == numbered(1, len(found), name)
        await fresh.aclose()
    is_stopping = True
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*tasks)


def database_of(store: PostgresStore) -> str:
    return store.shown.rpartition("/")[2]


async def test_a_server_that_does_not_answer_fails_the_call_in_time(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome is unknown, the connection is dropped, and the late commit is found later."""
    monkeypatch.setattr(connections, "STATEMENT_S", 0.5)
    monkeypatch.setattr(connections, "RETRY_S", 0.1)
    monkeypatch.setattr(writer_module, "RETRY_S", 0.1)
    location = new_database(server)
    proxy = HoldingProxy(server.port)
    async with proxy.running() as address:
        store = PostgresStore(location.replace(f":{server.port}/", f":{urlsplit(address).port}/"))
        await store.open()
        await put(store, 1, 1)
        await store.read("s1")
        proxy.free.clear()
        began = asyncio.get_running_loop().time()
        waiting = [asyncio.create_task(append_all(store, [SessionWrite("s1", 1, facts(2, 2))]))]
        with pytest.raises(StoreUnreadable, match="the database does not answer"):
            await store.read("s1")
        with pytest.raises(StoreUnwritable):
            await waiting[0]
        assert 0.4 < asyncio.get_running_loop().time() - began < 2
        proxy.free.set()
        await asyncio.sleep(0.2)
        assert await put_when_possible(store, 1) == 2
        assert await store.read("s1") == numbered(1, 2)
        await store.aclose()


async def test_a_reader_that_gives_up_does_not_disturb_the_others(
    server: PostgresServer, location: str
) -> None:
    store = PostgresStore(location)
    await store.open()
    await put(store, 1, 3)
    for _ in range(20):
        tasks = [asyncio.create_task(store.read("s1")) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks[:3]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[3:] == [numbered(1, 3)] * 2
    await store.aclose()


async def test_a_standby_is_no_place_to_write(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = new_database(server)
    database = location.rpartition("/")[2]
    store = PostgresStore(location)
    await store.open()
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database
    )
    await asyncio.sleep(0.1)
    with pytest.raises(StoreUnwritable) as refused:
        await put(store, 1, 1)
    assert refused.value.reason.startswith("the server is a read-only standby; name the primary")
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = off")
    assert await put_when_possible(store, 0) == 1
    await store.aclose()


async def test_lost_commits_are_noticed(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover to a standby that had not received them."""
    location = new_database(server)
    store = PostgresStore(location)
    await store.open()
    await put(store, 1, 5)
    database = location.rpartition("/")[2]
    for statement in (
        "UPDATE arp_head SET last = 3",
        "DELETE FROM arp_fact",
    ):
        server.execute(statement, database=database)
    refused = await store.append([SessionWrite("s1", 5, facts(6, 6))])
    conflict = refused["s1"]
    assert isinstance(conflict, SequenceConflict)
    assert (conflict.expected, conflict.actual) == (5, 3)
    assert "session s1 has 3 facts, but 5 were acknowledged; another process has" in caplog.text
    await store.aclose()


async def test_a_fault_of_the_writer_does_not_end_it(
    server: PostgresServer, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(location)
    await store.open()
    monkeypatch.setattr(writer_module, "RETRY_S", 0.01)

    def broken(_: object) -> tuple[str, bytes]:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(AppendBatch, "parameters", broken)
        with pytest.raises(StoreError) as refused:
            await put(store, 1, 1)
    assert isinstance(refused.value, StoreUnwritable)
    assert await put_when_possible(store, 0) == 1
    await store.aclose()
