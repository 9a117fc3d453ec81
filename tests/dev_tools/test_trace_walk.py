"""A text and an input enter few packages on their way: who reads the code goes the same way."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.trace_walk import Call, Walk

ROOT = Path(__file__).parents[2]

# The ceilings were 9 and 30 while `live`, `turn` and `hub` were one package. The walks cross the
# borders between these three 5 and 22 times, and 2 times more if the writer runs once more in the
# middle. If these three count as one package, the old ceilings hold: 9 and 29 changes.
MOST_PACKAGE_CHANGES = {"delta": 16, "input": 54}
"""How often a walk may enter a package. Each frame enters `protocol`, for its large integers."""

TRIES = 3
"""A timer of the server may run in the middle of a walk, which is no fault of the walk."""


FIGURES = re.compile(
    r"^(\w+): (\d+) calls, (\d+) files, (\d+) file changes, (\d+) packages, "
    r"(\d+) package changes: (.+)$",
    re.MULTILINE,
)


def package_changes() -> dict[str, list[str]]:
    """Return the packages that each walk enters, in order."""
    command = [sys.executable, "-m", "tools.trace_walk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return {found[1]: found[7].split() for found in FIGURES.finditer(done.stdout)}


def test_a_text_and_an_input_enter_few_packages() -> None:
    walks: dict[str, list[str]] = {}
    for _ in range(TRIES):
        walks = package_changes()
        if all(len(walks[name]) <= most for name, most in MOST_PACKAGE_CHANGES.items()):
            break
    assert {
        name: len(walks[name])
        for name, most in MOST_PACKAGE_CHANGES.items()
        if len(walks[name]) > most
    } == {}
    assert [walks["delta"][0], walks["input"][0]] == ["turn", "server"]
    for packages in walks.values():
        # A walk that was cut short would meet every ceiling.
        assert {"session", "ledger", "store", "view", "transport"} <= set(packages)
        assert packages[-1] in {"hub", "live", "turn"}


def test_figures_of_a_walk() -> None:
    """The first call enters a file and a package too."""
    paths = ["hub/hub.py", "hub/peers/peer.py", "hub/peers/peer.py", "view/view.py", "hub/hub.py"]
    walk = Walk([Call(path, 1, "f") for path in paths])
    assert walk.figures() == {
        "calls": 5,
        "files": 3,
        "file changes": 4,
        "packages": 2,
        "package changes": 3,
    }
