"""Connections: their parameters, their server, and what the network does to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from arp.store.errors import StoreUnavailable, StoreUnwritable
from arp.store.postgres import connections
from arp.store.postgres.connections import Connection, PostgresConnections
from arp.store.postgres.errors import DatabaseAway
from arp.store.postgres.location import PostgresLocation
from arp.store.postgres.store import PostgresStore
from tests.store.samples import numbered, put
from tests.support.holding import HoldingProxy
from tests.support.postgres import PASSWORD, USER, PostgresServer, new_database


async def parameters_of(location: str) -> dict[str, str]:
    """Return the parameters of a connection as libpq reports them."""
    one = PostgresConnections(PostgresLocation(location), 1)

    async def report(connection: Connection) -> dict[str, str]:
        return connection.info.get_parameters()

    try:
        return await one.run(report)
    finally:
        await one.aclose()


async def test_a_dropped_connection_is_noticed_within_the_limit_of_a_statement(
    location: str,
) -> None:
    found = await parameters_of(location)
    assert found["application_name"] == "arp"
    idle, interval, count = (
        int(found[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    assert idle + interval * count <= 30
    assert int(found["tcp_user_timeout"]) < connections.STATEMENT_S * 1000


async def test_what_the_location_says_holds(location: str) -> None:
    own = {
        "application_name": "mine",
        "connect_timeout": "77",
        "keepalives_idle": "7",
        "tcp_user_timeout": "77",
        "target_session_attrs": "primary",
    }
    text = "&".join(f"{name}={value}" for name, value in own.items())
    found = await parameters_of(f"{location}&{text}")
    assert {name: found[name] for name in own} == own


async def test_what_the_environment_says_holds(
    server: PostgresServer, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGAPPNAME", "mine")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "77")
    found = await parameters_of(location.replace(f":{server.port}/", "/"))
    assert found["port"] == str(server.port)
    assert found["application_name"] == "mine"
    assert "connect_timeout" not in found or found["connect_timeout"] == "77"


async def test_the_port_of_a_service_holds(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "services"
    file.write_text(f"[ledger]\nhost=127.0.0.1\nport={server.port}\napplication_name=mine\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGUSER", USER)
    found = await parameters_of("postgresql:///postgres?service=ledger")
    assert (found["port"], found["application_name"]) == (str(server.port), "mine")


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [("1", 5), ("60", 121), ("0", float("inf")), ("hunter2", 11)],
)
def test_the_time_to_connect_is_that_of_the_location(text: str, limit_s: float) -> None:
    assert connections._connect_limit_s({"host": "a", "connect_timeout": text}) == limit_s
    assert connections._connect_limit_s({"host": "a,b"}) == 21


async def test_every_connection_is_to_a_server_that_accepts_writes(
    server: PostgresServer,
) -> None:
    """The check when the tables were prepared does not cover a server that changes later."""
    location = new_database(server)
    database = location.rpartition("/")[2]
    store = PostgresStore(location)
    await store.open()
    await put(store, 1, 1)
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    reader = PostgresConnections(PostgresLocation(location), 1)
    with pytest.raises(DatabaseAway, match="read-only standby"):
        await reader.run(connections._check)
    # A store that only reads accepts a standby.
    reading = PostgresStore(location, read_only=True)
    await reading.open()
    assert await reading.read("s1") == numbered(1, 1)
    await reading.aclose()
    with pytest.raises(StoreUnavailable, match="read-only standby"):
        await PostgresStore(location).open()
    await store.aclose()


async def test_a_connection_that_the_network_dropped_delays_a_write_by_a_second(
    server: PostgresServer, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network passes nothing on, as after the time limit of a NAT; new connections work."""
    monkeypatch.setattr(connections, "IDLE_S", 0.1)
    loop = asyncio.get_running_loop()
    proxy = HoldingProxy(server.port)
    async with proxy.running() as address:
        store = PostgresStore(location.replace(f":{server.port}/", f":{urlsplit(address).port}/"))
        await store.open()
        await put(store, 1, 1)
        await asyncio.gather(*(store.read("s1") for _ in range(3)))
        await asyncio.sleep(0.2)
        await put(store, 2, 2)  # the check succeeds
        await asyncio.sleep(0.2)
        old = proxy.free
        old.clear()
        proxy.free = asyncio.Event()
        proxy.free.set()
        began = loop.time()
        try:
            await put(store, 3, 3)
        except StoreUnwritable as error:
            pytest.fail(error.reason)
        assert await store.read("s1") == numbered(1, 3)
        assert loop.time() - began < 4
        await store.aclose()
