"""Each point of the acceptance list of the web has a test that names it, or a reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, text_of

POINTS = range(1, 91)

_ROW = re.compile(r"^\| W(\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_FILE = re.compile(r"`((?:web|tests)/[^`]+\.\w+)`")
_POINT = re.compile(r"\bW(\d+)\b")
_SCRIPT_NAME = re.compile(r"(?:\b(?:test|describe)(?:\.\w+)*|\))\(\s*([\"'`])(.*?)\1")
_PYTHON_NAME = re.compile(r'def test_\w+\([^)]*\)[^:]*:\s*"""(.*?)"""', re.DOTALL)

ROWS = {int(point): proof for point, _, proof in _ROW.findall(text_of("web.md"))}
"""What the table says of each point."""


def named_in(source: str, is_python: bool) -> set[int]:
    """Return the points that the names of a file's tests have; of Python's their docstrings."""
    found = _PYTHON_NAME if is_python else _SCRIPT_NAME
    names = (match.groups()[-1] for match in found.finditer(source))
    return {int(point) for name in names for point in _POINT.findall(name)}


def points_of(path: Path) -> set[int]:
    return named_in(path.read_text(encoding="utf-8"), path.suffix == ".py")


def files() -> Iterator[Path]:
    """The tests of the web, and those in Python."""
    for place in sorted(ROOT.glob("web/*/tests")):
        yield from sorted(place.rglob("*.test.ts*"))
    yield from sorted((ROOT / "tests").rglob("test_*.py"))


def test_the_table_has_each_point_once() -> None:
    points = [int(point) for point, _, _ in _ROW.findall(text_of("web.md"))]
    assert points == list(POINTS)


@pytest.mark.parametrize("point", POINTS, ids="W{}".format)
def test_files_that_the_table_names_have_the_point_in_a_test_or_it_says_why_not(point: int) -> None:
    named = _FILE.findall(ROWS[point])
    for name in named:
        path = ROOT / name
        assert path.is_file(), name
        assert point in points_of(path), name
    assert named or len(ROWS[point].split()) > 5, "neither a test nor a reason"


def test_every_point_that_a_test_names_has_a_file_in_the_table() -> None:
    of_the_web = [path for path in files() if path.is_relative_to(ROOT / "web")]
    proved = {point for path in of_the_web for point in points_of(path)}
    assert {point for point in proved if not _FILE.findall(ROWS[point])} == set()


def test_names_are_found_as_they_are_written() -> None:
    script = """
        test("W1 W2: one", () => undefined);
        describe("W3", () => test.each(VIEWS)("W4 of %s", run));
        test.skipIf(x)(`W5`, run);
        // W6 is a comment
        expect(name).toBe("W7");
    """
    python = 'def test_it() -> None:\n    """As W8 says."""\n    w = "W9"\n'
    assert named_in(script, is_python=False) == {1, 2, 3, 4, 5}
    assert named_in(python, is_python=True) == {8}
