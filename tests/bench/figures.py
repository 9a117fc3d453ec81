"""The results of a benchmark: a table for people, and one line of JSON for programs."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence

import msgspec
from msgspec import Struct

_HEADS = ("figure", "ours", "baseline", "ratio (lowest to highest)", "target", "")


def rounds(default: int) -> int:
    """Return how many rounds to measure: `ARP_BENCH_ROUNDS`, else the default."""
    return max(1, int(os.environ.get("ARP_BENCH_ROUNDS", default)))


class Figure(Struct):
    """One result, as medians over the rounds."""

    name: str
    unit: str
    value: float
    baseline: float | None = None
    ratio: float | None = None
    ratios: tuple[float, float] | None = None
    """The lowest and the highest ratio of all rounds."""
    target: float | None = None
    """The most that the ratio (if there is one) or else the value may be."""
    met: bool | None = None

    def row(self) -> tuple[str, ...]:
        """Return the cells of the figure's row in the table."""
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
    """Return a figure that compares ours with a baseline, round by round.

    Args:
        name: Of the figure.
        unit: Of both values.
        ours: One value for each round.
        bare: One value of the baseline for each round, measured right before or after ours.
        target: The highest ratio that meets the goal.
    """
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
    """Return a figure without a baseline."""
    value = statistics.median(values)
    return Figure(name, unit, value, target=target, met=None if target is None else value <= target)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def report(bench: str, figures: Sequence[Figure]) -> None:
    """Print the table, then all figures as one line of JSON."""
    rows = [_HEADS, *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
    machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
    print(msgspec.json.encode({"bench": bench, **machine, "figures": figures}).decode(), flush=True)
