"""The matrix of outcomes by runtime and case, stored as JSON with one line for each outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Outcomes = dict[str, str]
"""Outcome by case name, such as `native` or `Unimplemented: requests take no message`."""


def split_outcome(summary: str) -> tuple[str, str]:
    """Return an outcome and its reason, which may be empty."""
    outcome, _, reason = summary.partition(": ")
    return outcome, reason


def read_matrix(file: Path) -> dict[str, Outcomes]:
    """Return the outcomes by runtime name; empty if there is no file."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    matrix: dict[str, Outcomes] = json.loads(text)
    return matrix


def write_outcomes(file: Path, runtime: str, outcomes: Mapping[str, str]) -> None:
    """Write the outcomes of a runtime; keep those of other runtimes and of cases not run."""
    matrix = read_matrix(file)
    matrix[runtime] = {**matrix.get(runtime, {}), **outcomes}
    file.write_text(json.dumps(matrix, indent=1, sort_keys=True) + "\n", encoding="utf-8")
