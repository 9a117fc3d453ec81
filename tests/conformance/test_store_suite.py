"""Our stores keep the contract, and each case finds the mutant that it names."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from arp.conformance.cases import CaseUnreachable
from arp.conformance.store import own_stores, store_suite
from arp.conformance.store.cases.crash_cases import RANDOM_KILLS
from arp.conformance.store.own_stores import MemoryUnderTest
from arp.conformance.store.store_case import StoreCase, StoreNeed, StoreRun
from arp.conformance.store.store_cases import STORE_CASES
from arp.conformance.store.store_report import junit_report
from arp.conformance.store.store_suite import StoreResult, run_store_case
from arp.conformance.store.store_under_test import StoreFactory, StoreUnderTest
from arp.store.memory import MemoryStore
from arp.store.store import Page, Store
from tests.conformance.store_mutants import MUTANTS
from tests.structure.source_tree import ROOT
from tests.support.postgres import postgres
from tests.support.shared_memory import shared_memory

OWN: dict[str, tuple[StoreFactory, set[StoreNeed]]] = {
    "memory": (own_stores.memory, {"unshared"}),
    "sqlite": (own_stores.sqlite, {"unshared", "durable"}),
    "postgres": (postgres, {"shared", "durable"}),
}
"""Each store of this project with what it offers."""

CASES = {case.name: case for case in STORE_CASES}


def slow_if_it_kills_often(*values: object, name: str, case: str) -> object:
    """Return a parameter set; a case that kills several times takes seconds."""
    marks = [pytest.mark.slow] if case in RANDOM_KILLS else []
    return pytest.param(*values, id=name, marks=marks)


@pytest.mark.parametrize(
    ("case", "store"),
    [
        slow_if_it_kills_often(case, store, name=f"{case.name}-{store}", case=case.name)
        for case in STORE_CASES
        for store in OWN
    ],
)
def test_contract(case: StoreCase, store: str, requires: Callable[[str], str]) -> None:
    if store == "postgres":
        requires("postgres")
    factory, offers = OWN[store]
    result = run_store_case(case, factory)
    wanted = "pass" if case.needs <= offers else "not advertised"
    assert result.outcome == wanted, f"{case.name}: {result.note}"


@pytest.mark.parametrize("case", [case for case in STORE_CASES if "unshared" not in case.needs])
def test_shared_double_keeps_the_contract(case: StoreCase) -> None:
    """The mutants of the cases about fences are mutants of this store."""
    result = run_store_case(case, lambda directory: shared_memory(directory))
    assert result.outcome in ("pass", "not checked"), f"{case.name}: {result.note}"
    if "shared" in case.needs:
        assert result.outcome == "pass"


@pytest.mark.parametrize(
    "name",
    [slow_if_it_kills_often(case.name, name=case.name, case=case.name) for case in STORE_CASES],
)
def test_case_finds_its_mutant(name: str) -> None:
    result = run_store_case(CASES[name], MUTANTS[name])
    assert result.outcome == "fail", f"{CASES[name].mutant}: {result.outcome}, {result.note}"
    assert not result.note.startswith("Timeout")


def test_every_case_says_what_must_hold_and_names_its_mutant() -> None:
    assert len(CASES) == len(STORE_CASES) >= 60
    assert CASES.keys() == MUTANTS.keys()
    assert len({case.mutant for case in STORE_CASES}) == len(STORE_CASES)
    assert all(case.title and case.mutant for case in STORE_CASES)
    assert CASES.keys() > RANDOM_KILLS


class OddUnderTest(MemoryUnderTest):
    """A store whose `read` is odd."""

    case_s = 0.3

    def make(self) -> Store:
        return OddStore()


class OddStore(MemoryStore):
    pass


def outcome_of_read(monkeypatch: pytest.MonkeyPatch, read: object) -> StoreResult:
    """Return the result of the case `order` if `MemoryStore.read` is another function."""
    monkeypatch.setattr(OddStore, "read", read)
    monkeypatch.setattr(store_suite, "GRACE_S", 0.2)
    return run_store_case(CASES["order"], lambda _: OddUnderTest())


async def never(*_: object) -> Page:
    await asyncio.Event().wait()
    return []


async def never_cancelled(*_: object) -> Page:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def blocking(*_: object) -> Page:
    time.sleep(3)  # noqa: ASYNC251 - the fault
    return []


async def exiting(*_: object) -> Page:
    sys.exit(7)


async def exiting_task(*_: object) -> Page:
    await asyncio.create_task(exiting())
    return []


async def interrupted(*_: object) -> Page:
    raise asyncio.CancelledError


async def broken(*_: object) -> Page:
    raise KeyError("x")


async def none(*_: object) -> None:
    return None


STUCK = "Timeout: it took longer than 0.3 s, and the store cannot be interrupted"


@pytest.mark.parametrize(
    ("read", "note"),
    [
        (never, "Timeout: it took longer than 0.3 s"),
        (never_cancelled, STUCK),
        (blocking, STUCK),
        (exiting, "read raised SystemExit: 7, which is no StoreError"),
        (exiting_task, "the store raised SystemExit: 7"),
        (interrupted, "read raised CancelledError: , which is no StoreError"),
        (broken, "read raised KeyError: 'x', which is no StoreError"),
        (none, "read returned a value of another type: None"),
    ],
)
def test_store_that_hangs_or_raises_oddly_is_a_failed_case(
    read: object, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = outcome_of_read(monkeypatch, read)
    assert (result.outcome, result.note) == ("fail", note)
    assert result.is_stuck == (note == STUCK)


class BrokenUnderTest(MemoryUnderTest):
    """Code of an author that raises in one method."""

    def __init__(self, method: str) -> None:
        self.method = method

    def make(self) -> Store:
        if self.method == "make":
            raise OSError("no disk")
        return super().make()

    def end(self) -> None:
        if self.method == "end":
            raise OSError("no disk")


@pytest.mark.parametrize("method", ["the factory", "make", "end"])
def test_fault_of_the_author_is_a_failed_case(method: str) -> None:
    def factory(_: Path, /) -> StoreUnderTest:
        if method == "the factory":
            raise OSError("no disk")
        return BrokenUnderTest(method)

    result = run_store_case(CASES["order"], factory)
    assert (result.outcome, result.note) == ("fail", f"{method} raised OSError: no disk")


async def faulty(_: StoreRun) -> None:
    raise KeyError("x")


async def unreachable(_: StoreRun) -> None:
    raise CaseUnreachable("no way")


FAULTY = StoreCase("faulty", "Always a fault", "none", frozenset(), faulty)


def test_fault_of_the_suite_is_reported_as_such() -> None:
    result = run_store_case(FAULTY, own_stores.memory)
    assert result.outcome == "suite fault"
    assert result.note.startswith("KeyError: 'x' in test_store_suite.py:")


def test_case_that_cannot_be_checked_says_why() -> None:
    result = run_store_case(FAULTY._replace(check=unreachable), own_stores.memory)
    assert (result.outcome, result.note) == ("not checked", "no way")
    hidden = run_store_case(CASES["killed_after_append"], lambda path: own_stores.sqlite(path))
    assert hidden.outcome == "not checked"
    assert hidden.note == "another process cannot import the factory by its name"
    no_damage = run_store_case(CASES["damage_found"], lambda _: shared_memory(Path()))
    assert no_damage.note == "StoreUnderTest.damage is not implemented"


def test_process_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.conformance.store.writer_process.MODULE", "arp.no_such_module")
    result = run_store_case(CASES["killed_after_append"], own_stores.sqlite)
    assert result.outcome == "fail"
    assert "another process ended" in result.note
    assert "No module named arp.no_such_module" in result.note


MEMORY = "arp.conformance.store.own_stores:memory"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", "store", *arguments])


def test_command_prints_outcomes_and_writes_reports(tmp_path: Path) -> None:
    as_json, as_xml = tmp_path / "results.json", tmp_path / "results.xml"
    names = ("--case", "order", "--case", "locked")
    done = run(MEMORY, *names, "--json", str(as_json), "--junit", str(as_xml))
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].split() == ["order", "pass"]
    assert lines[1].startswith("locked  not advertised  a new store object does not have")
    assert lines[2] == "memory: 1 pass, 1 not advertised"
    report = json.loads(as_json.read_text())
    assert report["store"] == "memory"
    assert report["counts"] == {"pass": 1, "not advertised": 1}
    assert [case["outcome"] for case in report["cases"]] == ["pass", "not advertised"]
    suite = ET.fromstring(as_xml.read_text())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")
    assert [test.get("name") for test in suite] == ["order", "locked"]


def test_reports_can_hold_any_text() -> None:
    results = [
        StoreResult(CASES["order"], "fail", 'a "<b>\0\x1b\ud800\u202e'),
        StoreResult(CASES["locked"], "suite fault", "x"),
    ]
    suite = ET.fromstring(junit_report("\0", results))
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    (failure,) = suite[0]
    assert failure.get("message") == 'a "<b>\\u0000\\u001b\\ud800\\u202e'


def test_command_lists_the_cases() -> None:
    done = run("--list")
    assert done.exit_code == 0
    assert len(done.output.splitlines()) == len(STORE_CASES)
    assert CASES["order"].title in done.output


@pytest.fixture
def own_file(tmp_path: Path) -> Iterator[Path]:
    """A file with factories of a good store, a mutant, and a store that hangs."""
    before = list(sys.path)
    file = tmp_path / "own_factories.py"
    file.write_text(
        "import time\n"
        "from arp.conformance.store.own_stores import MemoryUnderTest, SqliteUnderTest\n"
        "from arp.store.memory import MemoryStore\n"
        "class Mutant(MemoryStore):\n"
        "    async def read(self, session_id, after=0, limit=1000):\n"
        "        return []\n"
        "class Hanging(MemoryStore):\n"
        "    async def read(self, session_id, after=0, limit=1000):\n"
        "        time.sleep(1000)\n"
        "class UnderTest(MemoryUnderTest):\n"
        "    case_s = 0.1\n"
        "    def __init__(self, kind): self.kind = kind\n"
        "    def make(self): return self.kind()\n"
        "def mutant(directory): return UnderTest(Mutant)\n"
        "def hanging(directory): return UnderTest(Hanging)\n"
        "def sqlite(directory): return SqliteUnderTest(directory)\n"
    )
    yield file
    sys.path[:] = before
    sys.modules.pop("own_factories", None)


def test_command_ends_with_1_if_a_case_failed(own_file: Path) -> None:
    done = run(f"{own_file}:mutant", "--case", "order")
    assert done.exit_code == 1
    assert "fail            facts of s1: 0 items of 4" in done.output


def test_another_process_imports_a_factory_from_a_file(own_file: Path) -> None:
    done = run(f"{own_file}:sqlite", "--case", "killed_after_append")
    assert done.output.splitlines()[0].split() == ["killed_after_append", "pass"]


def test_command_ends_although_a_thread_of_the_store_hangs(own_file: Path) -> None:
    arguments = f"{own_file}:hanging", "--case", "order"
    done = subprocess.run(
        [sys.executable, "-m", "arp.cli", "conformance", "store", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Timeout: it took longer than 0.1 s, and the store cannot be" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("memory: 1 fail")


def test_command_ends_with_3_if_the_suite_has_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.conformance.store.store_cases.STORE_CASES", (FAULTY,))
    done = run(MEMORY)
    assert done.exit_code == 3
    assert "suite fault     KeyError: 'x'" in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name the factory of the store, as in my_store.conformance:factory"),
        (["no.such.module:x"], "There is no file and no module 'no.such.module'"),
        (["arp.store.memory:factory"], "There is no function 'factory' in arp.store.memory"),
        (["arp.store.memory"], "names no function"),
        ([MEMORY, "--case", "nothing"], "There is no nothing; --list lists the cases"),
        (["tests.no_such_package.x:y"], "no module named 'tests.no_such_package'"),
    ],
)
def test_command_names_what_is_wrong(arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert sentence.lower() in done.output.lower()
    assert "Traceback" not in done.output


def test_module_that_cannot_be_imported_is_a_wrong_command_line(tmp_path: Path) -> None:
    file = tmp_path / "raising.py"
    file.write_text("raise RuntimeError('not today')\n")
    done = run(f"{file}:factory")
    assert done.exit_code == 2
    assert "cannot be imported: RuntimeError: not today" in done.output


def test_report_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = run(MEMORY, "--case", "order", "--json", str(tmp_path / "none" / "x.json"))
    assert done.exit_code == 2
    assert "cannot be written (No such file or directory)" in done.output


def test_the_commands_of_the_docs_run() -> None:
    assert run("--list").exit_code == 0
    done = run("arp.conformance.store.own_stores:sqlite", "--case", "order")
    assert done.exit_code == 0, done.output
