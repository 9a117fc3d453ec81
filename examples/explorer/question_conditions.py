"""The conditions in a question: `in 2013`, `since March`, `where wind > 5`, `on rainy days`.

Each rule gets a text and returns the conditions that it found and the text without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from query_plan import Condition, Operator
from schema import Table
from vocabulary import columns_named, value_named, words_of

Found: TypeAlias = tuple[list[Condition], str]

MONTH_NAMES = (
    "january february march april may june july august september october november december"
)

_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTH_NAMES.split())
_YEAR = r"(?:1[5-9]|20)\d\d"

_OPERATORS: tuple[tuple[str, Operator], ...] = (
    (r"<=|at most|up to|no more than", "<="),
    (r">=|at least|no less than", ">="),
    (r"<>|!=|is not|isn't|not", "<>"),
    (r"<|less than|lower than|smaller than|below|under|before", "<"),
    (r">|more than|greater than|higher than|larger than|above|over|after", ">"),
    (r"contains|contain|containing|like", "contains"),
    (r"==?|is|equals|equal to|are", "="),
)


def take_conditions(text: str, table: Table) -> Found:
    """Return all conditions that the text states about `table`, and what is left of the text."""
    conditions: list[Condition] = []
    for rule in _RULES:
        found, text = rule(text, table)
        conditions += found
    return conditions, text


def _years(text: str, table: Table) -> Found:
    """Match `between 2012 and 2014`, `from … to …`, `since 2013`, `before 2014`, `in 2013`."""
    column = table.date_column()
    if column is None:
        return [], text
    conditions: list[Condition] = []

    def at(operator: Operator, year: str) -> None:
        conditions.append(Condition(column.name, operator, year, "year"))

    def span(match: re.Match[str]) -> str:
        at(">=", match[1])
        at("<=", match[2])
        return " "

    def single(match: re.Match[str]) -> str:
        operators: dict[str, Operator] = {"since": ">=", "after": ">", "before": "<", "until": "<="}
        at(operators.get(match[1].lower(), "="), match[2])
        return " "

    text = re.sub(
        rf"\b(?:between|from)\s+({_YEAR})\s+(?:and|to)\s+({_YEAR})\b", span, text, flags=re.I
    )
    first = rf"\b(since|after|before|until|in|during|for|of)\s+(?:the\s+year\s+)?({_YEAR})\b"
    return conditions, re.sub(first, single, text, flags=re.I)


def _months(text: str, table: Table) -> Found:
    """Match `in January`, `in march 2013`."""
    column = table.date_column()
    pattern = rf"\b(?:in|during|for|of)\s+({_MONTH})\b\.?(?:\s+({_YEAR})\b)?"
    match = re.search(pattern, text, re.I)
    if column is None or match is None:
        return [], text
    month = 1 + [name[:3] for name in MONTH_NAMES.split()].index(match[1][:3].lower())
    found = [Condition(column.name, "=", f"{month:02}", "month")]
    if match[2]:
        found.append(Condition(column.name, "=", match[2], "year"))
    return found, text[: match.start()] + " " + text[match.end() :]


def _comparisons(text: str, table: Table) -> Found:
    """Match `where wind > 5 and weather is rain`, `with more than 100 horsepower`."""
    match = re.search(
        r"\b(?:where|with|whose|when|if|having)\b(.+?)(?=\bby\b|\bper\b|$)", text, re.I
    )
    if match is None:
        return [], text
    conditions = []
    for clause in re.split(r"\band\b|,|&&", match[1]):
        condition = _comparison(clause.strip(), table)
        if condition is None:
            return [], text
        conditions.append(condition)
    return conditions, text[: match.start()] + " " + text[match.end() :]


def _comparison(clause: str, table: Table) -> Condition | None:
    for pattern, operator in _OPERATORS:
        worded = re.fullmatch(
            rf"(?:the\s+)?(.*?)\s*(?:\b(?:is|are|was)\s+)?(?<!\w)(?:{pattern})(?!\w)\s*(.+)",
            clause,
            re.I,
        )
        if worded is None:
            continue
        left, right = worded[1].strip(), worded[2].strip()
        if not left:  # `more than 100 horsepower`
            number = re.fullmatch(r"([\d.]+)\s+(.+)", right)
            if number is None:
                return None
            right, left = number[1], number[2]
        columns = columns_named(words_of(left), table)
        return Condition(columns[0].name, operator, literal(right)) if columns else None
    return None


def literal(written: str) -> str | int | float:
    """Return the number in a text, or the text without quotation marks."""
    plain = written.strip().strip("'\"")
    if re.fullmatch(r"[+-]?\d{1,15}", plain):
        return int(plain)
    if re.fullmatch(r"[+-]?\d+\.\d+", plain):
        return float(plain)
    return plain


def _known_values(text: str, table: Table) -> Found:
    """Match `for rain`, `on rainy days`, `in Japan`: words that are a value of a column."""
    conditions: list[Condition] = []
    lead = r"(?:\b(?:for|in|on|of|only|from|during|with|where|when)\s+(?:it\s+is\s+|the\s+)?)?"
    for word in re.findall(r"[^\W\d]\w+", text):
        named = value_named(word, table)
        if named is None or columns_named([word], table):
            continue
        column, value = named
        conditions.append(Condition(column.name, "=", value))
        text = re.sub(rf"{lead}\b{re.escape(word)}\b", " ", text, count=1)
    return conditions, text


_RULES: tuple[Callable[[str, Table], Found], ...] = (_months, _years, _comparisons, _known_values)
