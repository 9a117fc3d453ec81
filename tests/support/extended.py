"""The kinds of extended tests: tests that `make test` leaves out and `make test-all` runs.

`pytest --part everyday` runs all tests except the extended ones, `pytest --part extended` runs only
the extended ones, and `pytest` without the option runs everything. Every test is in exactly one
part. A test belongs to a kind because of its file, a mark or a fixture; `tests/conftest.py` selects
the tests. The mark `slow` has no other purpose than this; each slow test needs a quick everyday
test of the same promise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

import pytest

Part: TypeAlias = Literal["everyday", "extended"]

PARTS: tuple[Part, ...] = ("everyday", "extended")


class Kind(NamedTuple):
    """A kind of extended tests."""

    name: str
    reason: str
    """Why these tests are not part of `make test`."""
    files: tuple[str, ...] = ()
    """Patterns of the files that contain only tests of this kind, relative to the project's root.

    `*` matches within one name, `**` any number of folders.
    """
    marks: frozenset[str] = frozenset()
    """Marks that make a test in any other file a test of this kind."""
    fixtures: frozenset[str] = frozenset()
    """Fixtures that make a test in any other file a test of this kind."""


KINDS = (
    Kind(
        "agent CLIs",
        "start Claude Code, Codex or OpenCode, which takes seconds each time",
        marks=frozenset({"claude", "codex", "opencode", "trials"}),
        fixtures=frozenset({"claude_cli", "codex_cli", "opencode_cli"}),
    ),
    Kind(
        "containers",
        "start Docker's or Podman's engine as root",
        marks=frozenset({"docker"}),
    ),
    Kind(
        "browsers",
        "start Chromium",
        files=("tests/page/**", "tests/interop/test_draft_page.py"),
        marks=frozenset({"browser"}),
    ),
    Kind(
        "tutorial",
        "follow the tutorial in a clone of the project",
        files=("tests/docs/test_tutorial.py",),
    ),
    Kind(
        "kills and restarts",
        "stop or kill servers again and again, in every way in which they can end",
        files=(
            "tests/commands/test_tool_commands.py",
            "tests/runtime/test_framework_sessions.py",
            "tests/runtime/test_stops.py",
            "tests/runtime/test_two_questions.py",
            "tests/server/test_attempts.py",
            "tests/server/test_lives.py",
            "tests/server/test_permission_restart.py",
            "tests/server/test_question_restart.py",
            "tests/server/test_resume.py",
            "tests/server/test_signals.py",
            "tests/server/test_transfer_kill.py",
            "tests/tools/test_many_tools.py",
        ),
        marks=frozenset({"kill"}),
    ),
    Kind(
        "loads",
        "measure what a server does under load, for seconds of processor time each",
        files=(
            "tests/server/test_crowd.py",
            "tests/server/test_hostile_frames.py",
            "tests/server/test_slow_reader.py",
            "tests/server/test_soak.py",
            "tests/server/test_stalls.py",
            "tests/server/test_stalls_elsewhere.py",
        ),
    ),
    Kind(
        "slow",
        "take seconds by their nature, while a quicker everyday test covers the same promise",
        marks=frozenset({"slow"}),
    ),
    Kind(
        "other programs",
        "start Node.js, nginx, gunicorn or systemd's analysis, and programs of the v0.1 draft",
        files=(
            "tests/docs/test_deploy_page.py",
            "tests/examples/test_node_*.py",
            "tests/interop/*.py",
            "tests/server/test_behind_proxy.py",
            "tests/server/test_workers.py",
        ),
        marks=frozenset({"node", "tmux"}),
    ),
    Kind(
        "installations",
        "build packages and virtual environments",
        files=(
            "tests/dev_tools/test_bootstrap.py",
            "tests/dev_tools/test_release.py",
            "tests/structure/test_wheel.py",
        ),
    ),
)
"""All kinds. If several match a test, the first of them is its kind."""


def kind_of(item: pytest.Item) -> Kind | None:
    """Return the kind of an extended test, or `None` for an everyday test."""
    whole_file = kind_of_file(item.path.relative_to(item.config.rootpath).as_posix())
    if whole_file is not None:
        return whole_file
    marks = {mark.name for mark in item.iter_markers()}
    fixtures = set(getattr(item, "fixturenames", ()))
    return next((kind for kind in KINDS if kind.marks & marks or kind.fixtures & fixtures), None)


@cache
def kind_of_file(path: str) -> Kind | None:
    """Return the kind of a file that contains only tests of one kind; `None` for other files.

    Args:
        path: Path of the file, relative to the project's root, with `/` between folders.
    """
    return next((kind for kind in KINDS if any(_matches(path, one) for one in kind.files)), None)


def _matches(path: str, pattern: str) -> bool:
    parts = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return re.fullmatch(parts, path) is not None


class LeftOut:
    """The extended tests that a run of the part `everyday` leaves out."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, int]] = {}
        """For each kind, the number of tests in each file; 0 for a file that was not imported."""

    def add(self, kind: Kind, path: str, tests: int) -> None:
        """Add a number of left-out tests to a file."""
        files = self.tests.setdefault(kind.name, {})
        files[path] = files.get(path, 0) + tests

    def lines(self) -> Iterable[str]:
        """Yield one line for each kind, followed by one line for each folder with tests of it."""
        for kind in KINDS:
            files = self.tests.get(kind.name, {})
            if files:
                yield f"  {kind.name}: {kind.reason}"
                yield from (f"    {line}" for line in _by_folder(files))


def _by_folder(files: dict[str, int]) -> Iterable[str]:
    folders: dict[str, list[str]] = {}
    for path, tests in sorted(files.items()):
        place = PurePosixPath(path)
        name = place.stem if tests == 0 else f"{place.stem} ({tests})"
        folders.setdefault(str(place.parent), []).append(name.removeprefix("test_"))
    for folder, names in folders.items():
        yield f"{folder}: {', '.join(names)}"
