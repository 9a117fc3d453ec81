"""Allows only one statement that reads. The first of three checks.

1. This file looks at the text: one statement, beginning with a word that reads.
2. SQLite calls `authorize` for each action of a statement, and it allows only
   reading; it also finds what follows a harmless first word (`WITH … DELETE`, `EXPLAIN DROP`).
3. `connection.py` opens the file read-only, so that a mistake above cannot write.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from errors import StatementRefused

MAX_SQL_CHARACTERS = 20_000
"""Longest statement; longer than people type, and fast to parse."""

READING_WORDS = frozenset({"select", "with", "values", "explain", "pragma"})
"""The first words of statements that read."""

READING_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"}
    | {"data_version"}  # the full-text index asks for it when it is read
)
"""Pragmas that only return the schema."""

FORBIDDEN_FUNCTIONS = frozenset(
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
)
"""Functions with effects outside of the database."""

_READING_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    |(?P<text>'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z))
    |(?P<parameter>[:@$]\w+|\?\d*)
    |(?P<word>\w+)
    |(?P<end>;)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens_of(sql: str) -> Iterator[tuple[str, str]]:
    """Yield `(kind, text)` of each token; an unknown token has the kind `other`."""
    for match in _TOKEN.finditer(sql):
        yield str(match.lastgroup), match.group()


def first_word(sql: str) -> str:
    """Return the first word in lower case, after comments and brackets; "" if there is none."""
    for kind, text in tokens_of(sql[:MAX_SQL_CHARACTERS]):
        if kind == "word":
            return text.lower()
        if kind != "space" and text != "(":
            break
    return ""


def looks_like_sql(text: str) -> bool:
    """Return whether a text is SQL rather than plain words."""
    word = first_word(text)
    if word in ("select", "pragma", "attach", "detach", "vacuum", "reindex"):
        return len(text.split()) > 1 or word == "vacuum"
    shapes = {
        "explain": r"explain\s+(query\s+plan\s+)?(select|with|values|insert|update|delete|drop)\b",
        "with": r"with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\b",
        "values": r"values\s*\(",
        "insert": r"insert\s+(or\s+\w+\s+)?into\b",
        "replace": r"replace\s+into\b",
        "update": r"update\s+\S+\s+set\b",
        "delete": r"delete\s+from\b",
    }
    if word in ("create", "drop", "alter"):
        kinds = r"(temp\w*\s+|unique\s+|virtual\s+)*(table|view|index|trigger)\b"
        return re.search(word + r"\s+" + kinds, text, re.I) is not None
    return word in shapes and re.search(shapes[word], text, re.I) is not None


def check_statement(sql: str) -> str:
    """Return the single reading statement in `sql`, without the semicolon at its end.

    Raises:
        StatementRefused: It is empty, too long, several statements, or begins with another
            word. Nothing ran.
    """
    if len(sql) > MAX_SQL_CHARACTERS:
        raise StatementRefused(f"The statement is longer than {MAX_SQL_CHARACTERS:,} characters.")
    if "\0" in sql or _has_surrogate(sql):
        raise StatementRefused("The statement holds a character that is no text.")
    statement = _only_statement(sql)
    word = first_word(statement)
    if word not in READING_WORDS:
        raise StatementRefused(
            f"A statement that begins with {word.upper() or 'nothing'} does not just read.",
            "Begin with SELECT or WITH; PRAGMA table_info(name) works too.",
        )
    return statement


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _only_statement(sql: str) -> str:
    length = 0
    ended = False
    for kind, text in tokens_of(sql):
        if kind == "end":
            ended = True
        elif kind != "space" and ended:
            raise StatementRefused(
                "There is more than one statement.", "Send them one after the other."
            )
        if not ended:
            length += len(text)
    return sql[:length].strip()


def parameters_of(sql: str) -> tuple[str, ...]:
    """Return the names of the parameters (`:name`, `@name`, `$name`) in order, each once.

    Raises:
        StatementRefused: A parameter is `?`, which has no name for a form.
    """
    names: dict[str, None] = {}
    for kind, text in tokens_of(sql):
        if kind == "parameter":
            if text.startswith("?") or text[1:].isdigit():
                raise StatementRefused(
                    f"The parameter {text} has no name.",
                    "Write :name, and I will ask for its value.",
                )
            names[text[1:]] = None
    return tuple(names)


def authorize(
    action: int, first: str | None, second: str | None, _schema: str | None, _by: str | None
) -> int:
    """Return to SQLite whether a statement may do `action`: only if it reads.

    Source: SQLite, "Compile-Time Authorization Callbacks".
    """
    if action in _READING_ACTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # Asked when a built-in table function (json_each, pragma_table_info) is set up in memory. A
        # real UPDATE of the schema is refused by SQLite itself, and again by the read-only file.
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in READING_PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
