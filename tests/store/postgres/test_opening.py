"""Opening a ledger: each failure is one sentence that says what to do, without credentials."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from arp.store.errors import StoreClosed, StoreUnavailable
from arp.store.location import open_store
from arp.store.postgres.store import PostgresStore
from tests.store.samples import numbered, put
from tests.support.postgres import PASSWORD, PostgresServer, free_port, new_database

SECRET = "hunter2:/@?#%&"


async def refusal(location: str) -> str:
    """Return why a store is not opened."""
    store = PostgresStore(location)
    with pytest.raises(StoreUnavailable) as refused:
        await store.open()
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    await store.aclose()
    return str(refused.value)


def assert_without_credentials(text: str) -> None:
    for secret in (PASSWORD, quote(PASSWORD, safe=""), SECRET, quote(SECRET, safe=""), "hunter2"):
        assert secret not in text


async def test_a_wrong_password_is_never_shown(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    database = "postgres"
    message = await refusal(server.location(database, password=SECRET))
    assert message == (
        f"ledger postgresql://127.0.0.1:{server.port}/{database}: the server refuses the user or "
        "the password; correct the location"
    )
    assert await refusal(server.location(database, user="nobody", password=SECRET)) == message
    assert_without_credentials(message + caplog.text)


async def test_a_database_that_does_not_exist_is_named(server: PostgresServer) -> None:
    assert await refusal(server.location("absent")) == (
        f"ledger postgresql://127.0.0.1:{server.port}/absent: the database does not exist; "
        "create it with CREATE DATABASE"
    )


async def test_a_server_that_cannot_be_reached_is_named(server: PostgresServer) -> None:
    port = free_port()
    message = await refusal(f"postgresql://ann:hunter2@127.0.0.1:{port}/arp")
    assert message == (
        f"ledger postgresql://127.0.0.1:{port}/arp: no server listens there; start it, or correct "
        "the host and the port"
    )
    for host in ("host.invalid", "a..b", "x" * 70):
        message = await refusal(f"postgresql://ann:hunter2@{host}/arp")
        assert message.endswith("the name of the host is not known; correct it")


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ("hunter2=1", "a parameter after the ? of the location is not known to libpq"),
        ("connect_timeout=hunter2", "a parameter after the ? of the location has a wrong value"),
        ("service=hunter2", "a parameter after the ? of the location has a wrong value"),
        ("sslmode=hunter2", "a parameter after the ? of the location has a wrong value"),
        ("sslmode=require", "TLS failed; check sslmode, sslrootcert and the certificate"),
    ],
)
async def test_wrong_parameters_are_explained(location: str, parameter: str, reason: str) -> None:
    message = await refusal(f"{location}&{parameter}")
    assert f": {reason}" in message
    assert_without_credentials(message)


async def test_a_user_without_the_right_to_create_tables(server: PostgresServer) -> None:
    location = new_database(server)
    database = location.rpartition("/")[2]
    server.execute("DROP ROLE IF EXISTS guest")
    server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database=database)
    guest = server.location(database, user="guest", password="guest")
    message = await refusal(guest)
    assert ": the user has no right to do this; run GRANT CREATE" in message
    owner = PostgresStore(location)
    await owner.open()
    assert "the user has no right to do this" in await refusal(guest)
    # Rights to the tables are enough once they exist.
    server.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest", database=database)
    server.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO guest", database=database)
    store = PostgresStore(guest)
    await store.open()
    await put(store, 1, 2)
    assert await owner.read("s1") == numbered(1, 2)
    await store.aclose()
    await owner.aclose()
    server.execute("DROP OWNED BY guest", database=database)


async def test_a_database_in_another_encoding_is_refused(server: PostgresServer) -> None:
    location = new_database(server, "ENCODING 'LATIN1' LOCALE 'C'")
    assert "its encoding is LATIN1; create one with ENCODING 'UTF8'" in await refusal(location)


async def test_a_read_only_store_needs_a_ledger_and_changes_nothing(location: str) -> None:
    reader = PostgresStore(location, read_only=True)
    with pytest.raises(StoreUnavailable, match="the database has no ledger"):
        await reader.open()
    writer = PostgresStore(location)
    await writer.open()
    await put(writer, 1, 3)
    await reader.open()
    assert await reader.read("s1") == numbered(1, 3)
    await put(writer, 4, 4)
    assert await reader.refresh()
    assert await reader.read("s1", 3) == numbered(4, 4)
    with pytest.raises(StoreClosed):
        await put(reader, 5, 5)
    with pytest.raises(StoreClosed):
        await reader.raise_fence("s1")
    await reader.aclose()
    await writer.aclose()


async def test_two_stores_have_the_same_runtime(pg: PostgresStore, second: PostgresStore) -> None:
    assert await pg.runtime_id() == await second.runtime_id()


def test_nothing_shows_the_password(location: str) -> None:
    store = open_store(location)
    assert isinstance(store, PostgresStore)
    assert_without_credentials(f"{store!r} {store.shown} {vars(store)!r}")


def test_without_the_extra_one_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from arp.store.location import open_store\n"
        "from arp.store.errors import StoreUnavailable\n"
        "try: open_store('postgresql://ann:hunter2@host/arp')\n"
        "except StoreUnavailable as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "a ledger in PostgreSQL needs psycopg, which is not installed here; run: "
        "pip install 'agent-rendering-protocol[postgres]'\n"
    )


async def test_stores_that_open_at_the_same_time_create_one_ledger(location: str) -> None:
    stores = [PostgresStore(location) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({await store.runtime_id() for store in stores}) == 1
    for store in stores:
        await store.aclose()
