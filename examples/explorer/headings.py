"""What columns are called on screens: words in place of names in a file, and units.

Names stay as they are in SQL, in exports, and where a user lists the columns of a table.
"""

from __future__ import annotations

FUNCTION_WORDS: dict[str, str] = {
    "avg": "average",
    "sum": "total",
    "min": "lowest",
    "max": "highest",
    "count": "number",
    "distinct": "number of different",
}
"""The words for a function of SQL."""

COUNTING = ("count", "distinct")
"""Functions whose result has no unit."""

NAMES = {
    "temp_max": "daily high",
    "temp_min": "daily low",
    "Weight_in_lbs": "weight",
}
"""Columns of the data of this example; others are called what the file calls them."""

UNITS = {
    "precipitation": "mm",
    "temp_max": "°C",
    "temp_min": "°C",
    "wind": "m/s",
    "Displacement": "in³",
    "Horsepower": "hp",
    "Weight_in_lbs": "lb",
}


def in_words(column: str) -> str:
    """Return the name of a column as a sentence has it."""
    return NAMES.get(column, column.replace("_", " "))


def alias_in_words(alias: str) -> str:
    """Return the name of a column of a result as a sentence has it."""
    function, column = _parts(alias)
    return f"{FUNCTION_WORDS[function]} {in_words(column)}" if function else in_words(column)


def heading(alias: str) -> str:
    """Return the name of a column of a result for the head of a table, or for a legend."""
    function, column = _parts(alias)
    unit = "" if function in COUNTING else UNITS.get(column, "")
    return alias_in_words(alias) + (f" ({unit})" if unit else "")


def _parts(alias: str) -> tuple[str, str]:
    """Return function and column of `avg_wind`; no function where there is none."""
    function, _, column = alias.partition("_")
    return (function, column) if column and function in FUNCTION_WORDS else ("", alias)
