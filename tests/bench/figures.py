"""What a benchmark found: one table for people, one line of JSON for programs."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence

import msgspec
from msgspec import Struct

_HEADS = ("figure", "ours", "baseline", "ratio (lowest to highest)", "target", "")


def rounds(default: int) -> int:
    """How often to measure; `ARP_BENCH_ROUNDS` says otherwise."""
    return max(1, int(os.environ.get("ARP_BENCH_ROUNDS", default)))


class Figure(Struct):
    """One figure, as medians over the rounds."""

    name: str
    unit: str
    value: float
    baseline: float | None = None
    ratio: float | None = None
    ratios: tuple[float, float] | None = None
    """The lowest and the highest of all rounds."""
    target: float | None = None
    """At most this: the ratio if there is one, else the value."""
    met: bool | None = None

    def row(self) -> tuple[str, ...]:
        spread = f" ({self.ratios[0]:.2f} to {self.ratios[1]:.2f})" if self.ratios else ""
        mark = "×" if self.ratio is not None else f" {self.unit}"
        return (
            self.name,
            f"{self.value:,.4g} {self.unit}",
            "" if self.baseline is None else f"{self.baseline:,.4g} {self.unit}",
            "" if self.ratio is None else f"{self.ratio:.2f} ×{spread}",
            "" if self.target is None else f"≤ {self.target:g}{mark}",
            {None: "", True: "met", False: "MISSED"}[self.met],
        )


def compared(
    name: str, unit: str, ours: Sequence[float], bare: Sequence[float], target: float | None = None
) -> Figure:
    """Sets ours against a baseline, round by round: both of a round ran one after the other."""
    ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
    ratio = statistics.median(ratios)
    return Figure(
        name,
        unit,
        statistics.median(ours),
        statistics.median(bare),
        ratio,
        (min(ratios), max(ratios)),
        target,
        None if target is None else ratio <= target,
    )


def alone(name: str, unit: str, values: Sequence[float], target: float | None = None) -> Figure:
    """A figure that stands for itself."""
    value = statistics.median(values)
    return Figure(name, unit, value, target=target, met=None if target is None else value <= target)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def report(bench: str, figures: Sequence[Figure]) -> None:
    """Prints the table, then everything as one line of JSON."""
    rows = [_HEADS, *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
    machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
    print(msgspec.json.encode({"bench": bench, **machine, "figures": figures}).decode(), flush=True)
