"""What one query may cost, how it is stopped, and what its values become."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from connection import Query, QueryLimits, quote_name, quote_text
from dataset import Dataset
from errors import QueryCancelled, QueryFailed, QueryTimedOut

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
ENDLESS_ROWS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


def test_a_query_without_end_is_stopped_at_its_time_limit(small: Dataset) -> None:
    with pytest.raises(QueryTimedOut, match=r"stopped after 0\.2 seconds"):
        small.query(ENDLESS, limits=QueryLimits(timeout_s=0.2)).run()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM n, n AS b, n AS c",
        "SELECT i FROM n ORDER BY i % 7, i % 11 DESC",
        "SELECT group_concat(i) FROM n",
        "SELECT DISTINCT i FROM n",
    ],
)
def test_whatever_takes_long_is_stopped(small: Dataset, sql: str) -> None:
    numbers = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 100000000) "
    limits = QueryLimits(max_rows=10**9, max_bytes=10**12, timeout_s=0.3)
    with pytest.raises((QueryTimedOut, QueryFailed)):
        small.query(numbers + sql, limits=limits).run()


def test_a_query_can_be_cancelled_from_another_thread(small: Dataset) -> None:
    query = small.query(ENDLESS)
    timer = threading.Timer(0.05, query.cancel)
    timer.start()
    with pytest.raises(QueryCancelled):
        query.run()
    timer.join()


def test_a_query_that_was_cancelled_before_it_ran_gives_no_rows(small: Dataset) -> None:
    query = small.query(ENDLESS)
    query.cancel()
    with pytest.raises(QueryCancelled):
        query.run()


async def test_cancelling_the_task_stops_the_thread_behind_it(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    run = Query.run

    def watched(query: Query) -> object:
        try:
            return run(query)
        except QueryCancelled:
            stopped.set()
            raise

    monkeypatch.setattr(Query, "run", watched)
    task = asyncio.create_task(small.ask(ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(stopped.wait, 10)


def test_more_rows_than_the_limit_are_cut_and_the_result_says_so(small: Dataset) -> None:
    result = small.query(ENDLESS_ROWS, limits=QueryLimits(max_rows=3)).run()
    assert (result.rows, result.truncated) == ([[1], [2], [3]], True)


def test_exactly_as_many_rows_as_the_limit_are_not_cut(small: Dataset) -> None:
    result = small.query("VALUES (1), (2), (3)", limits=QueryLimits(max_rows=3)).run()
    assert (result.rows, result.truncated) == ([[1], [2], [3]], False)


def test_rows_are_cut_by_their_size_too(small: Dataset) -> None:
    sql = ENDLESS_ROWS.replace("SELECT i FROM", "SELECT hex(zeroblob(500)) FROM")
    result = small.query(sql, limits=QueryLimits(max_bytes=2_500)).run()
    assert (len(result.rows), result.truncated) == (3, True)


def test_a_single_value_cannot_grow_without_end(small: Dataset) -> None:
    with pytest.raises(QueryFailed, match="larger than 2 MiB") as failed:
        small.query("SELECT zeroblob(1000000000)").run()
    assert failed.value.hint.startswith("Name the columns that you need")


def test_a_row_with_a_huge_value_can_be_read_without_it(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t AS SELECT 1 AS a, zeroblob(3000000) AS photo, 2 AS b")
    connection.close()
    with pytest.raises(QueryFailed, match="larger than 2 MiB"):
        Query(path, "SELECT * FROM t").run()
    assert Query(path, "SELECT a, length(photo), b FROM t").run().rows == [[1, 3_000_000, 2]]


def test_a_pattern_cannot_be_long(small: Dataset) -> None:
    with pytest.raises(QueryFailed, match="pattern too complex"):
        small.query("SELECT 'x' LIKE :pattern", {"pattern": "%" * 501}).run()


def test_a_database_that_somebody_writes_to_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (a)")
    assert Query(path, "SELECT count(*) FROM t").run().rows == [[0]]
    writer.execute("INSERT INTO t VALUES (1)")
    assert Query(path, "SELECT count(*) FROM t").run().rows == [[1]]
    writer.close()


def test_a_locked_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "held.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE t (a)")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(QueryFailed, match="locked"):
        Query(path, "SELECT count(*) FROM t").run()
    holder.close()


def test_values_become_plain_json(small: Dataset) -> None:
    result = small.query("SELECT x'00ff', 9e999, -9e999, NULL, 'é', 1.5, 7").run()
    assert result.rows == [["(2 bytes)", "inf", "-inf", None, "é", 1.5, 7]]


def test_text_that_is_not_utf_8_is_read_with_marks(tmp_path: Path) -> None:
    path = tmp_path / "latin.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t AS SELECT CAST(x'e9' AS TEXT) AS a")
    connection.close()
    assert Query(path, "SELECT a FROM t").run().rows == [["\ufffd"]]


def test_parameters_are_values_and_never_sql(small: Dataset) -> None:
    result = small.query("SELECT :value", {"value": "1); DROP TABLE fruit"}).run()
    assert result.rows == [["1); DROP TABLE fruit"]]


def test_a_number_beyond_64_bits_is_an_error_that_can_be_read(small: Dataset) -> None:
    with pytest.raises(QueryFailed):
        small.query("SELECT :value", {"value": 2**70}).run()


def test_a_missing_parameter_is_an_error_that_can_be_read(small: Dataset) -> None:
    with pytest.raises(QueryFailed, match="binding"):
        small.query("SELECT :value").run()


def test_a_wrong_column_gets_the_names_that_resemble_it(small: Dataset) -> None:
    with pytest.raises(QueryFailed) as failed:
        small.query("SELECT wieght FROM fruit").run()
    assert failed.value.message == "No column named wieght. Did you mean weight?"


def test_a_wrong_table_gets_the_names_that_there_are(small: Dataset) -> None:
    with pytest.raises(QueryFailed) as failed:
        small.query("SELECT 1 FROM zzz").run()
    assert failed.value.message == "No table named zzz. Available: fruit."


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="unable to open"):
        Query(tmp_path / "gone.sqlite", "SELECT 1").run()
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_signs_of_an_address_is_only_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=rwc#b%20.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert Query(path, "SELECT count(*) FROM t").run().rows == [[0]]


def test_names_and_texts_are_quoted() -> None:
    assert quote_name('a"b') == '"a""b"'
    assert quote_text("it's") == "'it''s'"
