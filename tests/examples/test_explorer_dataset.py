"""Data sets of every origin: SQLite files, CSV files, folders; and what their schema says."""

from __future__ import annotations

import gc
import sqlite3
from pathlib import Path

import pytest
from dataset import Dataset, dataset_of_csv, open_dataset, table_name
from errors import DataUnreadable, ExplorerError
from schema import Column


def sqlite_file(path: Path, script: str) -> Path:
    """A SQLite file made by `script`."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def test_a_sqlite_file_is_opened_where_it_lies(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "shop.db",
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, amount REAL, day DATE);"
        "INSERT INTO sale VALUES (1, 2.5, '2024-05-01'), (2, 3.5, '2024-05-02');"
        "CREATE VIEW total AS SELECT sum(amount) AS amount FROM sale;",
    )
    dataset = open_dataset(path)
    assert (dataset.name, dataset.path) == ("shop", path)
    assert [(table.name, table.row_count) for table in dataset.schema.tables] == [
        ("sale", 2),
        ("total", 1),
    ]
    assert dataset.schema.tables[0].columns == (
        Column("id", "INTEGER", "number"),
        Column("amount", "REAL", "number"),
        Column("day", "DATE", "date"),
    )


def test_a_csv_file_becomes_a_private_database_that_goes_with_its_data_set(tmp_path: Path) -> None:
    path = tmp_path / "My data (2).csv"
    path.write_text("a,b\n1,2\n")
    dataset = open_dataset(path)
    private = dataset.path
    assert [table.name for table in dataset.schema.tables] == ["my_data_2"]
    assert private.stat().st_mode & 0o077 == 0 or private.parent.stat().st_mode & 0o077 == 0
    del dataset
    gc.collect()
    assert not private.parent.exists()


def test_every_csv_file_of_a_folder_becomes_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.tsv").write_text("x\ty\n1\t2\n")
    (tmp_path / "README.md").write_text("no data")
    assert [table.name for table in open_dataset(tmp_path).schema.tables] == ["a", "b"]


def test_an_empty_file_of_a_folder_hides_no_other_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("")
    (tmp_path / "c.csv").write_text('{"a": 1}')
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "e.csv").write_text("x\n2\n")
    dataset = open_dataset(tmp_path)
    assert [table.name for table in dataset.schema.tables] == ["a", "e"]
    assert [file_name for file_name, _ in dataset.unread] == ["b.csv", "c.csv", "d.csv"]
    assert dataset.unread[0][1] == "The file is empty."
    (tmp_path / "a.csv").unlink()
    (tmp_path / "e.csv").unlink()
    with pytest.raises(DataUnreadable, match="empty"):
        open_dataset(tmp_path)


def test_missing_data_is_reported_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DataUnreadable, match="holds no CSV"):
        open_dataset(tmp_path)
    with pytest.raises(DataUnreadable, match="cannot be read") as unreadable:
        open_dataset(tmp_path / "gone.csv")
    assert "EXPLORER_DATA" in unreadable.value.hint


def test_a_damaged_database_is_an_error_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    with pytest.raises(ExplorerError, match="SQLite says"):
        open_dataset(path)


def test_a_view_that_does_not_work_does_not_hide_the_other_tables(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "d.db",
        "CREATE TABLE good (a); CREATE TABLE gone (a);"
        "CREATE VIEW bad AS SELECT a FROM gone; DROP TABLE gone;",
    )
    tables = open_dataset(path).schema.tables
    assert [(table.name, table.row_count) for table in tables] == [("bad", None), ("good", 0)]


def test_the_tables_behind_a_full_text_index_are_hidden(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "d.db", "CREATE VIRTUAL TABLE f USING fts5(words);")
    assert [table.name for table in open_dataset(path).schema.tables] == ["f"]


def test_names_with_every_kind_of_sign_are_read(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "d.db",
        """CREATE TABLE "a ""b"" ; DROP TABLE x --" ("c 'd'" TEXT, "é" INT);"""
        """INSERT INTO "a ""b"" ; DROP TABLE x --" VALUES ('v', 1);""",
    )
    (table,) = open_dataset(path).schema.tables
    assert table.name == 'a "b" ; DROP TABLE x --'
    assert table.columns == (Column("c 'd'", "TEXT", "text", ("v",)), Column("é", "INT", "number"))


def test_a_view_that_never_ends_does_not_hold_up_the_schema(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "d.db",
        "CREATE VIEW endless AS WITH RECURSIVE n(i) AS "
        "(VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;",
    )
    (table,) = open_dataset(path).schema.tables
    assert (table.name, table.row_count) == ("endless", None)


def test_few_values_of_a_text_column_are_known_many_are_not(samples: Dataset) -> None:
    weather = samples.schema.table("SEATTLE_weather")
    cars = samples.schema.table("cars")
    assert weather is not None
    assert cars is not None
    assert weather.columns[5].values == ("drizzle", "rain", "sun", "snow", "fog")
    assert cars.columns[0] == Column("Name", "TEXT", "text", ())


def test_a_table_has_the_kinds_of_its_values(small: Dataset) -> None:
    (table,) = small.schema.tables
    assert [column.kind for column in table.columns] == ["date", "text", "number", "number"]
    assert table.date_column() == table.columns[0]
    assert table.of_kind("number") == table.columns[2:]


@pytest.mark.parametrize(
    ("file_name", "table"),
    [
        ("cars.csv", "cars"),
        ("Seattle weather (2).csv", "seattle_weather_2"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\Größe.CSV", "größe"),
        ("2024.csv", "t_2024"),
        ("sqlite_master.csv", "data_sqlite_master"),
        (".csv", "data"),
        ("", "data"),
        ("x" * 200 + ".csv", "x" * 60),
    ],
)
def test_a_file_name_becomes_the_name_of_a_table(file_name: str, table: str) -> None:
    assert table_name(file_name) == table


def test_two_files_become_two_tables_of_one_data_set() -> None:
    dataset = dataset_of_csv("d", [("a.csv", b"x\n1\n"), ("b.csv", b"x\n2\n")])
    assert dataset.query("SELECT a.x, b.x FROM a, b").run().rows == [[1, 2]]
