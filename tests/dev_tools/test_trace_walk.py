"""A text and an input enter few packages on their way: who reads the code goes the same way."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

MOST_STAYS = {"delta": 9, "input": 30}
"""How often a walk may enter a package. Each frame enters `protocol`, for its large integers."""

TRIES = 3
"""A timer of the server may run in the middle of a walk, which is no fault of the walk."""


def stays() -> dict[str, list[str]]:
    """Return the packages that each walk enters, in order."""
    command = [sys.executable, "-m", "tools.trace_walk"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    found = re.findall(r"^(\w+): .* stays: (.+)$", done.stdout, re.MULTILINE)
    return {name: packages.split() for name, packages in found}


def test_a_text_and_an_input_enter_few_packages() -> None:
    walks: dict[str, list[str]] = {}
    for _ in range(TRIES):
        walks = stays()
        if all(len(walks[name]) <= most for name, most in MOST_STAYS.items()):
            break
    assert {
        name: len(walks[name]) for name in MOST_STAYS if len(walks[name]) > MOST_STAYS[name]
    } == {}
    assert [walks["delta"][0], walks["input"][0]] == ["hub", "server"]
    for packages in walks.values():  # they went the whole way
        assert {"session", "ledger", "store", "view", "transport"} <= set(packages)
        assert packages[-1] == "hub"
