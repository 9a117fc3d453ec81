"""What a location may be, and that it never shows a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.store.errors import StoreUnavailable
from arp.store.location import ledger_to_read, logins_of, password_of, path_of, tokens_of
from arp.store.postgres.location import PostgresLocation


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGOPTIONS", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


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
            "postgresql://db/arp",
            {"host": "db", "dbname": "arp"},
        ),
        (
            "postgresql://ann:p@ss@[::1]/a%20b",
            "postgresql://[::1]/a%20b",
            {"user": "ann", "password": "p@ss", "host": "::1", "dbname": "a b"},
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
            "postgresql://%2Frun%2Fpostgresql/arp",
            {
                "host": "/run/postgresql",
                "dbname": "arp",
                "password": "secret",
            },
        ),
        ("postgresql:///arp", "postgresql:///arp", {"dbname": "arp"}),
        ("postgresql://:5433/arp", "postgresql://:5433/arp", {"port": "5433", "dbname": "arp"}),
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
    assert tokens_of("postgresql:///arp") == Path(".arp/local-5432-arp.tokens")
    assert password_of(location) == "hunter2"
    assert ledger_to_read(location) == location


def test_files_of_different_databases_have_different_names() -> None:
    databases = ["a b", "a-b", "a_b", "a%26b", "é", "A-b", "x" * 300, "x" * 299, "a.b", ".a"]
    names = {str(path_of(f"postgresql://db/{name}")) for name in databases}
    assert len(names) == len(databases)
    assert all(len(name) < 100 for name in names)


def test_files_of_different_ledgers_have_different_names() -> None:
    """Ledgers that share a name would share tokens, logins and files of sessions."""
    cases: list[tuple[str, dict[str, str]]] = [
        ("postgresql:///arp", {}),
        ("postgresql://:5433/arp", {}),
        ("postgresql:///arp?port=5434", {}),
        ("postgresql:///arp", {"PGPORT": "5435"}),
        ("postgresql:///arp", {"PGHOST": "db.example.com"}),
        ("postgresql:///arp", {"PGHOST": "/run/other"}),
        ("postgresql:///arp", {"PGHOST": "/run/Other"}),
        ("postgresql:///arp", {"PGHOSTADDR": "192.0.2.1"}),
        ("postgresql:///arp?hostaddr=192.0.2.2", {}),
        ("postgresql:///arp?service=one", {}),
        ("postgresql:///arp", {"PGSERVICE": "two"}),
        ("postgresql:///arp?host=/run/a", {}),
        ("postgresql:///arp?host=/run-a", {}),
        ("postgresql:///arp?options=-csearch_path%3Done", {}),
        ("postgresql:///arp?options=-c%20search_path%3Dtwo", {}),
        ("postgresql:///arp?options=--search_path%3Dthree", {}),
        ("postgresql:///arp", {"PGOPTIONS": "-c search_path=four"}),
        ("postgresql:///arp-one", {}),
        ("postgresql://db/5432-arp", {}),
        ("postgresql://db-5432/arp", {}),
        ("postgresql://[::1]/arp", {}),
        ("postgresql://1/arp", {}),
    ]
    stems = set()
    for location, environment in cases:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            stems.add(PostgresLocation(location).file_stem)
    assert len(stems) == len(cases)


def test_the_name_of_the_files_does_not_change_with_what_is_not_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A standby that is added after the first host, an account, an equal port."""
    expected = path_of("postgresql://one:6432/arp")
    for location in (
        "postgresql://one:6432,two:6433/arp?target_session_attrs=read-write",
        "postgresql:///arp?host=one,two&port=6432,6433",
        "postgresql://ann@ONE:6432/arp?options=-cstatement_timeout%3D9",
        "postgresql:///arp?host=one&port=6432",
    ):
        assert path_of(location) == expected
    monkeypatch.setenv("PGHOST", "one")
    monkeypatch.setenv("PGPORT", "6432")
    assert path_of("postgresql:///arp") == expected
    assert path_of("postgresql://one:6432/arp") == expected
    options = "options=-csearch_path%3Da%20-csearch_path%3Db"
    assert path_of(f"postgresql:///arp?{options}") == path_of(
        "postgresql:///arp?options=-csearch_path%3Db"
    )
