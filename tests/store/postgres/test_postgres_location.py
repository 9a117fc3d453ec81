"""What a location may be, and that it never shows a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.store.errors import StoreUnavailable
from arp.store.location import ledger_to_read, logins_of, password_of, path_of, tokens_of
from arp.store.postgres.location import PostgresLocation


@pytest.mark.parametrize(
    ("location", "shown", "parameters"),
    [
        (
            "postgresql://ann:se%40cret@db.example.com:6432/arp?sslmode=verify-full",
            "postgresql://db.example.com:6432/arp",
            {
                "user": "ann",
                "password": "se@cret",
                "host": "db.example.com",
                "port": "6432",
                "dbname": "arp",
                "sslmode": "verify-full",
            },
        ),
        (
            "Postgres://DB/arp",
            "postgresql://db:5432/arp",
            {"host": "db", "port": "5432", "dbname": "arp"},
        ),
        (
            "postgresql://ann:p@ss@[::1]/a%20b",
            "postgresql://[::1]:5432/a%20b",
            {"user": "ann", "password": "p@ss", "host": "::1", "port": "5432", "dbname": "a b"},
        ),
        (
            "postgresql://one,two:5433/arp?target_session_attrs=read-write",
            "postgresql://one:5432,two:5433/arp",
            {
                "host": "one,two",
                "port": "5432,5433",
                "dbname": "arp",
                "target_session_attrs": "read-write",
            },
        ),
        (
            "postgresql:///arp?host=/run/postgresql&password=secret",
            "postgresql://%2Frun%2Fpostgresql:5432/arp",
            {
                "host": "/run/postgresql",
                "port": "5432",
                "dbname": "arp",
                "password": "secret",
            },
        ),
        ("postgresql:///arp", "postgresql:///arp", {"port": "5432", "dbname": "arp"}),
    ],
)
def test_a_location_is_shown_without_its_account(
    location: str, shown: str, parameters: dict[str, str]
) -> None:
    parsed = PostgresLocation(location)
    assert parsed.shown == shown
    assert parsed.parameters == parameters
    assert repr(parsed) == f"PostgresLocation({shown!r})"


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://ann:hunter2@host:port/arp",
        "postgresql://ann:hunter2@host:0/arp",
        "postgresql://ann:hunter2@host:99999/arp",
        "postgresql://ann:hunter2@host",
        "postgresql://ann:hunter2@host/",
        "postgresql://ann:hunter2%zz@host/arp",
        "postgresql://ann:hunter2%00@host/arp",
        "postgresql://ann:hunter2%ff@host/arp",
        "postgresql://ann:hunter2@[::1/arp",
        "postgresql://ann:12/hunter2@host/arp",
        "postgresql://ann:12?hunter2@host/arp",
        "postgresql://ann:hunter2@host/arp?hunter2",
        "postgresql://ann:hunter2@host/arp?port=hunter2",
        "postgresql://ann:hunter2@host/arp?port=1,2,3",
        "postgresql:ann:hunter2@host/arp",
        "postgresql://ann:1/2@host:1/hunter2",
    ],
)
def test_a_malformed_location_is_refused_without_quoting_it(location: str) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        PostgresLocation(location)
    message = str(refused.value)
    assert message.startswith("the location of the ledger is not valid: ")
    assert "hunter2" not in message
    assert "ann" not in message
    assert password_of(location) == ""


def test_another_driver_is_refused_by_its_kind_alone() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        path_of("postgresql+asyncpg://ann:hunter2@host/arp")
    assert str(refused.value) == (
        "no ledger of kind 'postgresql+asyncpg:'; use sqlite:PATH, postgresql://… or memory:"
    )


def test_files_of_a_ledger_have_a_name_without_credentials() -> None:
    location = "postgresql://ann:hunter2@db.example.com:6432/arp"
    assert tokens_of(location) == Path(".arp/db.example.com-6432-arp.tokens")
    assert logins_of(location) == Path(".arp/db.example.com-6432-arp.logins")
    assert tokens_of("postgres://bob@DB.example.com:6432/arp?sslmode=require") == tokens_of(
        location
    )
    assert tokens_of("postgresql:///arp") == Path(".arp/local-arp.tokens")
    assert password_of(location) == "hunter2"
    assert ledger_to_read(location) == location


def test_files_of_different_databases_have_different_names() -> None:
    databases = ["a b", "a-b", "a_b", "a%26b", "é", "A-b", "x" * 300, "x" * 299, "a.b", ".a"]
    names = {str(path_of(f"postgresql://db/{name}")) for name in databases}
    assert len(names) == len(databases)
    assert all(len(name) < 100 for name in names)
