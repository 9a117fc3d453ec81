"""The words of questions: functions, parts of a date, words without a meaning."""

from __future__ import annotations

from query_plan import Function, Part


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS: tuple[tuple[str, Function], ...] = (
    (r"average|averages|mean|avg|typical", "avg"),
    (r"number of|how many|count of|counts? of|count", "count"),
    (r"sum of|sum|total|overall", "sum"),
    (r"maximum|max|highest|largest|biggest|peak", "max"),
    (r"minimum|min|lowest|smallest", "min"),
)

PARTS: dict[str, Part] = {
    "month": "month",
    "monthly": "month",
    "quarter": "quarter",
    "quarterly": "quarter",
    "year": "year",
    "yearly": "year",
    "annual": "year",
    "weekday": "weekday",
    "day of week": "weekday",
    "day of the week": "weekday",
    "day": "day",
    "daily": "day",
    "date": "day",
    "hour": "hour",
    "hourly": "hour",
    "time": "year-month",
    "year and month": "year-month",
    "month and year": "year-month",
    "year month": "year-month",
}

ROW_WORDS = _words("""
    row record entry item thing line one day time element result case
""")
"""Words for rows, in the singular."""

SMALL_WORDS = _words("""
    a an the of for in on at to with from and or is are was were be there it its each all any my
    me we i do does did has have had please show give tell what which who how much many per by
    over data value dataset table chart plot graph as that this those these can you could would
    like see want get find list display draw make values number overall most least different
    distinct unique
""")
"""Words that can be ignored silently."""

SUMMED_WORDS = _words("""
    sale amount total count quantity qty population order unit profit income expense visit death
    case
""")
"""Columns with such a name are added up by default; others are averaged."""

MAX_MEASURES = 4
"""Most lines in one chart; more cannot be distinguished."""

MAX_LISTED_ROWS = 100
"""Number of rows for a question with only a condition (`rainy days`)."""
