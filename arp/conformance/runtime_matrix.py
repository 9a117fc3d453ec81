"""The matrix runtime x case: read and written as JSON, one line for each outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Outcomes = dict[str, str]
"""Outcome by the name of the case: `native`, or `Unimplemented: requests take no message`."""


def split_outcome(told: str) -> tuple[str, str]:
    """Return an outcome and its reason, which is empty where there is none."""
    outcome, _, reason = told.partition(": ")
    return outcome, reason


def read_matrix(file: Path) -> dict[str, Outcomes]:
    """Return the outcomes by the name of the runtime; none if there is no file."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    matrix: dict[str, Outcomes] = json.loads(text)
    return matrix


def write_outcomes(file: Path, runtime: str, outcomes: Mapping[str, str]) -> None:
    """Write the outcomes of a runtime; those of others, and of cases that did not run, stay."""
    matrix = read_matrix(file)
    matrix[runtime] = {**matrix.get(runtime, {}), **outcomes}
    file.write_text(json.dumps(matrix, indent=1, sort_keys=True) + "\n", encoding="utf-8")
