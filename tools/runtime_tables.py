"""Tables of docs/ari.md: the names of capabilities, and the matrix of runtimes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from arp.conformance.runtime.runtime_cases import CASES
from arp.conformance.runtime.runtime_matrix import read_matrix, split_outcome
from arp.runtime.contract.services import CAPABILITIES

MATRIX = Path(__file__).resolve().parent.parent / "tests" / "runtime" / "matrix.json"


def capabilities() -> str:
    """Return the names that all runtimes share."""
    lines = [row("capability", "what it tells", "service"), row("---", "---", "---")]
    for known in CAPABILITIES:
        service = f"`{known.service.__name__}`" if known.service is not None else ""
        lines.append(row(f"`{known.name}`", known.meaning, service))
    return "\n".join(lines)


def matrix() -> str:
    """Return the outcomes as a table: a row for each case, a column for each runtime."""
    outcomes = read_matrix(MATRIX)
    lines = [row("case", "what must hold", *outcomes), row(*["---"] * (2 + len(outcomes)))]
    for case in CASES:
        seen = [split_outcome(outcomes[name].get(case.name, ""))[0] for name in outcomes]
        lines.append(row(f"`{case.name}`", case.title, *seen))
    counts = [
        Counter(split_outcome(outcome)[0] for outcome in outcomes[name].values())
        for name in outcomes
    ]
    sums = [
        row(outcome, "cases", *(str(count[outcome]) for count in counts))
        for outcome in ("native", "synthetic", "Unimplemented")
    ]
    return "\n".join([*lines, *sums])


def reasons() -> str:
    """Return the reasons for `Unimplemented`: one row for each runtime and reason."""
    lines = [row("runtime", "why", "cases"), row("---", "---", "---")]
    order = [case.name for case in CASES]
    for runtime, outcomes in read_matrix(MATRIX).items():
        by_reason: dict[str, list[str]] = {}
        for name in sorted(outcomes, key=order.index):
            outcome, reason = split_outcome(outcomes[name])
            if outcome == "Unimplemented":
                by_reason.setdefault(reason, []).append(f"`{name}`")
        lines += [
            row(runtime, why.replace("|", "\\|"), ", ".join(names))
            for why, names in by_reason.items()
        ]
    return "\n".join(lines)


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"
