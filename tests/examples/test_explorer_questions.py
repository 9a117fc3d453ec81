"""Commands and plain questions are understood, and the SQL for them gives the right numbers."""

from __future__ import annotations

import pytest
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
from commands import understand_command
from connection import Cell
from dataset import Dataset, dataset_of_csv
from questions import understand_question
from vocabulary import columns_named, related, score, stem, value_named, words_of


@pytest.mark.parametrize(
    ("text", "ask"),
    [
        ("help", Help()),
        ("Hello!", SmallTalk("greeting")),
        ("Thanks a lot!", SmallTalk("thanks")),
        ("what can you do?", Help()),
        ("tables", ListTables()),
        ("Tables", ListTables()),
        ("show me all tables", ListTables()),
        ("what tables are there?", ListTables()),
        ("what data is here", ListTables()),
        ("describe cars", Describe("cars")),
        ("describe the table seattle weather", Describe("seattle_weather")),
        ("columns of cars", Describe("cars")),
        ("what is in cars?", Describe("cars")),
        ("export", Export()),
        ("export it", Export()),
        ("export as hot days", Export("hot days")),
        ("save the result as 'x.csv'", Export("x.csv")),
        ("download cars", Export("", "cars")),
        ("export cars as c", Export("c", "cars")),
        ("form", OpenForm()),
        ("query form for cars", OpenForm("cars")),
        ("as a pie chart", Redraw("pie")),
        ("show it as a line chart", Redraw("line")),
        ("now as bars", Redraw("bar")),
        ("diff cars cars_2", CompareTables("cars", "cars_2")),
        ("compare cars with 'my cars'", CompareTables("cars", "my cars")),
        ("use cars_2", UseDataset("cars_2")),
        (
            "show cars",
            RunQuery('SELECT *\nFROM "cars"\nLIMIT 20', "First 20 rows of cars", "none"),
        ),
        (
            "first 5 rows of seattle weather",
            RunQuery(
                'SELECT *\nFROM "seattle_weather"\nLIMIT 5',
                "First 5 rows of seattle_weather",
                "none",
            ),
        ),
        ("SELECT 1", RunQuery("SELECT 1")),
        ("sql: show nothing", RunQuery("show nothing")),
        ("drop table cars", RunQuery("drop table cars")),
    ],
)
def test_a_command_is_understood(samples: Dataset, text: str, ask: Ask) -> None:
    assert understand_command(text, samples.schema) == ask


@pytest.mark.parametrize(
    "text",
    [
        "average temperature by month",
        "show the wind by weather",
        "show weather",
        "describe the meaning of life",
        "export everything that moves",
        "",
        "what is the meaning of life",
        "compare the years",
    ],
)
def test_what_is_no_command_is_left_to_the_questions(samples: Dataset, text: str) -> None:
    assert understand_command(text, samples.schema) is None


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("average weight by kind", [["apple", 200.0], ["pear", 200.0], ["plum", None]]),
        ("total price by kind", [["apple", 5.0], ["pear", 2.5], ["plum", 0.5]]),
        ("what is the highest price?", [[3.5]]),
        ("lowest price by year", [["2024", 1.5], ["2025", 0.5]]),
        ("how many rows by kind", [["apple", 2], ["pear", 1], ["plum", 1]]),
        ("number of fruits per year", [["2024", 3], ["2025", 1]]),
        ("how many apples", [[2]]),
        ("how many apples by month", [["Jan", 1], ["Feb", 1]]),
        ("how many different kinds", [[3]]),
        ("average price by month", [["Jan", 2.0], ["Feb", 2.0]]),
        ("price by year and month", [["2024-01", 2.0], ["2024-02", 3.5], ["2025-02", 0.5]]),
        ("monthly price", [["Jan", 2.0], ["Feb", 2.0]]),
        ("price over time", [["2024-01", 2.0], ["2024-02", 3.5], ["2025-02", 0.5]]),
        ("price by quarter", [["2024-Q1", 2.5], ["2025-Q1", 0.5]]),
        ("price by weekday", [["Mon", 2.0], ["Thu", 3.5], ["Sun", 0.5]]),
        (
            "daily price",
            [["2024-01-01", 1.5], ["2024-01-15", 2.5], ["2024-02-01", 3.5], ["2025-02-02", 0.5]],
        ),
        (
            "total price by year and kind",
            [["2024", "apple", 5.0], ["2024", "pear", 2.5], ["2025", "plum", 0.5]],
        ),
        ("average price in 2024", [[2.5]]),
        ("average price since 2025", [[0.5]]),
        ("average price between 2024 and 2025", [[2.0]]),
        ("average price before 2025 by kind", [["apple", 2.5], ["pear", 2.5]]),
        ("average price in January", [[2.0]]),
        ("average price in February 2024", [[3.5]]),
        ("average price of apples", [[2.5]]),
        ("average price where weight > 150", [[3.0]]),
        ("average price where weight is at least 200 and kind is apple", [[3.5]]),
        ("average price with more than 150 weight", [[3.0]]),
        ("average price where kind is not apple", [[1.5]]),
        ("average price where kind contains EA", [[2.5]]),
        ("top 2 kinds by price", [["apple", 2.5], ["pear", 2.5]]),
        ("bottom 1 kind by total price", [["plum", 0.5]]),
        ("which kind has the lowest price", [["plum", 0.5], ["apple", 2.5], ["pear", 2.5]]),
        (
            "top 2 fruits by price",
            [["2024-02-01", "apple", 300, 3.5], ["2024-01-15", "pear", 200, 2.5]],
        ),
        ("the 1 highest by weight", [["2024-02-01", "apple", 300, 3.5]]),
        ("lowest 1 price", [["2025-02-02", "plum", None, 0.5]]),
        ("the 1 priciest fruit", [["2024-02-01", "apple", 300, 3.5]]),
        ("pears", [["2024-01-15", "pear", 200, 2.5]]),
        ("price against weight", [[100, 1.5], [200, 2.5], [300, 3.5]]),
        ("pie chart of kind", [["apple", 2], ["pear", 1], ["plum", 1]]),
        ("distribution of kind", [["apple", 2], ["pear", 1], ["plum", 1]]),
    ],
)
def test_a_question_gets_its_numbers(small: Dataset, text: str, rows: list[list[Cell]]) -> None:
    ask = understand_question(text, small.schema)
    assert ask is not None, "not understood"
    assert small.query(ask.sql).run().rows == rows
    assert ask.leftover == ()


def test_the_first_question_of_the_readme_means_both_temperatures(samples: Dataset) -> None:
    ask = understand_question("Show the average temperature by month", samples.schema)
    assert ask is not None
    assert ask.title == "Average daily high and low by month"
    result = samples.query(ask.sql).run()
    assert result.columns == ("month", "avg_temp_max", "avg_temp_min")
    assert len(result.rows) == 12
    assert result.rows[0] == ["Jan", 8.23, 2.7]


def test_the_table_is_chosen_by_what_it_has(samples: Dataset) -> None:
    weather = understand_question("average wind by year", samples.schema)
    cars = understand_question("average horsepower by year", samples.schema)
    assert weather is not None
    assert cars is not None
    assert ('FROM "seattle_weather"' in weather.sql, 'FROM "cars"' in cars.sql) == (True, True)


def test_a_histogram_counts_every_value_once(samples: Dataset) -> None:
    ask = understand_question("distribution of wind", samples.schema)
    assert ask is not None
    rows = samples.query(ask.sql).run().rows
    assert len(rows) == 10
    assert sum(int(str(row[1])) for row in rows) == 1461


@pytest.mark.parametrize(
    ("text", "leftover"),
    [
        ("average price by month in Paris", ("paris",)),
        ("average price of imported fruits by kind", ("imported",)),
        ("top 2 foreign kinds by price", ("foreign",)),
    ],
)
def test_ignored_words_are_reported(small: Dataset, text: str, leftover: tuple[str, ...]) -> None:
    ask = understand_question(text, small.schema)
    assert ask is not None
    assert ask.leftover == leftover


@pytest.mark.parametrize(
    "text", ["what is the meaning of life", "", "hello there", "colour of the sky", "by", "top 5"]
)
def test_what_names_nothing_of_the_data_is_not_understood(small: Dataset, text: str) -> None:
    assert understand_question(text, small.schema) is None


def test_a_misspelt_column_is_still_found(samples: Dataset) -> None:
    ask = understand_question("average precipitaton by year", samples.schema)
    assert ask is not None
    assert ask.title == "Average precipitation by year"


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("price by kind as a bar chart", "bar"),
        ("line chart of price by year", "line"),
        ("pie of kind", "pie"),
        ("price by kind", "auto"),
        ("price against weight", "scatter"),
        ("show price by kind in a column chart", "bar"),
    ],
)
def test_the_wished_chart_is_understood(small: Dataset, text: str, wish: str) -> None:
    ask = understand_question(text, small.schema)
    assert ask is not None
    assert ask.wish == wish


def test_names_of_columns_can_hold_anything() -> None:
    content = b'order,it\'s "big",by\nx,1,u\ny,2,v\n'
    dataset = dataset_of_csv("odd", [("odd.csv", content)])
    ask = understand_question("average big by order", dataset.schema)
    assert ask is not None
    assert dataset.query(ask.sql).run().rows == [["y", 2.0], ["x", 1.0]]


def test_a_value_with_a_quotation_mark_stays_a_value() -> None:
    dataset = dataset_of_csv("odd", [("odd.csv", b"name,n\nO'Hara,1\nSmith,2\n")])
    ask = understand_question("average n where name = O'Hara", dataset.schema)
    assert ask is not None
    assert dataset.query(ask.sql).run().rows == [[1.0]]


def test_words_are_compared_by_their_parts() -> None:
    assert words_of("Miles_perGallon 2") == ["miles", "per", "gallon", "2"]
    assert [stem(word) for word in ("cities", "boxes", "cars", "gas", "glass")] == [
        "city",
        "box",
        "car",
        "gas",
        "glass",
    ]
    assert related("temperature", "temp")
    assert related("rainy", "rain")
    assert not related("car", "carbon")
    assert score(["max", "temperature"], "temp_max") == 60
    assert score(["mpg"], "Miles_per_Gallon") == 70
    assert score(["wind"], "rain") == 0


def test_a_phrase_names_several_columns_where_it_fits_them_equally(samples: Dataset) -> None:
    table = samples.schema.table("seattle_weather")
    assert table is not None
    named = columns_named(["temperature"], table, ["number"])
    assert [column.name for column in named] == ["temp_max", "temp_min"]


def test_a_word_names_a_value(samples: Dataset) -> None:
    table = samples.schema.table("seattle_weather")
    assert table is not None
    rainy = value_named("rainy", table)
    assert rainy is not None
    assert (rainy[0].name, rainy[1]) == ("weather", "rain")
    assert value_named("hail", table) is None
