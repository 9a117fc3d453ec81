"""Closing a store: it is limited in time, and every caller gets an outcome."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import urlsplit

import psycopg
import pytest

from arp.store.errors import StoreClosed, StoreDamaged, StoreUnreadable, StoreUnwritable
from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite
from tests.store.samples import facts, numbered, put
from tests.support.holding import HoldingProxy
from tests.support.postgres import PostgresServer

STOP_S = 3.5
"""Maximum time in seconds to close a store; `arp serve` has 4 s for everything after the turns."""


def write(session_id: str, expected: int = 0) -> SessionWrite:
    return SessionWrite(session_id, expected, facts(expected + 1, expected + 1, session_id))


async def test_a_caller_that_is_cancelled_does_not_disturb_the_closing(
    pg: PostgresStore, second: PostgresStore, location: str
) -> None:
    with psycopg.connect(location) as connection:
        connection.execute("LOCK TABLE arp_fact")
        calls = [pg.append([write("s1", number)]) for number in range(3)]
        closing = asyncio.create_task(pg.aclose())
        await asyncio.sleep(0.1)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
    async with asyncio.timeout(STOP_S):
        assert await asyncio.gather(*calls) == [{}] * 3
    assert await second.read("s1") == numbered(1, 3)
    with pytest.raises(StoreClosed):
        pg.append([write("s1", 3)])


async def test_closing_is_limited_while_the_server_does_not_answer(
    server: PostgresServer, location: str
) -> None:
    loop = asyncio.get_running_loop()
    proxy = HoldingProxy(server.port)
    async with proxy.running() as address:
        store = PostgresStore(location.replace(f":{server.port}/", f":{urlsplit(address).port}/"))
        await store.open()
        await put(store, 1, 1)
        proxy.free.clear()
        reads = [asyncio.create_task(store.read("s1")) for _ in range(5)]
        call = store.append([write("s1", 1)])
        deletion = asyncio.create_task(store.delete("s2"))
        await asyncio.sleep(0.1)
        later = store.append([write("s3")])
        began = loop.time()
        await store.aclose()
        assert loop.time() - began < STOP_S
        for one in (call, deletion, later):
            with pytest.raises(StoreUnwritable):
                await one
        for read in reads:
            with pytest.raises(StoreUnreadable):
                await read
        proxy.free.set()


async def test_closing_is_limited_while_it_connects(server: PostgresServer, location: str) -> None:
    """The connection was lost, and a new one gets no answer."""
    loop = asyncio.get_running_loop()
    proxy = HoldingProxy(server.port)
    async with proxy.running() as address:
        store = PostgresStore(location.replace(f":{server.port}/", f":{urlsplit(address).port}/"))
        await store.open()
        proxy.free.clear()
        read = asyncio.create_task(store.read("s1"))
        await asyncio.sleep(0.2)
        began = loop.time()
        await store.aclose()
        assert loop.time() - began < STOP_S
        with pytest.raises(StoreUnreadable):
            await read
        proxy.free.set()


async def test_a_store_that_is_opened_again_knows_nothing_about_earlier_damage(
    pg: PostgresStore, location: str
) -> None:
    await put(pg, 1, 3)
    with psycopg.connect(location) as connection:
        connection.execute("UPDATE arp_fact SET crc = crc + 1")
    with pytest.raises(StoreDamaged):
        await pg.read("s1")
    assert list(await pg.append([write("s1", 3)])) == ["s1"]
    await pg.aclose()
    with psycopg.connect(location) as connection:
        connection.execute("UPDATE arp_fact SET crc = crc - 1")
    await pg.open()
    assert await pg.append([write("s1", 3)]) == {}


async def test_closing_twice_is_harmless(
    pg: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    await asyncio.gather(pg.aclose(), pg.aclose())
    await pg.aclose()
    assert caplog.records == []
