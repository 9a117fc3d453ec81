"""The matrix of runtimes in docs/ari.md, from what the contract suite saw."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from arp.conformance.runtime_cases import CASES
from arp.conformance.runtime_matrix import read_matrix

MATRIX = Path(__file__).resolve().parent.parent / "tests" / "runtime" / "matrix.json"


def matrix() -> str:
    """Return the outcomes as a table: a row for each case, a column for each runtime."""
    outcomes = read_matrix(MATRIX)
    lines = [row("case", "what must hold", *outcomes), row(*["---"] * (2 + len(outcomes)))]
    for case in CASES:
        seen = [outcomes[name].get(case.name, "") for name in outcomes]
        lines.append(row(f"`{case.name}`", case.title, *seen))
    counts = [Counter(outcomes[name].values()) for name in outcomes]
    sums = [
        row(outcome, "cases", *(str(count[outcome]) for count in counts))
        for outcome in ("native", "synthetic", "Unimplemented")
    ]
    return "\n".join([*lines, *sums])


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"
