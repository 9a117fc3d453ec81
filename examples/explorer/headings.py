"""Names of columns for people: words instead of names from the file, and units.

SQL, exports, and the list of a table's columns keep the names from the file.
"""

from __future__ import annotations

import itertools
import re

FUNCTION_WORDS: dict[str, str] = {
    "avg": "average",
    "sum": "total",
    "min": "lowest",
    "max": "highest",
    "count": "number of",
    "distinct": "number of different",
}
"""Words for functions of SQL."""

COUNTING = ("count", "distinct")
"""Functions that return a number without a unit."""

NAMES = {
    "temp_max": "daily high",
    "temp_min": "daily low",
    "Weight_in_lbs": "weight",
}
"""Words for columns of the supplied data; any other column keeps the name from its file."""

UNITS = {
    "precipitation": "mm",
    "temp_max": "°C",
    "temp_min": "°C",
    "wind": "m/s",
    "Displacement": "in³",
    "Horsepower": "hp",
    "Weight_in_lbs": "lb",
}
"""Units of columns of the supplied data."""


def in_words(column: str) -> str:
    """Return the name of a column for a sentence: `daily high`."""
    return NAMES.get(column, column.replace("_", " "))


def alias_in_words(alias: str) -> str:
    """Return the name of a column of a result for a sentence: `average daily high`."""
    function, column = _parts(alias)
    return f"{FUNCTION_WORDS[function]} {in_words(column)}" if function else in_words(column)


def heading(alias: str) -> str:
    """Return the name of a column of a result for a table or a legend, with its unit."""
    function, column = _parts(alias)
    unit = "" if function in COUNTING else UNITS.get(column, "")
    return alias_in_words(alias) + (f" ({unit})" if unit else "")


def joined(names: list[str]) -> str:
    """Join names as in a sentence; words that all of them begin with appear once."""
    names = names[:1] + [name[len(shared_start(names)) :] for name in names[1:]]
    return " and ".join(names) if len(names) < 3 else ", ".join(names[:-1]) + f" and {names[-1]}"


def in_legend(names: list[str], title: str) -> list[str]:
    """Shorten names for the legend of a chart: what all begin with and the title says is left out.

    Two names then fit beside each other on a phone.
    """
    start = shared_start(names)
    return [name[len(start) :] for name in names] if start.lower() in title.lower() else names


def shared_start(names: list[str]) -> str:
    """Return the words that all names begin with, with a space behind; `""` for a single name."""
    if len(names) < 2:
        return ""
    # The last word of each name stays, and so does its unit.
    words = [re.sub(r" \(.*\)$", "", name).split(" ")[:-1] for name in names]
    shared = itertools.takewhile(lambda at: len(set(at)) == 1, zip(*words, strict=False))
    return "".join(f"{at[0]} " for at in shared)


def _parts(alias: str) -> tuple[str, str]:
    """Return function and column of `avg_wind`; no function where there is none."""
    function, _, column = alias.partition("_")
    return (function, column) if column and function in FUNCTION_WORDS else ("", alias)
