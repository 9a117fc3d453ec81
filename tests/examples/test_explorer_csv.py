"""CSV as people write it: marks of order, semicolons, line breaks in cells, gaps, odd dates."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from cell_kinds import ColumnGuess
from connection import Cell
from csv_import import CsvImport
from csv_text import column_names, find_delimiter, is_header, read_csv_text
from dataset import Dataset, dataset_of_csv
from errors import DataUnreadable


def rows_of(content: bytes | str) -> list[list[Cell]]:
    """What is in the table after the import, headers first."""
    raw = content.encode() if isinstance(content, str) else content
    dataset = dataset_of_csv("d", [("t.csv", raw)])
    result = dataset.query("SELECT * FROM t").run()
    return [list(result.columns), *result.rows]


def run(steps: CsvImport) -> None:
    """All steps of an import."""
    while not steps.done:
        steps.step()


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,x\n", [["a", "b"], [1, "x"]]),
        (b"\xef\xbb\xbfa,b\n1,x\n", [["a", "b"], [1, "x"]]),
        ("a,b\n1,é\n".encode("utf-16"), [["a", "b"], [1, "é"]]),
        ("a,b\n1,é\n".encode("cp1252"), [["a", "b"], [1, "é"]]),
        ("a,b\r\n1,x\r\n2,y\r\n", [["a", "b"], [1, "x"], [2, "y"]]),
        ("a,b\r1,x\r", [["a", "b"], [1, "x"]]),
        ("a,b\n1,x", [["a", "b"], [1, "x"]]),
        ("a;b\n1,5;x\n2,25;y\n", [["a", "b"], [1.5, "x"], [2.25, "y"]]),
        ("a\tb\n1\tx, y\n", [["a", "b"], [1, "x, y"]]),
        ("a|b\n1|x\n", [["a", "b"], [1, "x"]]),
        ("sep=;\na;b\n1;x\n", [["a", "b"], [1, "x"]]),
        ('a,b\n1,"x\ny"\n', [["a", "b"], [1, "x\ny"]]),
        ('a,b\n1,"say ""hi"", please"\n', [["a", "b"], [1, 'say "hi", please']]),
        ("a,b\n1,\n,y\n", [["a", "b"], [1, None], [None, "y"]]),
        ("a,b\n\n1,x\n\n\n2,y\n", [["a", "b"], [1, "x"], [2, "y"]]),
        ("a,b\n1\n2,y,extra\n3,z\n", [["a", "b"], [1, None], [2, "y"], [3, "z"]]),
        ("a, b ,a,,A\n1,2,3,4,5\n", [["a", "b", "a_2", "column_4", "A_3"], [1, 2, 3, 4, 5]]),
        ("1,2\n3,4\n", [["column_1", "column_2"], [1, 2], [3, 4]]),
        ("only\nx\ny\n", [["only"], ["x"], ["y"]]),
        ("a,b\n", [["a", "b"]]),
        ("select,order by\n1,2\n", [["select", "order by"], [1, 2]]),
        ('"a""b",c\n1,2\n', [['a"b', "c"], [1, 2]]),
        ("a,b\n007,x\n008,y\n", [["a", "b"], ["007", "x"], ["008", "y"]]),
        ("a\n1\n2.5\n", [["a"], [1.0], [2.5]]),
        ("a\n1\nN/A\nNaN\n-\n", [["a"], [1], [None], [None], [None]]),
        ("a,b\nx,-\nNA,1\n", [["a", "b"], ["x", None], ["NA", 1]]),
        ("a\n1\n2\nmany\n", [["a"], ["1"], ["2"], ["many"]]),
        ('a,b\n"1,234.5",x\n999,y\n', [["a", "b"], [1234.5, "x"], [999.0, "y"]]),
        ('a,b\n"1,234",x\n12345,y\n0,z\n', [["a", "b"], [1234.0, "x"], [12345.0, "y"], [0.0, "z"]]),
        ("a;b\n1.234,5;x\n0,5;y\n", [["a", "b"], [1234.5, "x"], [0.5, "y"]]),
        (" a ,b\n 1 , x \n", [["a", "b"], [1, " x "]]),
        ("a\n99999999999999999999\n", [["a"], [1e20]]),
        ("country,2010,2011\nFrance,1,2\n", [["country", "2010", "2011"], ["France", 1, 2]]),
    ],
)
def test_csv_is_read_as_it_was_meant(content: bytes | str, rows: list[list[Cell]]) -> None:
    assert rows_of(content) == rows


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["2012/01/05", "2012/1/6"], ["2012-01-05", "2012-01-06"]),
        (["2012-01-05"], ["2012-01-05"]),
        (["2012-1-5"], ["2012-01-05"]),
        (["05.01.2012", "31.12.2012"], ["2012-01-05", "2012-12-31"]),
        (["01/31/2012", "02/01/2012"], ["2012-01-31", "2012-02-01"]),
        (["31/01/2012", "01/02/2012"], ["2012-01-31", "2012-02-01"]),
        (["2012/01/05 7:30"], ["2012-01-05 07:30"]),
        (["2012-01-05T07:30:15"], ["2012-01-05 07:30:15"]),
        (["1/31/2012 17:30"], ["2012-01-31 17:30"]),
        (["01/02/2012", "03/04/2012"], ["01/02/2012", "03/04/2012"]),
        (["2012-01-05", "soon"], ["2012-01-05", "soon"]),
    ],
)
def test_dates_become_iso_dates_where_they_can_be_read_in_one_way_only(
    written: list[str], read: list[str]
) -> None:
    assert rows_of("day,x\n" + "".join(f"{day},1\n" for day in written)) == [
        ["day", "x"],
        *([day, 1] for day in read),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"PK\x03\x04rest", "Excel workbook"),
        (b"PAR1rest", "Parquet"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "neither text nor SQLite"),
        (b'{"a": 1}', "looks like JSON"),
        (b"[1, 2]", "looks like JSON"),
        (",".join(f"c{n}" for n in range(1001)).encode() + b"\n", "1,001 columns"),
        (b'a,b\n1,"never closed' + b"x\n" * 100_000, "Line"),
    ],
)
def test_other_formats_are_not_taken_for_csv(content: bytes, message: str) -> None:
    with pytest.raises(DataUnreadable, match=message):
        dataset_of_csv("d", [("t.csv", content)])


def test_an_import_that_fails_leaves_no_table(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    content = b"a,b\n" + b"1,2\n" * 6_000 + b'1,"never closed' + b"x\n" * 100_000
    with CsvImport(path, "t", content) as steps, pytest.raises(DataUnreadable):
        run(steps)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]
    connection.close()


def test_an_import_that_is_left_half_way_leaves_no_table(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with CsvImport(path, "t", b"a,b\n" + b"1,2\n" * 12_000) as steps:
        while not steps.rows_stored:
            steps.step()
        assert (steps.rows_seen, steps.rows_stored, steps.done) == (12_000, 5_000, False)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]
    connection.close()


def test_rows_of_uneven_length_are_counted(tmp_path: Path) -> None:
    with CsvImport(tmp_path / "d.sqlite", "t", b"a,b\n1\n2,3\n4,5,6\n7,8\n") as steps:
        run(steps)
    assert (steps.rows_stored, steps.uneven_rows) == (4, 2)


def test_a_hundred_thousand_rows_are_imported_and_every_cell_counts_for_its_column() -> None:
    """The limit of time is that of every test; on a slow core it takes about a second."""
    lines = [f'{n},2012/01/{n % 28 + 1:02},{n / 2},"row {n}\nof many"' for n in range(100_000)]
    lines[99_999] = "last,2012/01/01,0.5,end"
    dataset = dataset_of_csv(
        "big", [("big.csv", ("n,day,half,text\n" + "\n".join(lines)).encode())]
    )
    table = dataset.schema.tables[0]
    assert table.row_count == 100_000
    assert [column.declared for column in table.columns] == ["TEXT", "TEXT", "REAL", "TEXT"]
    found = dataset.query("SELECT n, day, half, text FROM big WHERE n IN ('5', 'last')").run().rows
    assert found == [
        ["5", "2012-01-06", 2.5, "row 5\nof many"],
        ["last", "2012-01-01", 0.5, "end"],
    ]


def test_the_sample_data_has_the_columns_and_rows_of_its_source(samples: Dataset) -> None:
    weather = samples.query("SELECT * FROM seattle_weather LIMIT 1").run()
    assert weather.columns == ("date", "precipitation", "temp_max", "temp_min", "wind", "weather")
    assert weather.rows == [["2012-01-01", 0.0, 12.8, 5.0, 4.7, "drizzle"]]
    assert samples.query("SELECT count(*) FROM seattle_weather").run().rows == [[1461]]
    assert samples.query("SELECT count(*), count(Horsepower) FROM cars").run().rows == [[406, 400]]


def test_the_delimiter_is_the_one_that_cuts_rows_evenly() -> None:
    assert find_delimiter("a;b\n1,5;2,5\n3,5;4,5\n") == ";"
    assert find_delimiter("name,note\nx,a;b;c\ny,d\n") == ","
    assert find_delimiter("just words\nand more\n") == ","


def test_a_first_row_with_values_is_no_header() -> None:
    assert is_header([["name", "2010", "2011"], ["x", "1", "2"]])
    assert not is_header([["2012-01-01", "x"]])
    assert not is_header([["a", "1"]])
    assert not is_header([["", ""]])


def test_names_of_columns_are_distinct_whatever_the_header_says() -> None:
    assert column_names(["a", "A", "a_2", " b\n c "], 6) == (
        "a",
        "A_2",
        "a_2_2",
        "b c",
        "column_5",
        "column_6",
    )


def test_a_column_without_any_value_is_text() -> None:
    guess = ColumnGuess(",")
    guess.see(["", "NA", " "])
    assert guess.kind().name == "text"


def test_a_year_without_delimiter_is_read_as_one_column() -> None:
    csv = read_csv_text(b"year\n2010\n2011\n")
    assert (csv.columns, list(csv.records())) == (("year",), [["2010"], ["2011"]])
