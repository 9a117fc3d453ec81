"""Which ledger a target has where nobody names one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arp.store.location import MAX_NAME, SHARED, default_ledger, ledger_of, ledger_to_read
from tests.commands.ledgers import ledger

OWN = Path(".arp/app.db")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("app.py", "app.db"),
        ("./app.py", "app.db"),
        ("demos/../app.py", "app.db"),
        ("app", "app.db"),
        ("app.py:app", "app.db"),
        ("app.py:sales", "app-sales.db"),
        ("app:sales", "app-sales.db"),
        ("demos/app.py", "demos-app.db"),
        ("demos.app", "demos-app.db"),
        ("my agent (2).py", "my_agent_2_.db"),
        ("läden.py", "läden.db"),
        ("v1.2.py", "v1.2.db"),
        (".hidden.py", "hidden.db"),
    ],
)
def test_a_target_has_a_file_of_its_own_however_it_is_written(target: str, name: str) -> None:
    assert ledger_of(target) == Path(".arp", name)


def test_an_absolute_path_is_the_same_target(place: Path) -> None:
    assert ledger_of(str(place / "demos" / "app.py")) == Path(".arp/demos-app.db")


def test_files_elsewhere_have_different_ledgers_though_they_are_called_the_same(
    place: Path,
) -> None:
    (place / "here").mkdir()
    os.chdir(place / "here")
    one, other = ledger_of("../one/app.py"), ledger_of("../other/app.py")
    assert one != other
    assert (one.parent, one.name[:4], len(one.stem)) == (Path(".arp"), "app-", len("app-") + 8)
    assert ledger_of(str(place / "one" / "app.py")) == one


def test_a_long_name_is_cut_and_still_the_targets_own() -> None:
    one, other = ledger_of("x" * 300 + "1.py"), ledger_of("x" * 300 + "2.py")
    assert one != other
    assert len(one.stem) == MAX_NAME


def test_without_the_shared_file_the_own_one_is_used() -> None:
    assert default_ledger("app.py", ["agent"]) == OWN


def test_sessions_in_the_shared_file_of_earlier_versions_are_still_found() -> None:
    """They are of `agent`: another app does not get that file."""
    ledger(SHARED, "s")
    assert default_ledger("app.py", ["helper", "agent"]) == SHARED
    assert default_ledger("app.py", ["sales"]) == OWN


def test_a_file_with_the_own_name_counts_for_more_than_the_shared_one() -> None:
    ledger(SHARED, "s")
    ledger(OWN, "t")
    assert default_ledger("app.py", ["agent"]) == OWN


@pytest.mark.parametrize(("content", "used"), [(b"", OWN), (b"no database", SHARED)])
def test_a_shared_file_that_cannot_be_read_is_left_to_the_server_to_refuse(
    content: bytes, used: Path
) -> None:
    """An empty one is none: a server was killed as it started."""
    SHARED.parent.mkdir()
    SHARED.write_bytes(content)
    assert default_ledger("app.py", ["agent"]) == used


@pytest.mark.parametrize("location", ["app.py", "app.py:app", "./app.py"])
def test_a_target_names_the_ledger_to_read(location: str) -> None:
    assert ledger_to_read(location) == f"sqlite:{OWN}"
    ledger(SHARED, "s")
    assert ledger_to_read(location) == f"sqlite:{SHARED}"
    ledger(OWN, "t")
    assert ledger_to_read(location) == f"sqlite:{OWN}"


def test_a_module_names_the_ledger_to_read_once_it_has_one() -> None:
    assert ledger_to_read("app") == "app"
    ledger(OWN, "t")
    assert ledger_to_read("app") == f"sqlite:{OWN}"
    Path("app").touch()
    assert ledger_to_read("app") == "app"


@pytest.mark.parametrize("location", ["memory:", "sqlite:app.py", "x.db", "sqlite:.arp/app.db"])
def test_any_other_place_stays_as_it_is(location: str) -> None:
    assert ledger_to_read(location) == location
