"""Turns a plain question about one table into a `Plan`, with rules in the order of this file.

A question has up to five parts, and each rule removes one from the text: how many (`top 5`),
which rows (`in 2013`), by what (`by month`), computed how (`average`), of what (`temperature`).
The answer names the words that are left, so that nothing is ignored silently.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

from query_plan import Function, Group, Measure, Plan
from question_conditions import take_conditions
from question_words import (
    FUNCTIONS,
    MAX_LISTED_ROWS,
    MAX_MEASURES,
    PARTS,
    ROW_WORDS,
    SMALL_WORDS,
    SUMMED_WORDS,
)
from schema import Column, Table
from vocabulary import columns_named, stem, unnamed, words_of

_HIGH = r"(top|best|highest|largest|biggest|most)"
_LOW = r"(bottom|worst|lowest|smallest|least|fewest)"

_LIMITS = (
    (rf"(?<!\bat )\b{_HIGH}\s+(\d{{1,3}})\b", 2, True),
    (rf"(?<!\bat )\b{_LOW}\s+(\d{{1,3}})\b", 2, False),
    (rf"\b(\d{{1,3}})\s+{_HIGH}\b", 1, True),
    (rf"\b(\d{{1,3}})\s+{_LOW}\b", 1, False),
)
"""Patterns of limits: the pattern, the group with the number, and the end to count from."""


@dataclass(frozen=True)
class Reading:
    """The result of the rules for a question."""

    plan: Plan
    leftover: tuple[str, ...]
    """Words that were not understood."""
    points: int
    """How much of the question was understood, to choose between tables."""


def read_question(text: str, table: Table) -> Reading | None:
    """Return what `text` asks about `table`; `None` if it names nothing in the table."""
    plan = Plan(table.name)
    plan, rest = _take_limit(plan, _as_ranking(text))
    conditions, rest = take_conditions(rest, table)
    plan = replace(plan, conditions=tuple(conditions))
    if plan.limit is not None:
        finished, rest = _ranking(plan, rest, table)
    else:
        finished, rest = _grouping(plan, rest, table)
    if finished is None:
        return None
    mentioned, leftover = _leftover(rest, table)
    points = 2 * (len(finished.measures) > 0) + 2 * len(finished.groups) + 2 * len(conditions)
    points += bool(finished.order_by) + 3 * mentioned - len(leftover)
    return Reading(finished, leftover, points)


def _as_ranking(text: str) -> str:
    """Turn `which weather has the most wind` into `top 5 weather by wind`."""
    match = re.match(
        r"(?:which|what)\s+(.+?)\s+(?:has|had|have|got)\s+the\s+"
        r"(?:(most|highest|largest|biggest|best)|least|lowest|smallest|worst|fewest)\s+(.+)",
        text,
        re.I,
    )
    if match is None:
        return text
    return f"{'top' if match[2] else 'bottom'} 5 {match[1]} by {match[3]}"


def _take_limit(plan: Plan, text: str) -> tuple[Plan, str]:
    """Remove `top 5`, `the 10 lowest`, `5 windiest` from the text."""
    for pattern, number, descending in _LIMITS:
        match = re.search(pattern, text, re.I)
        if match:
            rest = text[: match.start()] + " " + text[match.end() :]
            return _limited(plan, match[number], descending=descending), rest
    match = re.search(r"\b(\d{1,3})\s+(\w{3,})est\s+(\w+)", text, re.I)
    if match:  # `the 5 windiest days` is `top 5 days by windi`
        rest = f"{text[: match.start()]} {match[3]} by {match[2]} {text[match.end() :]}"
        return _limited(plan, match[1], descending=True), rest
    return plan, text


def _limited(plan: Plan, number: str, *, descending: bool) -> Plan:
    return replace(plan, limit=max(1, min(int(number), 500)), descending=descending)


def _take_function(text: str) -> tuple[Function | None, str]:
    for pattern, function in FUNCTIONS:
        match = re.search(rf"\b(?:{pattern})\b", text, re.I)
        if match:
            return function, text[: match.start()] + " " + text[match.end() :]
    return None, text


def _ranking(plan: Plan, text: str, table: Table) -> tuple[Plan | None, str]:
    """Decide between rows (`top 5 cars by horsepower`) and groups (`top 3 weather by wind`)."""
    subject, _, measure_text = re.sub(r"\b(in|with) the\b", "by", text).partition(" by ")
    function, measure_text = _take_function(measure_text)
    if not measure_text:  # `lowest 5 temperatures`
        subject, measure_text = "", subject
    measured, subjects = _content(measure_text, table), _content(subject, table)
    measures = columns_named(measured, table, ["number"])[:1]
    groups = columns_named(subjects, table, ["text"])[:1]
    names = [column.name for column in measures + groups]
    rest = " ".join(unnamed(measured + subjects, names))
    if not measures and not groups:
        return None, rest
    if not groups:
        columns = () if len(table.columns) <= 9 else _identity(table, measures[0])
        return replace(plan, columns=columns, order_by=measures[0].name), rest
    group = Group(groups[0].name)
    if not measures:
        plan = replace(plan, measures=(Measure("count"),), groups=(group,), order_by="count")
        return plan, rest
    measure = Measure(function or _usual_function(measures[0]), measures[0].name)
    return replace(plan, measures=(measure,), groups=(group,), order_by=measure.alias), rest


def _identity(table: Table, measure: Column) -> tuple[str, ...]:
    """Return a few columns that identify a row, and the column that ranks it."""
    telling = [column.name for column in table.columns if column.kind != "number"][:4]
    return (*telling, measure.name)


def _grouping(plan: Plan, text: str, table: Table) -> tuple[Plan | None, str]:
    groups, text = _take_groups(text, table)
    function, text = _take_function(text)
    measures, text = _take_measures(text, table, function)
    if not measures and not groups and function is None and plan.conditions:
        return replace(plan, limit=MAX_LISTED_ROWS), text
    if not measures and not groups and not (function == "count" and plan.conditions):
        return None, text
    if not measures and groups and function not in (None, "count"):
        numbers = table.of_kind("number")
        measures = tuple(Measure(function, column.name) for column in numbers[:MAX_MEASURES])
    if not measures:
        measures = (Measure("count"),)
    groups = tuple(_coarser(group, table, text) for group in groups)
    plan = replace(plan, measures=measures, groups=groups)
    texts = {column.name for column in table.of_kind("text")}
    if len(groups) == 1 and groups[0].column in texts:  # the longest bar first
        plan = replace(plan, order_by=measures[0].alias)
    return plan, text


def _take_groups(text: str, table: Table) -> tuple[tuple[Group, ...], str]:
    """Remove `by month and weather`, `per year`, `monthly`, `over time` from the text."""
    lead = r"\b(?:(?:grouped\s+)?by|per|(?:for\s+|in\s+)?(?:each|every)|over|across|along)\s+"
    match = re.search(rf"{lead}(?:the\s+)?(.+)$", text, re.I)
    groups: list[Group] = []
    if match:
        phrase = " ".join(re.sub(lead, " and ", match[1], flags=re.I).split())
        rest = []
        for words in [phrase] if phrase.lower() in PARTS else re.split(r"\band\b|,", phrase):
            found, unused = _group_at_start(words.split(), table)
            groups += found
            rest += unused
        text = text[: match.start()] + " " + " ".join(rest) if groups else text
    adverb = re.search(r"\b(monthly|yearly|annual|quarterly|daily|hourly)\b", text, re.I)
    if adverb and not groups:
        groups += _group(adverb[1], table)
        text = text[: adverb.start()] + " " + text[adverb.end() :]
    return tuple(dict.fromkeys(groups))[:2], text


def _group_at_start(words: list[str], table: Table) -> tuple[list[Group], list[str]]:
    """Return what the longest beginning of the words names, and the words after it."""
    words = list(itertools.dropwhile(lambda word: word.lower() in SMALL_WORDS, words))
    for length in range(len(words), 0, -1):
        found = _group(" ".join(words[:length]), table)
        if found:
            return found, words[length:]
    return [], words


def _group(phrase: str, table: Table) -> list[Group]:
    words = words_of(phrase)
    part = PARTS.get(" ".join(stem(word) for word in words)) or PARTS.get(phrase.lower())
    named = columns_named(words, table)
    date = next((column for column in named if column.kind == "date"), None) or table.date_column()
    if part and date and not any(column.kind != "date" for column in named):
        return [Group(date.name, part)]
    if not named or unnamed(words, [column.name for column in named]):
        return []
    best = min(named, key=lambda column: ("text", "date", "number").index(column.kind))
    return [Group(best.name, "day" if best.kind == "date" else "value")]


def _coarser(group: Group, table: Table, text: str) -> Group:
    """Group thousands of days by month, unless the question asks for days."""
    many = (table.row_count or 0) > 400
    if group.part == "day" and many and "daily" not in text.lower():
        return Group(group.column, "year-month")
    return group


def _take_measures(
    text: str, table: Table, function: Function | None
) -> tuple[tuple[Measure, ...], str]:
    """Remove the computed columns from the text: `wind and precipitation`."""
    measures: list[Measure] = []
    rest: list[str] = []
    for phrase in re.split(r"\band\b|,|&", text):
        words = _content(phrase, table)
        if function == "count":
            named = columns_named(words, table, ["text", "date"])[:1]
            measures += [Measure("distinct", column.name) for column in named]
        else:
            named = columns_named(words, table, ["number"])
            named = named or _named_somewhere(words, table)
            measures += [
                Measure(function or _usual_function(column), column.name) for column in named
            ]
        rest.append(
            " ".join(unnamed(words, [column.name for column in named])) if named else phrase
        )
    return tuple(dict.fromkeys(measures))[:MAX_MEASURES], " ".join(rest)


def _named_somewhere(words: list[str], table: Table) -> list[Column]:
    """Return the columns of numbers that single words of a phrase name."""
    found = [column for word in words for column in columns_named([word], table, ["number"])]
    return list(dict.fromkeys(found))


def _usual_function(column: Column) -> Function:
    summed = any(stem(word) in SUMMED_WORDS for word in words_of(column.name))
    return "sum" if summed else "avg"


def _content(text: str, table: Table) -> list[str]:
    """Return the words that could name a column: no small words, no words for rows."""
    rows = ROW_WORDS | {stem(word) for word in words_of(table.name)}
    columns = {word for column in table.columns for word in words_of(column.name)}
    return [
        word
        for word in words_of(text)
        if word not in SMALL_WORDS and (stem(word) not in rows or word in columns)
    ]


def _leftover(text: str, table: Table) -> tuple[bool, tuple[str, ...]]:
    """Return whether the rest of the text names the table, and which words are not understood."""
    names = {stem(word) for word in words_of(table.name)}
    words = {stem(word) for word in words_of(text)}
    unknown = [
        word
        for word in words_of(text)
        if word not in SMALL_WORDS and stem(word) not in names | ROW_WORDS and not word.isdigit()
    ]
    return bool(names) and names <= words, tuple(dict.fromkeys(unknown))
