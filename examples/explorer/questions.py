"""Plain questions, understood without a language model: which table, and which query."""

from __future__ import annotations

import re

from asks import ChartWish, RunQuery
from connection import quote_name
from query_plan import Group, count_of, histogram_sql
from question_reading import Reading, read_question
from schema import Schema
from vocabulary import columns_named, words_of


def understand_question(text: str, schema: Schema) -> RunQuery | None:
    """Return the query that answers a plain question about the table that fits best."""
    plain = " ".join(text.split()).rstrip("?!. ")
    wish, plain = _take_wish(plain)
    special = _pair(plain, schema) or _distribution(plain, schema, wish)
    if special:
        return special
    readings = [reading for table in schema.tables if (reading := read_question(plain, table))]
    best = max(readings, key=lambda reading: reading.points, default=None)
    if best is None or best.points <= 0:
        return None
    return _query_of(best, wish)


def _query_of(reading: Reading, wish: ChartWish) -> RunQuery:
    plan = reading.plan
    return RunQuery(plan.sql, plan.title, wish, reading.leftover, plan.order_by)


def _take_wish(text: str) -> tuple[ChartWish, str]:
    """Remove the requested kind of chart from the text."""
    kinds = r"(bar|column|line|pie|scatter|area)"
    nouns = r"(?:chart|plot|graph|diagram)s?"
    for pattern in (
        rf"\b(?:as|in|into)\s+an?\s+{kinds}(?:\s*{nouns})?\b",
        rf"\b{kinds}\s*{nouns}(?:\s+(?:of|for|with))?\b",
        rf"^{kinds}\s+(?:of|for)\b",
    ):
        match = re.search(pattern, text, re.I)
        if match:
            return chart_kind(match[1]), text[: match.start()] + " " + text[match.end() :]
    return "auto", text


def chart_kind(word: str) -> ChartWish:
    """Return the kind of chart that a word means."""
    kinds: dict[str, ChartWish] = {
        "bar": "bar",
        "column": "bar",
        "line": "line",
        "pie": "pie",
        "scatter": "scatter",
        "area": "area",
    }
    return kinds.get(word.lower().rstrip("s"), "auto")


def _pair(text: str, schema: Schema) -> RunQuery | None:
    """Match `wind against temp_max`, `weight vs horsepower`: one point for each row."""
    match = re.search(r"(.+?)\s+(?:against|vs\.?|versus)\s+(.+)", text, re.I)
    if match is None:
        return None
    for table in schema.tables:
        right = columns_named(_words(match[2]), table, ["number"])
        left = columns_named(_words(match[1]), table, ["number"])
        if left and right:
            x, y = right[0].name, left[0].name
            points = f"SELECT {quote_name(x)}, {quote_name(y)}\nFROM {quote_name(table.name)}"
            where = f"{quote_name(x)} IS NOT NULL AND {quote_name(y)} IS NOT NULL"
            return RunQuery(f"{points}\nWHERE {where}", f"{y} against {x}", "scatter")
    return None


def _distribution(text: str, schema: Schema, wish: ChartWish) -> RunQuery | None:
    """Match `distribution of wind` (ten ranges) and `distribution of weather` (by value)."""
    match = re.search(
        r"\b(?:distribution|histogram|breakdown|share)s?\s+(?:of\s+)?(.+)", text, re.I
    )
    bare = match[1] if match else text if wish != "auto" else ""
    if not bare or re.search(r"\b(by|per|and|where)\b", bare, re.I):
        return None
    for table in schema.tables:
        for column in columns_named(_words(bare), table)[:1]:
            if column.kind == "text":
                plan = count_of(table.name, Group(column.name), 30)
                return RunQuery(plan.sql, f"Number of rows by {column.name}", wish)
            if column.kind == "number":
                sql = histogram_sql(table.name, column.name)
                return RunQuery(sql, f"Distribution of {column.name}", "bar")
    return None


def _words(text: str) -> list[str]:
    dropped = {
        "the",
        "a",
        "of",
        "plot",
        "chart",
        "show",
        "me",
        "graph",
        "draw",
        "scatter",
        "please",
    }
    return [word for word in words_of(text) if word not in dropped]
