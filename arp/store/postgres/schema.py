"""The versions of the tables: creating, checking and upgrading them.

Each version is a file in `sql`, which is run once, in the order of versions, in one transaction.
`arp_meta` has the version of the tables and `min_version`: a program may use the tables if it knows
at least that version. So processes of two versions can run at the same time during an upgrade.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from arp.store.errors import StoreUnavailable
from arp.store.postgres.connections import Connection
from arp.store.store import new_runtime_id

log = logging.getLogger(__name__)

MIN_SERVER: Final = 13
"""Oldest major version of PostgreSQL that is accepted; older ones get no security fixes."""

_LOCK: Final = 0x4152_5031_0001
"""Key of the advisory lock that one process holds while it changes the tables."""

_TABLES: Final = (
    "arp_meta",
    "arp_head",
    "arp_fact",
    "arp_session",
    "arp_said",
    "arp_model",
    "arp_removal",
)

_META_COLUMNS: Final = {"is_only", "version", "min_version", "runtime_id"}

_SERVER: Final = """
    SELECT current_setting('server_encoding'), current_setting('server_version_num')::integer,
           pg_is_in_recovery()"""

_FOUND: Final = """
    SELECT t.name, (
        SELECT array_agg(a.attname::text) FROM pg_attribute AS a
        WHERE a.attrelid = to_regclass(t.name) AND a.attnum > 0 AND NOT a.attisdropped)
    FROM unnest(%s::text[]) AS t(name) WHERE to_regclass(t.name) IS NOT NULL"""

_META: Final = "SELECT version, min_version, runtime_id FROM arp_meta"


class TablesVersion(NamedTuple):
    """One version of the tables."""

    version: int
    min_version: int
    """A program may use these tables if the newest version that it knows is at least this one."""
    sql: str
    """Statements that make this version from the one before it."""


class TablesMeta(NamedTuple):
    """The row of `arp_meta`."""

    version: int
    min_version: int
    runtime_id: str


def _sql(name: str) -> str:
    return (files("arp.store.postgres") / "sql" / name).read_text(encoding="utf-8")


VERSIONS: Final = (TablesVersion(1, 1, _sql("001_ledger.sql")),)
"""All versions of the tables, oldest first. The last one is that of this program."""


async def prepare_tables(
    connection: Connection, shown: str, versions: Sequence[TablesVersion] = VERSIONS
) -> str:
    """Create the tables, or upgrade them, and return the id of the runtime.

    If several processes start at the same time, one of them makes the changes; the others wait.

    Args:
        connection: A connection without a transaction.
        shown: The location for messages.
        versions: Versions of the tables that this program knows.

    Raises:
        StoreUnavailable: The tables are those of another program or of a newer version. Or the
            server cannot store a ledger. Nothing changed.
        psycopg.Error: A statement failed. Nothing changed.
    """
    await _check_server(connection, shown)
    meta = await read_meta(connection, shown)
    if meta is None or meta.version < versions[-1].version:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Another process may have changed the tables while this one waited.
            meta = await read_meta(connection, shown)
            meta = await _upgrade(connection, meta, versions)
            log.info("ledger %s has tables of version %s", shown, meta.version)
    check_version(meta, shown, versions)
    return meta.runtime_id


async def read_meta(connection: Connection, shown: str) -> TablesMeta | None:
    """Return the row of `arp_meta`, or `None` if there are no tables.

    Raises:
        StoreUnavailable: There are tables of another program with the same names.
    """
    cursor = await connection.execute(_FOUND, (list(_TABLES),))
    found = {name: set(columns or ()) for name, columns in await cursor.fetchall()}
    if not found:
        return None
    row = None
    if found.get("arp_meta") == _META_COLUMNS:
        row = await (await connection.execute(_META)).fetchone()
    if row is None:
        raise StoreUnavailable(
            f"ledger {shown}: the database has a table {sorted(found)[0]} of another program; "
            "name another database"
        )
    return TablesMeta(*row)


def check_version(
    meta: TablesMeta, shown: str, versions: Sequence[TablesVersion] = VERSIONS
) -> None:
    """Check that this program may use the tables.

    Raises:
        StoreUnavailable: A newer version has upgraded them, and this one may not use them.
    """
    known = versions[-1].version
    if meta.min_version > known:
        raise StoreUnavailable(
            f"ledger {shown} was upgraded by a newer version (tables {meta.version}, this one "
            f"knows {known}); upgrade this program, or name another database"
        )


async def _check_server(connection: Connection, shown: str) -> None:
    row = await (await connection.execute(_SERVER)).fetchone()
    assert row is not None
    encoding, version, is_standby = row
    problem = ""
    if encoding != "UTF8":
        problem = f"its encoding is {encoding}; create one with ENCODING 'UTF8'"
    elif version < MIN_SERVER * 10_000:
        problem = f"its server is too old; upgrade it to PostgreSQL {MIN_SERVER} or newer"
    elif is_standby:
        problem = "its server is a read-only standby; name the primary"
    if problem:
        raise StoreUnavailable(f"ledger {shown}: the database cannot be used: {problem}")


async def _upgrade(
    connection: Connection, meta: TablesMeta | None, versions: Sequence[TablesVersion]
) -> TablesMeta:
    """Run the statements of the missing versions; see `prepare_tables`."""
    for one in versions:
        if meta is not None and meta.version >= one.version:
            continue
        await connection.execute(one.sql.encode())
        if meta is None:
            meta = TablesMeta(one.version, one.min_version, new_runtime_id())
            await connection.execute(
                "INSERT INTO arp_meta (version, min_version, runtime_id) VALUES (%s, %s, %s)", meta
            )
        else:
            meta = TablesMeta(one.version, one.min_version, meta.runtime_id)
            await connection.execute("UPDATE arp_meta SET version = %s, min_version = %s", meta[:2])
    assert meta is not None
    return meta
