"""Commands and SQL, understood without a language model.

A rule is a row of `_RULES`: a pattern for the whole text, and the function that makes an `Ask` of
the match, or `None`. The first that returns an `Ask` is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from asks import (
    Ask,
    CompareTables,
    Describe,
    Export,
    Help,
    ListTables,
    OpenForm,
    Redraw,
    RunQuery,
    SmallTalk,
    UseDataset,
)
from query_plan import Plan
from questions import chart_kind
from schema import Schema, Table
from sql_guard import looks_like_sql
from vocabulary import columns_named, table_named, unnamed, words_of

DEFAULT_ROWS = 20
"""Default number of rows of `show TABLE`."""


def understand_command(text: str, schema: Schema) -> Ask | None:
    """Return the request of a command or of SQL; `None` if the text is neither."""
    plain = " ".join(text.split()).rstrip("?!. ")
    sql = re.sub(r"^\s*sql\s*:\s*", "", text, flags=re.I)
    if sql != text or looks_like_sql(text):
        return RunQuery(sql.strip())
    for pattern, build in _RULES:
        match = re.fullmatch(pattern, plain, re.I)
        ask = build(match, schema) if match else None
        if ask is not None:
            return ask
    return None


def _table(phrase: str, schema: Schema) -> Table | None:
    """Return the table that a phrase names, by its exact name or a similar one."""
    exact = schema.table(phrase.strip("'\"`[] "))
    return exact or table_named(words_of(phrase), schema.tables)


def _describe(match: re.Match[str], schema: Schema) -> Ask | None:
    table = _table(match["what"], schema)
    return Describe(table.name) if table else None


def _show(match: re.Match[str], schema: Schema) -> Ask | None:
    """Match `show cars`, `first 10 rows of cars`; a name that is also a column is not a table."""
    words = words_of(match["what"])
    table = _table(match["what"], schema)
    if any(_names_column(words, each) for each in schema.tables):
        table = schema.table(match["what"].strip("'\"`[] "))
    if table is None:
        return None
    limit = max(1, min(int(match["count"] or DEFAULT_ROWS), 1000))
    plan = replace(Plan(table.name), limit=limit)
    return RunQuery(plan.sql, f"First {limit} rows of {table.name}", "none")


def _names_column(words: list[str], table: Table) -> bool:
    names = [column.name for column in columns_named(words, table)]
    return bool(names) and not unnamed(words, names)


def _compare(match: re.Match[str], schema: Schema) -> Ask | None:
    """Match `compare old.csv new.csv`; `compare the years` does not name two tables."""
    if re.fullmatch(r"the|an?|my|all|these|those|both", match["old"], re.I):
        return None
    return CompareTables(match["old"].strip("'\" "), match["new"].strip("'\" "))


def _export(match: re.Match[str], schema: Schema) -> Ask | None:
    what, name = match["what"] or "", match["name"] or ""
    table = _table(what, schema) if what else None
    if what and table is None and not re.fullmatch(r"it|this|that|(last )?result", what, re.I):
        return None
    return Export(name.strip("'\" "), table.name if table else "")


def _form(match: re.Match[str], schema: Schema) -> Ask | None:
    table = _table(match["what"], schema) if match["what"] else None
    return OpenForm(table.name if table else "")


_HELP = (
    r"(?:please )?help(?: me)?|start|commands|what can (?:i|you) (?:do|ask).*|who are you"
    r"|what are you|how does this work|how do i (?:start|begin|use this)"
)
_GREETING = (
    r"(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day))"
    r"(?:,? (?:there|you|all|everyone))?"
)
_THANKS = (
    r"(?:ok(?:ay)?,? |great,? )?(?:thanks|thank you|thx|cheers)(?:,? (?:a lot|so much|very much))?"
    r"|ok(?:ay)?|great|cool|nice|perfect|wonderful|well done|good job|bye|goodbye"
)
_CHART = r"(?P<kind>bar|column|line|pie|scatter|area)s?(?:\s*(?:chart|plot|graph))?"
_SHOW = r"(?:show|open|preview|list|display|see|browse|give)?\s*(?:me\s+)?(?:the\s+)?"
_COUNT = r"(?:first\s+|top\s+)?(?P<count>\d{1,4})?\s*(?:all\s+)?(?:rows?\s+(?:of|from|in)\s+)?"
_NAMED = r"(?:the\s+)?(?:table\s+)?(?P<what>[\w'\"` -]+?)(?:\s+table)?"
_DESCRIBE = (
    r"(?:describe|desc|columns(?: of| in)?|schema of|structure of|what is in|what's in|explain)"
)
_DRAW = r"(?:(?:show|draw|make|chart|plot|redraw)\s+)?(?:it|that|this|the (?:last )?result)?\s*"
_TABLES = (
    r"(?:(?:show|list|which|what|give|show me|give me)\s+)?(?:(?:all|the)\s+)*tables"
    r"(?: are there| do you have)?|what(?: data)? (?:is|do you have)(?: here| there)?"
    r"|schema|describe"
)
_FORM = (
    r"(?:open\s+)?(?:the\s+|a\s+)?(?:query\s+)?(?:form|builder|build a query)"
    r"(?:\s+(?:for|on|of)\s+(?P<what>.+))?"
)
_EXPORT = (
    r"(?:export|save|download)(?:\s+(?:the\s+)?(?P<what>.+?))??(?:\s+(?:as|to)\s+(?P<name>.+))?"
)
_NAME = r"\S+|'[^']+'|\"[^\"]+\""

_COMPARE = (
    rf"(?:diff|compare)\s+(?P<old>{_NAME})\s+(?:(?:and|with|to|vs\.?|against)\s+)?(?P<new>{_NAME})"
)
_REDRAW = _DRAW + r"(?:again\s+)?(?:now\s+)?(?:as|into)\s+(?:an?\s+)?" + _CHART

_RULES: tuple[tuple[str, Callable[[re.Match[str], Schema], Ask | None]], ...] = (
    (_HELP, lambda *_: Help()),
    (_GREETING, lambda *_: SmallTalk("greeting")),
    (_THANKS, lambda *_: SmallTalk("thanks")),
    (_TABLES, lambda *_: ListTables()),
    (_DESCRIBE + r"\s+" + _NAMED, _describe),
    (_REDRAW, lambda match, _: Redraw(chart_kind(match["kind"]))),
    (_EXPORT, _export),
    (_FORM, _form),
    (_COMPARE, _compare),
    (r"(?:use|switch to|select)\s+(?P<name>.+)", lambda match, _: UseDataset(match["name"])),
    (_SHOW + _COUNT + _NAMED, _show),
)
