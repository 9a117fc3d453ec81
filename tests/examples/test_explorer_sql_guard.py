"""Nothing but one reading statement ever runs: text, authorizer and file each see to it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from connection import Query
from errors import ExplorerError, StatementRefused
from sql_guard import check_statement, first_word, looks_like_sql, parameters_of

WRITING = [
    "INSERT INTO t VALUES (2)",
    "UPDATE t SET a = 2",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u (a)",
    "CREATE TEMP TABLE u (a)",
    "ALTER TABLE t RENAME TO u",
    "REPLACE INTO t VALUES (2)",
    "VACUUM",
    "VACUUM INTO 'copy.sqlite'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "SAVEPOINT s",
    "ATTACH 'other.sqlite' AS other",
    "ATTACH DATABASE ':memory:' AS other",
    "DETACH main",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "WITH x AS (SELECT 1) UPDATE sqlite_master SET sql = 'x'",
    "EXPLAIN DELETE FROM t",
    "EXPLAIN QUERY PLAN DROP TABLE t",
    "/* SELECT */ DELETE FROM t",
    "-- SELECT\nDELETE FROM t",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = WAL",
    "PRAGMA writable_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA trusted_schema = ON",
    "PRAGMA database_list",
    "PRAGMA wal_checkpoint",
    "PRAGMA table_info(t); DELETE FROM t",
    "SELECT load_extension('evil')",
    "SELECT load_extension('evil', 'entry') FROM t",
    "SELECT writefile('evil', 'x')",
    "SELECT readfile('secret')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT 1; DELETE FROM t",
    "SELECT 1; SELECT 2",
    "SELECT 1;;;DELETE FROM t",
    "SELECT ';'; DROP TABLE t",
    "",
    "   ",
    ";",
    "-- nothing",
    "SELECT 1\0; DELETE FROM t",
    "SELECT '\ud800'",
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE INDEX i ON t (a);"
    )
    connection.close()
    return path


@pytest.mark.parametrize("sql", WRITING)
def test_what_does_not_just_read_is_refused_and_changes_no_byte(database: Path, sql: str) -> None:
    before = database.read_bytes()
    with pytest.raises(ExplorerError):
        Query(database, sql).run()
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == ["data.sqlite"]


@pytest.mark.parametrize("sql", [sql for sql in WRITING if first_word(sql) and ";" not in sql])
def test_the_authorizer_alone_refuses_all_of_it(
    database: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connection.check_statement", lambda sql: sql)
    before = database.read_bytes()
    with pytest.raises((ExplorerError, UnicodeEncodeError)):
        Query(database, sql).run()
    assert database.read_bytes() == before


@pytest.mark.parametrize("sql", WRITING)
def test_without_text_check_and_authorizer_the_file_is_still_read_only(
    database: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connection.check_statement", lambda sql: sql)
    monkeypatch.setattr("connection.authorize", lambda *_: sqlite3.SQLITE_OK)
    monkeypatch.chdir(database.parent)
    before = database.read_bytes()
    with contextlib.suppress(ExplorerError, UnicodeEncodeError):
        Query(database, sql).run()
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == ["data.sqlite"]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT a FROM t", [[1]]),
        ("select a from t;", [[1]]),
        ("SELECT a FROM t ; -- the end\n", [[1]]),
        ("WITH x AS (SELECT a FROM t) SELECT a + 1 FROM x", [[2]]),
        (
            "WITH RECURSIVE n(i) AS (VALUES (1) UNION SELECT i + 1 FROM n LIMIT 2) SELECT i FROM n",
            [[1], [2]],
        ),
        ("VALUES (1, 2)", [[1, 2]]),
        ("/* why */ SELECT 1", [[1]]),
        ("SELECT ';'", [[";"]]),
        ("SELECT 'it''s; fine'", [["it's; fine"]]),
        ('SELECT 1 AS "a;b"', [[1]]),
        ("PRAGMA table_info(t)", [[0, "a", "", 0, None, 0]]),
        ("SELECT name FROM pragma_table_info('t')", [["a"]]),
        ("SELECT value FROM json_each('[7]')", [[7]]),
        ("SELECT name FROM sqlite_master", [["t"], ["i"]]),
    ],
)
def test_what_reads_runs(database: Path, sql: str, rows: list[list[object]]) -> None:
    assert Query(database, sql).run().rows == rows


def test_an_explanation_of_a_reading_statement_runs(database: Path) -> None:
    result = Query(database, "EXPLAIN QUERY PLAN SELECT a FROM t").run()
    assert result.columns == ("id", "parent", "notused", "detail")


def test_a_full_text_index_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "fts.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE VIRTUAL TABLE f USING fts5(words); INSERT INTO f VALUES ('hello world');"
    )
    connection.close()
    assert Query(path, "SELECT words FROM f WHERE f MATCH 'hello'").run().rows == [["hello world"]]


def test_the_refusal_says_which_word_was_wrong_and_what_to_write() -> None:
    with pytest.raises(StatementRefused, match="DELETE does not just read") as refused:
        check_statement("delete from t")
    assert refused.value.hint == "Begin with SELECT or WITH; PRAGMA table_info(name) works too."


def test_a_statement_has_at_most_20000_characters() -> None:
    assert check_statement("SELECT 1 --" + "x" * 19_989) == "SELECT 1 --" + "x" * 19_989
    with pytest.raises(StatementRefused, match="longer than 20,000"):
        check_statement("SELECT 1 --" + "x" * 19_990)


@pytest.mark.parametrize("quote", ["'", '"', "`", "["])
def test_a_string_that_never_ends_is_scanned_in_linear_time(quote: str) -> None:
    check_statement("SELECT " + quote * 19_000 + " x")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("  -- c\n/* d */ ((select 1", "select"),
        ("'select'", ""),
        ("", ""),
        ("Explain x", "explain"),
    ],
)
def test_the_first_word_is_found_after_comments_and_brackets(sql: str, word: str) -> None:
    assert first_word(sql) == word


@pytest.mark.parametrize(
    "text",
    [
        "select * from t",
        "SELECT 1",
        "with x as (select 1) select * from x",
        "with recursive n(i) as (select 1) select * from n",
        "values (1)",
        "explain query plan select 1",
        "pragma table_info(t)",
        "delete from t",
        "insert into t values (1)",
        "update t set a = 1",
        "drop table t",
        "create unique index i on t (a)",
        "attach 'x' as y",
        "vacuum",
    ],
)
def test_sql_is_recognized_as_sql(text: str) -> None:
    assert looks_like_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "show the average temperature by month",
        "with the most wind",
        "values by month",
        "explain cars",
        "update me on the cars",
        "create a chart of wind",
        "drop the outliers",
        "delete",
        "select",
        "",
    ],
)
def test_plain_words_are_not_taken_for_sql(text: str) -> None:
    assert not looks_like_sql(text)


def test_parameters_are_found_by_name_each_once_and_not_in_strings() -> None:
    sql = "SELECT ':no', \":no\" /* :no */ FROM t WHERE a > :low AND a < @high OR a = :low -- :no"
    assert parameters_of(sql) == ("low", "high")


@pytest.mark.parametrize("sql", ["SELECT ?", "SELECT ?1", "SELECT $1"])
def test_a_parameter_without_a_name_is_refused(sql: str) -> None:
    with pytest.raises(StatementRefused, match="has no name"):
        parameters_of(sql)
