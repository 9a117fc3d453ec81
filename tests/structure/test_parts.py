"""The parts of the tests, `make test` and `make test-extended`, which together are all tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.extended import KINDS, LeftOut, kind_of_file

ROOT = Path(__file__).parents[2]
FILES = [file.relative_to(ROOT).as_posix() for file in ROOT.glob("tests/**/test_*.py")]


@pytest.mark.parametrize("pattern", [one for kind in KINDS for one in kind.files])
def test_every_pattern_of_extended_tests_matches_a_file(pattern: str) -> None:
    matched = [file for file in FILES if kind_of_file(file) is not None]
    prefix = pattern.partition("*")[0]
    assert [file for file in matched if file.startswith(prefix)]


def test_marks_of_extended_tests_are_marks_of_the_project(pytestconfig: pytest.Config) -> None:
    known = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert {mark for kind in KINDS for mark in kind.marks} <= known


def test_a_pattern_of_one_file_or_folder_matches_nothing_else() -> None:
    assert kind_of_file("tests/page/inspect/test_catalog_browser.py") is not None
    assert kind_of_file("tests/docs/test_tutorial.py") is not None
    assert kind_of_file("tests/docs/test_tutorials.py") is None
    assert kind_of_file("other/tests/docs/test_tutorial.py") is None


def test_what_is_left_out_is_listed_by_kind_and_folder() -> None:
    left_out = LeftOut()
    left_out.add(KINDS[0], "tests/runtime/test_b.py", 1)
    left_out.add(KINDS[0], "tests/runtime/test_b.py", 1)
    left_out.add(KINDS[0], "tests/runtime/test_a.py", 0)
    assert list(left_out.lines()) == [
        f"  {KINDS[0].name}: {KINDS[0].reason}",
        "    tests/runtime: a, b (2)",
    ]


def test_ci_runs_the_command_of_the_readme_and_then_the_other_part() -> None:
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    targets = re.findall(r"^run_tests \d+ (\S+)$", ci, re.MULTILINE)
    assert targets == ["test", "test-extended"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"--part (\w+)", makefile) == ["everyday", "extended"]
    assert "\nmake test\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_path_or_a_mark_selects_from_both_parts() -> None:
    """`make test ARGS=tests/structure/test_wheel.py` runs that file, although it is extended."""
    file = "tests/structure/test_wheel.py"
    command = [sys.executable, "-m", "pytest", "--part", "everyday", "--collect-only", "-q", file]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"{file}::test_the_licence_is_in_the_wheel" in output
    assert "deselected" not in output
