"""An error that one session causes does not refuse the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from arp.store.errors import InvalidWrite, SequenceConflict, StoreDamaged, StoreUnwritable
from arp.store.postgres import writer as writer_module
from arp.store.postgres.append_batch import AppendBatch
from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite
from tests.store.samples import facts, numbered, put


def write(session_id: str, expected: int = 0) -> SessionWrite:
    return SessionWrite(session_id, expected, facts(expected + 1, expected + 1, session_id))


def change(location: str, statement: str) -> None:
    with psycopg.connect(location) as connection:
        connection.execute(statement.encode())


async def put_three(store: PostgresStore, session_id: str) -> None:
    """Append three facts, each in its own row."""
    for number in (1, 2, 3):
        await put(store, number, number, session_id)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("UPDATE arp_head SET last = 2 WHERE session = 'bad'", 2),
        ("DELETE FROM arp_head WHERE session = 'bad'", 0),
    ],
)
async def test_a_session_with_a_damaged_head_is_refused_alone(
    pg: PostgresStore, location: str, damage: str, expected: int
) -> None:
    await put_three(pg, "bad")
    change(location, damage)
    for number in range(3):
        outcomes = await asyncio.gather(
            pg.append([write("a", number), write("bad", expected)]), pg.append([write("b", number)])
        )
        assert [list(refused) for refused in outcomes] == [["bad"], []]
        assert isinstance(outcomes[0]["bad"], StoreDamaged)
    assert await pg.read("a") == numbered(1, 3, "a")
    assert await pg.read("b") == numbered(1, 3, "b")
    assert await pg.delete("bad")
    assert await pg.append([write("bad")]) == {}


async def test_a_lock_on_one_session_does_not_stop_the_others(
    pg: PostgresStore, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "SUSPECT_S", 1.0)
    await put(pg, 1, 1, "held")
    loop = asyncio.get_running_loop()
    longest = 0.0
    with psycopg.connect(location) as connection:
        connection.execute("SELECT 1 FROM arp_head WHERE session = 'held' FOR UPDATE")
        began = loop.time()
        number = 0
        while loop.time() - began < 4:
            at = loop.time()
            held = pg.append([write("held", 1), write("held", 2)])
            assert await pg.append([write("free", number)]) == {}
            longest = max(longest, loop.time() - at)
            number += 1
            refused = await held
            assert isinstance(refused["held"], StoreUnwritable)
            assert "another transaction holds a lock" in refused["held"].reason
    assert longest < 2.5
    assert number > 10
    async with asyncio.timeout(5):
        while await pg.append([write("held", 1)]):  # noqa: ASYNC110 - the store reports no event
            await asyncio.sleep(0.05)
    assert await pg.read("held") == numbered(1, 2, "held")


async def test_a_unit_is_refused_whole_and_only_it(pg: PostgresStore, location: str) -> None:
    await put_three(pg, "bad")
    change(location, "UPDATE arp_head SET last = 2 WHERE session = 'bad'")
    refused = await pg.append([write("a"), write("bad", 2), write("b")], [frozenset({"a", "bad"})])
    assert sorted(refused) == ["a", "bad"]
    assert all(isinstance(error, StoreUnwritable) for error in refused.values())
    assert await pg.read("a") == []
    assert await pg.read("b") == numbered(1, 1, "b")


async def test_later_writes_to_a_refused_session_are_refused_too(
    pg: PostgresStore, location: str
) -> None:
    await put_three(pg, "bad")
    change(location, "UPDATE arp_head SET last = 2 WHERE session = 'bad'")
    calls = [pg.append([write("bad", 2 + number)]) for number in range(3)]
    calls += [pg.append([write("good", number)]) for number in range(3)]
    outcomes = await asyncio.gather(*calls)
    assert [list(refused) for refused in outcomes] == [["bad"]] * 3 + [[]] * 3
    assert isinstance(outcomes[0]["bad"], StoreDamaged)


async def test_a_number_that_is_too_large_is_an_invalid_write(pg: PostgresStore) -> None:
    huge = pg.append([SessionWrite("huge", 2**63 - 1, [b"{}"])])
    good = pg.append([write("good")])
    assert isinstance((await huge)["huge"], (InvalidWrite, SequenceConflict))
    assert await good == {}


async def test_a_deletion_that_waits_for_a_lock_fails_alone(
    pg: PostgresStore, location: str
) -> None:
    await put(pg, 1, 1, "held")
    with psycopg.connect(location) as connection:
        connection.execute("SELECT 1 FROM arp_head WHERE session = 'held' FOR UPDATE")
        deletion = asyncio.create_task(pg.delete("held"))
        await asyncio.sleep(0)
        free = pg.append([write("free")])
        with pytest.raises(StoreUnwritable, match="another transaction holds a lock"):
            await deletion
        assert await free == {}
    assert await pg.delete("held")


@pytest.mark.parametrize("name", ["__init__", "parameters", "apply_refusals", "stored"])
async def test_a_fault_in_any_step_of_an_append_reaches_its_caller(
    pg: PostgresStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The task of the writer continues, so that no caller waits for ever."""
    monkeypatch.setattr(writer_module, "RETRY_S", 0.01)
    monkeypatch.setattr(writer_module, "SUSPECT_S", 0.01)
    original: Callable[..., Any] = getattr(AppendBatch, name)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(AppendBatch, name, broken)
    async with asyncio.timeout(5):
        with pytest.raises(StoreUnwritable, match="fault in the writer"):
            await put(pg, 1, 1)
        monkeypatch.setattr(AppendBatch, name, original)
        await asyncio.sleep(0.05)
        await put(pg, 1, 1, "other")
