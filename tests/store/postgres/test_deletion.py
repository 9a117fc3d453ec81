"""Deleting a session while another process writes to it."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from arp.store.errors import SequenceConflict, StoreUnwritable
from arp.store.postgres.store import PostgresStore
from tests.store.samples import numbered, put

PAUSE = """
    CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
    CREATE TRIGGER pause AFTER DELETE ON arp_fact FOR EACH STATEMENT EXECUTE FUNCTION pause()"""
"""Pauses `arp_delete_v1` after its first statement that deletes."""


async def test_a_new_session_is_not_lost_by_a_deletion_that_began_before_it(
    pg: PostgresStore, second: PostgresStore, location: str
) -> None:
    """The deletion locks the head also if the session does not exist yet."""
    with psycopg.connect(location) as connection:
        connection.execute(PAUSE.encode())
    deletion = asyncio.create_task(second.delete("s1"))
    await asyncio.sleep(0.2)
    await put(pg, 1, 2)
    assert await deletion is False
    assert await pg.read("s1") == numbered(1, 2)
    await put(pg, 3, 3)
    assert await pg.read("s1") == numbered(1, 3)


async def test_a_deletion_of_nothing_leaves_no_row_behind(pg: PostgresStore, location: str) -> None:
    assert await pg.delete("s1") is False
    with psycopg.connect(location) as connection:
        assert connection.execute("SELECT * FROM arp_head").fetchall() == []


async def test_a_deletion_waits_for_an_append_that_creates_the_session(
    pg: PostgresStore, second: PostgresStore
) -> None:
    for _ in range(20):
        appended, deleted = await asyncio.gather(
            put(pg, 1, 1), second.delete("s1"), return_exceptions=True
        )
        assert not isinstance(appended, SequenceConflict)
        assert await pg.read("s1") == ([] if deleted else numbered(1, 1))
        await pg.delete("s1")


async def test_an_id_that_is_too_long_to_be_stored_has_nothing_to_delete(
    pg: PostgresStore,
) -> None:
    assert await pg.delete("x" * 5000) is False


async def test_a_deletion_by_another_process_is_one_of_the_causes_that_are_logged(
    pg: PostgresStore, second: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    await put(pg, 1, 2)
    assert await second.delete("s1")
    with pytest.raises(SequenceConflict):
        await put(pg, 3, 3)
    assert "session s1 has 0 facts, but 2 were acknowledged; another process has deleted it" in (
        caplog.text
    )


async def test_an_own_deletion_of_unknown_outcome_is_no_loss(
    pg: PostgresStore, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    await put(pg, 1, 2)
    with psycopg.connect(location) as connection:
        connection.execute(
            "CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';"
            "CREATE TRIGGER break_off AFTER DELETE ON arp_fact EXECUTE FUNCTION break_off()"
        )
    with pytest.raises(StoreUnwritable):
        await pg.delete("s1")
    with psycopg.connect(location) as connection:
        # As if the server had committed before the connection was lost.
        connection.execute("DROP TRIGGER break_off ON arp_fact")
        connection.execute("SELECT arp_delete_v1('s1')")
    await asyncio.sleep(1.1)
    with pytest.raises(SequenceConflict):
        await put(pg, 3, 3)
    assert "were acknowledged" not in caplog.text
