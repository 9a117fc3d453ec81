"""Rows that were changed or lost: only their session suffers."""

from __future__ import annotations

import psycopg
import pytest

from arp.store.errors import FactUnreadable, StoreDamaged, StoreUnavailable
from arp.store.postgres.store import PostgresStore
from arp.store.store import SessionWrite
from tests.store.samples import MALFORMED, facts, meta, numbered, put, slip_in


@pytest.fixture
async def three(pg: PostgresStore) -> PostgresStore:
    """A store with the sessions `s1` and `b`, each with three rows of three facts."""
    for first in (1, 4, 7):
        await put(pg, first, first + 2)
        await put(pg, first, first + 2, "b")
    return pg


def change(location: str, statement: str) -> None:
    with psycopg.connect(location) as connection:
        assert connection.execute(statement.encode()).rowcount == 1


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("UPDATE arp_fact SET facts = '{}' WHERE session = 's1' AND first = 4", 3),
        ("UPDATE arp_fact SET crc = crc + 1 WHERE session = 's1' AND first = 4", 3),
        ("UPDATE arp_fact SET last = 7 WHERE session = 's1' AND first = 4", 3),
        ("DELETE FROM arp_fact WHERE session = 's1' AND first = 4", 3),
        ("DELETE FROM arp_fact WHERE session = 's1' AND first = 1", 0),
        ("DELETE FROM arp_fact WHERE session = 's1' AND first = 7", 6),
    ],
)
async def test_a_damaged_session_is_read_up_to_the_damage(
    three: PostgresStore, location: str, statement: str, after: int
) -> None:
    change(location, statement)
    if after:
        assert await three.read("s1") == numbered(1, after)
    for start in (after, after + 1, after + 2):
        with pytest.raises(StoreDamaged) as damaged:
            await three.read("s1", start)
        assert damaged.value.after == start
    if after < 6:
        assert await three.read("s1", after + 3) == numbered(after + 4, 9)
    assert await three.read("b") == numbered(1, 9, "b")


async def test_nothing_is_appended_to_a_session_whose_damage_was_found(
    three: PostgresStore, location: str
) -> None:
    change(location, "UPDATE arp_fact SET facts = '{}' WHERE session = 's1' AND first = 7")
    with pytest.raises(StoreDamaged):
        await three.read("s1", 6)
    refused = await three.append(
        [SessionWrite("s1", 9, facts(10, 10)), SessionWrite("b", 9, facts(10, 10, "b"))]
    )
    assert list(refused) == ["s1"]
    assert isinstance(refused["s1"], StoreDamaged)
    assert await three.read("b", 9) == numbered(10, 10, "b")
    assert await three.delete("s1") is True
    await put(three, 1, 1)
    assert await three.read("s1") == numbered(1, 1)


async def test_a_session_that_was_restored_can_be_written_again(
    three: PostgresStore, location: str
) -> None:
    change(location, "UPDATE arp_fact SET crc = crc + 1 WHERE session = 's1' AND first = 7")
    with pytest.raises(StoreDamaged):
        await three.read("s1", 6)
    change(location, "UPDATE arp_fact SET crc = crc - 1 WHERE session = 's1' AND first = 7")
    assert await three.read("s1", 6) == numbered(7, 9)
    await put(three, 10, 10)


async def test_an_unreadable_fact_does_not_stop_the_writing(three: PostgresStore) -> None:
    await slip_in(three, "s1", 9, MALFORMED)
    with pytest.raises(FactUnreadable):
        await three.read("s1", 9)
    await put(three, 11, 11)


async def test_a_damaged_row_of_the_list_is_an_error_of_the_list(
    pg: PostgresStore, location: str
) -> None:
    await pg.append([SessionWrite("s1", 0, facts(1, 1), meta("s1"))])
    change(location, "UPDATE arp_session SET meta = '{'")
    with pytest.raises(StoreUnavailable, match="a row is damaged; restore it from a backup"):
        await pg.sessions()
    assert await pg.read("s1") == numbered(1, 1)


async def test_a_damaged_model_is_not_returned(pg: PostgresStore, location: str) -> None:
    await put(pg, 1, 5)
    await pg.save_model("s1", "thread", 5, b"all five")
    change(location, "UPDATE arp_model SET data = 'a'")
    assert await pg.load_model("s1", "thread") == (5, b"")
    await pg.save_model("s1", "thread", 5, b"rebuilt")
    assert await pg.load_model("s1", "thread") == (5, b"rebuilt")
