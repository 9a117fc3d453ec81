"""What a person sees of the explorer, turn by turn; `recorder.py` stands in for the engine."""

from __future__ import annotations

import asyncio
import csv
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from app import app, explore
from connection import QueryLimits
from dataset import Dataset, dataset_of_csv
from workspace import Workspace

from tests.examples.conftest import FRUIT
from tests.examples.recorder import Recorder, UploadedFile

ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def cache(small: Dataset) -> dict[str, Any]:
    """What a session that explores `fruit`."""
    return {"workspace": Workspace({"small": small}, "small")}


async def after(recorder: Recorder) -> Recorder:
    """The recorder when its turn is over."""
    await explore(recorder.turn)
    return recorder


def rows_in(path: Path) -> list[list[str]]:
    """All rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def exported(directory: Path) -> list[str]:
    """The names of all exports."""
    return sorted(path.name for path in directory.glob("*"))


async def test_the_first_question_shows_all_that_the_explorer_can(
    explorer_environment: Path,
) -> None:
    """Text, a tool run, a chart and a table, then an export only after a yes."""
    turn = await after(Recorder("Show the average temperature by month", answers=[True]))
    assert turn.pieces[0] == "Looking up the average daily high and low by month. "
    assert turn.pieces[1].startswith("**Average daily high (°C)** is highest for Aug")
    (query, export) = turn.tools
    assert (query.name, query.outcome) == ("query", "ok")
    assert query.args["sql"].startswith("SELECT substr(")
    assert turn.types() == ["chart", "table", "status-card", "markdown", "choices"]
    chart, table = turn.only("chart"), turn.only("table")
    assert chart["type"] == "line"
    assert chart["labels"][:3] == ["Jan", "Feb", "Mar"]
    assert [(each["label"], each["data"][0]) for each in chart["datasets"]] == [
        ("high (°C)", 8.23),
        ("low (°C)", 2.7),
    ]
    assert table["headers"] == ["month", "average daily high (°C)", "average daily low (°C)"]
    assert len(table["rows"]) == 12
    (question,) = turn.asked
    name = "Average-daily-high-and-low-by-month.csv"
    assert question.props["message"] == f"Writes 12 rows to exports/{name}."
    assert (export.name, export.args) == ("export", {"file": f"exports/{name}"})
    rows = rows_in(explorer_environment / name)
    assert (len(rows), rows[1]) == (13, ["Jan", "8.23", "2.7"])


async def test_nothing_is_written_without_a_yes_and_a_no_is_not_asked_twice(
    cache: dict[str, Any], explorer_environment: Path
) -> None:
    first = await after(Recorder("price by kind", answers=[False], cache=cache))
    second = await after(Recorder("weight by kind", cache=cache))
    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert not exported(explorer_environment)
    third = await after(Recorder("export as mine", answers=[True], cache=cache))
    assert third.asked[0].props["message"] == "Writes 3 rows to exports/mine.csv."
    assert exported(explorer_environment) == ["mine.csv"]


async def test_a_refused_export_says_that_nothing_was_written(cache: dict[str, Any]) -> None:
    await after(Recorder("SELECT 1", cache=cache))
    turn = await after(Recorder("export", answers=[False], cache=cache))
    assert turn.said == "Nothing was written."


async def test_an_export_has_all_rows_also_those_that_were_not_shown(
    cache: dict[str, Any], explorer_environment: Path
) -> None:
    numbers = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 1500)"
    shown = await after(Recorder(f"{numbers} SELECT i FROM n", cache=cache))
    turn = await after(Recorder("export as all", answers=[True], cache=cache))
    assert len(shown.only("table")["rows"]) == 200
    assert shown.only("table")["title"] == "Result (the first 200 of more than 1,000 rows)"
    assert turn.asked[0].props["message"] == "Writes all rows to exports/all.csv."
    assert len((explorer_environment / "all.csv").read_text().splitlines()) == 1501


async def test_a_complete_table_can_be_exported(
    cache: dict[str, Any], explorer_environment: Path
) -> None:
    await after(Recorder("export fruit as ../../fruit", answers=[True], cache=cache))
    assert (explorer_environment / "fruit.csv").read_text().startswith("day,kind,weight,price\n")


async def test_tables_are_listed_with_their_size_and_columns(cache: dict[str, Any]) -> None:
    turn = await after(Recorder("tables", cache=cache))
    assert turn.only("key-value") == {
        "title": "Tables in small",
        "items": [{"key": "fruit", "value": "4 rows: day, kind, weight, price"}],
    }
    assert turn.only("choices")["options"] == ["describe fruit"]


async def test_a_choice_is_a_command(cache: dict[str, Any]) -> None:
    turn = await after(Recorder(selected="describe fruit", cache=cache))
    assert turn.only("table")["rows"] == [
        ["day", "TEXT", "date", ""],
        ["kind", "TEXT", "text", "apple, pear, plum"],
        ["weight", "INTEGER", "number", ""],
        ["price", "REAL", "number", ""],
    ]
    assert turn.only("choices")["options"] == [
        "show fruit",
        "number of rows by kind",
        "average weight by month",
        "average price by kind",
        "weight against price",
    ]


@pytest.mark.parametrize(
    "text", [*app.suggestions, "tables", "describe cars", "SELECT 1", "horsepower against weight"]
)
async def test_everything_that_is_suggested_is_understood(text: str) -> None:
    cache: dict[str, Any] = {}
    turn = await after(Recorder(text, answers=[False], cache=cache))
    assert "status-card" not in turn.types()
    for suggested in turn.only("choices")["options"]:
        answers = ["cars", {}] if suggested == "form" else [False]
        after_it = await after(Recorder(selected=suggested, answers=answers, cache=dict(cache)))
        assert "status-card" not in after_it.types(), suggested
        assert "did not understand" not in after_it.said, suggested


async def test_sql_runs_as_it_was_typed(cache: dict[str, Any]) -> None:
    sql = "select kind, price from fruit where price > 1 order by price;"
    turn = await after(Recorder(sql, cache=cache))
    assert turn.tools[0].args == {"sql": sql[:-1]}
    assert turn.only("table")["rows"] == [["apple", 1.5], ["pear", 2.5], ["apple", 3.5]]


async def test_a_single_value_is_described_in_words(cache: dict[str, Any]) -> None:
    turn = await after(Recorder("SELECT count(*) AS rows FROM fruit", cache=cache))
    assert turn.said == "Running it. rows is **4**."
    assert turn.types() == ["choices"]


async def test_a_statement_with_parameters_asks_for_them_in_a_form(cache: dict[str, Any]) -> None:
    sql = "SELECT kind FROM fruit WHERE price > :least AND kind <> :not_this ORDER BY price"
    answers = [{"p0": "1", "p1": "apple"}]
    turn = await after(Recorder(sql, answers=answers, cache=cache))
    (form,) = turn.asked
    assert [(field["name"], field["label"]) for field in form.props["fields"]] == [
        ("p0", "least"),
        ("p1", "not_this"),
    ]
    assert turn.tools[0].args["parameters"] == {"least": 1, "not_this": "apple"}
    assert turn.said == "Running it. kind is **pear**."


async def test_a_form_puts_a_query_together(cache: dict[str, Any]) -> None:
    answer = {
        "function": "total",
        "measure": "price",
        "group": "kind",
        "column": "weight",
        "operator": ">=",
        "value": "100",
        "from_date": "2024-01-10",
        "to_date": None,
        "chart": "bar chart",
    }
    turn = await after(Recorder("form", answers=[answer], cache=cache))
    (form,) = turn.asked
    names = [field["name"] for field in form.props["fields"]]
    assert names == [
        "function",
        "measure",
        "group",
        "column",
        "operator",
        "value",
        "from_date",
        "to_date",
        "chart",
    ]
    assert turn.tools[0].args["parameters"] == {"value": 100, "from_date": "2024-01-10"}
    assert ":value" in turn.tools[0].args["sql"]
    assert turn.only("table")["rows"] == [["apple", 3.5], ["pear", 2.5]]


async def test_a_form_answer_that_names_no_column_gets_nowhere_near_the_sql(
    cache: dict[str, Any],
) -> None:
    answer = {
        "function": "average",
        "measure": 'price") FROM fruit; DROP TABLE fruit; --',
        "group": "1; DROP TABLE fruit",
        "column": '"x" OR 1=1',
        "operator": "= 1 OR",
        "value": "1",
        "chart": "x",
    }
    turn = await after(Recorder("form for fruit", answers=[answer], cache=cache))
    assert turn.tools[0].args == {"sql": 'SELECT count(*) AS "count"\nFROM "fruit"'}


async def test_with_several_tables_the_form_asks_for_one() -> None:
    answers = ["cars", {"function": "highest", "measure": "Horsepower", "group": "Origin"}]
    turn = await after(Recorder("form", answers=answers))
    assert turn.asked[0].props["options"] == ["cars", "seattle_weather"]
    assert turn.only("table")["rows"] == [["Europe", 133], ["Japan", 132], ["USA", 230]]


@pytest.mark.parametrize(
    ("text", "status", "title", "message"),
    [
        ("DROP TABLE fruit", "warning", "I only read", "DROP does not just read"),
        ("SELECT 1; SELECT 2", "warning", "I only read", "more than one statement"),
        ("ATTACH 'x' AS y", "warning", "I only read", "ATTACH does not just read"),
        ("SELECT nope FROM fruit", "error", "The query failed", "No column named nope."),
        ("SELECT FROM", "error", "The query failed", "syntax error"),
        ("SELECT ?", "warning", "I only read", "has no name"),
        ("as a pie chart", "error", "That did not work", "no result to draw"),
        ("export", "error", "That did not work", "no result to export"),
        ("diff fruit nothing", "error", "That did not work", "no table “nothing”"),
        ("use nothing", "error", "That did not work", "no table “nothing”"),
    ],
)
async def test_what_goes_wrong_is_a_card_that_can_be_read(
    cache: dict[str, Any], text: str, status: str, title: str, message: str
) -> None:
    turn = await after(Recorder(text, cache=cache))
    card = turn.only("status-card")
    assert (card["status"], card["title"]) == (status, title)
    assert message in card["message"]


async def test_a_tool_that_failed_is_shown_as_failed(cache: dict[str, Any]) -> None:
    turn = await after(Recorder("SELECT nope FROM fruit", cache=cache))
    assert [(run.name, run.outcome) for run in turn.tools] == [("query", "QueryFailed")]


async def test_a_query_over_the_time_limit_is_stopped_and_reported(
    cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connection.QueryLimits", lambda: QueryLimits(timeout_s=0.1))
    turn = await after(Recorder(ENDLESS, cache=cache))
    assert turn.only("status-card")["title"] == "The query took too long"


async def test_a_cancel_in_the_middle_of_a_query_stops_it(cache: dict[str, Any]) -> None:
    recorder = Recorder(ENDLESS, cache=cache)
    running = asyncio.ensure_future(explore(recorder.turn))
    await asyncio.wait_for(recorder.tool_started.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert recorder.tools[0].outcome == "CancelledError"
    assert "status-card" not in recorder.types()


async def test_a_result_can_be_drawn_again(cache: dict[str, Any]) -> None:
    await after(Recorder("price by kind", answers=[False], cache=cache))
    turn = await after(Recorder("as a pie chart", cache=cache))
    assert turn.only("chart")["type"] == "pie"
    assert turn.tools == []


async def test_unknown_words_in_a_question_are_reported(cache: dict[str, Any]) -> None:
    turn = await after(Recorder("price by kind in Paris", answers=[False], cache=cache))
    assert turn.pieces[0] == "I know nothing called “paris” in this data, so I left that out. "


async def test_what_is_not_understood_gets_help(cache: dict[str, Any]) -> None:
    """One sentence that says what is there, and questions that fit it."""
    turn = await after(Recorder("what is the meaning of life?", cache=cache))
    assert turn.said == (
        "I did not understand that, but I can count, compare and chart what is in **fruit**: "
        "try one of these, or type `/help`. "
    )
    assert turn.types() == ["choices"]
    options = ["number of rows by kind", "average weight by month", "tables", "help"]
    assert turn.only("choices")["options"] == options


@pytest.mark.parametrize("text", ["help", "/help", "/help ", "Help!", "what can you do?"])
async def test_help_is_shown_with_and_without_a_slash(cache: dict[str, Any], text: str) -> None:
    turn = await after(Recorder(text, cache=cache))
    assert turn.types() == ["markdown", "choices"]
    assert "plain questions" in turn.only("markdown")["content"]


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("/tables", ["key-value", "choices"]),
        ("/describe", ["key-value", "choices"]),
        ("/describe fruit", ["table", "choices"]),
        ("/form for fruit", ["choices"]),
        ("/export fruit as mine", ["table", "status-card", "markdown"]),
    ],
)
async def test_each_command_does_what_the_words_without_a_slash_do(
    cache: dict[str, Any], text: str, types: list[str]
) -> None:
    answer: Any = True if "export" in text else {"function": "number of rows"}
    turn = await after(Recorder(text, answers=[answer], cache=dict(cache)))
    plain = await after(Recorder(text[1:], answers=[answer], cache=dict(cache)))
    assert turn.types() == plain.types() == types


def test_every_command_is_listed_for_renderers() -> None:
    listed = {command.name: command.hint for command in app.commands()}
    assert listed == {
        "help": "",
        "tables": "",
        "describe": "table",
        "form": "for table",
        "export": "table, as name",
    }
    assert all(command.description for command in app.commands())


@pytest.mark.parametrize("text", ["hi", "Hello!", "hey there", "Good morning."])
async def test_a_greeting_is_answered_with_what_can_be_asked(
    cache: dict[str, Any], text: str
) -> None:
    turn = await after(Recorder(text, cache=cache))
    assert turn.said == "Hello! Ask me about **fruit**: I answer with charts and tables. "
    assert turn.only("choices")["options"][0] == "number of rows by kind"


@pytest.mark.parametrize("text", ["thanks", "Thank you very much!", "ok, thanks", "great"])
async def test_thanks_are_answered_with_a_word(cache: dict[str, Any], text: str) -> None:
    turn = await after(Recorder(text, cache=cache))
    assert turn.said == "You are welcome. Ask me anything else about the data."
    assert turn.types() == []


async def test_many_tables_are_listed_in_one_sentence(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e"]
    wanted = ["**a**", "**a** and **b**", "**a**, **b** and **c**"]
    wanted += [f"**a**, **b**, **c** and {more}" for more in ("one more table", "2 more tables")]
    for count, told in enumerate(wanted, 1):
        files = [(f"{name}.csv", FRUIT) for name in names[:count]]
        cache = {"workspace": Workspace({"many": dataset_of_csv("many", files)}, "many")}
        turn = await after(Recorder("hi", cache=cache))
        assert turn.said.startswith(f"Hello! Ask me about {told}: I answer")


async def test_an_empty_input_gets_help(cache: dict[str, Any]) -> None:
    assert (await after(Recorder("", cache=cache))).types() == ["markdown", "choices"]


async def test_an_uploaded_csv_is_imported_with_progress(
    cache: dict[str, Any],
) -> None:
    rows = b"".join(b"%d,%d\n" % (number, number % 7) for number in range(12_000))
    upload = UploadedFile("My numbers.csv", b"n,rest\n" + rows)
    turn = await after(Recorder(files=[upload], cache=cache))
    assert turn.only("progress")["steps"][0] == {
        "name": "Receive the file",
        "status": "active",
        "detail": "",
    }
    assert turn.patches == [
        ("props.steps.0.detail", "84,897 bytes"),
        ("props.steps.0.status", "done"),
        ("props.steps.1.status", "active"),
        ("props.steps.1.detail", "5,000 rows"),
        ("props.steps.1.detail", "10,000 rows"),
        ("props.steps.1.detail", "12,000 rows"),
        ("props.steps.1.status", "done"),
        ("props.steps.2.status", "active"),
        ("props.steps.2.detail", "0 of 12,000 rows"),
        ("props.steps.2.detail", "5,000 of 12,000 rows"),
        ("props.steps.2.detail", "10,000 of 12,000 rows"),
        ("props.steps.2.detail", "12,000 of 12,000 rows"),
        ("props.steps.2.detail", "12,000 of 12,000 rows"),
        ("props.steps.2.status", "done"),
        ("props.steps.3.status", "active"),
        ("props.steps.3.status", "done"),
    ]
    assert cache["workspace"].current == "my_numbers"
    asked = await after(Recorder("SELECT sum(n) AS s FROM my_numbers", cache=cache))
    assert asked.said == "Running it. s is **71,994,000**."


async def test_a_newer_version_of_a_table_is_compared_with_it(cache: dict[str, Any]) -> None:
    newer = FRUIT.replace(b"pear,200", b"pear,250").replace(b"2025-02-02,plum,,0.5\n", b"")
    uploaded = await after(Recorder(files=[UploadedFile("fruit.csv", newer)], cache=cache))
    assert uploaded.only("choices")["options"][0] == "diff fruit fruit_2"
    turn = await after(Recorder(selected="diff fruit fruit_2", cache=cache))
    assert turn.said.endswith("1 changed, 1 removed.")
    assert turn.only("diff") == {
        "title": "Changed rows",
        "before": ("day,kind,weight,price\n2024-01-15,pear,200,2.5\n2025-02-02,plum,,0.5\n"),
        "after": "day,kind,weight,price\n2024-01-15,pear,250,2.5\n",
        "before_label": "fruit",
        "after_label": "fruit_2",
        "language": "csv",
    }
    assert turn.only("key-value")["items"][3] == {"key": "rows matched by", "value": "day"}


async def test_an_empty_file_is_named_and_the_others_are_shown() -> None:
    """In a folder, and among several uploads."""
    files = [("fruit.csv", FRUIT), ("empty.csv", b"")]
    cache: dict[str, Any] = {"workspace": Workspace({"f": dataset_of_csv("f", files)}, "f")}
    listed = await after(Recorder("tables", cache=cache))
    assert listed.types() == ["key-value", "status-card", "choices"]
    uploads = [UploadedFile("none.csv", b""), UploadedFile("new.csv", FRUIT)]
    received = await after(Recorder(files=uploads, cache=cache))
    cards = [
        one.props for turn in (listed, received) for one in turn.shown if one.type == "status-card"
    ]
    assert [one["label"] for card in cards for one in card["sections"]] == [
        "empty.csv",
        "none.csv",
        "empty.csv",
    ]
    assert {card["title"] for card in cards} == {"I cannot read these files"}
    assert cache["workspace"].current == "new"


async def test_an_uploaded_database_is_explored_too(cache: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE sale (n INT); INSERT INTO sale VALUES (3), (4);")
    connection.close()
    upload = UploadedFile("shop.db", path.read_bytes())
    turn = await after(Recorder(files=[upload], cache=cache))
    assert turn.patches[-1] == ("props.steps.3.status", "done")
    asked = await after(Recorder("SELECT sum(n) AS s FROM sale", cache=cache))
    assert asked.said == "Running it. s is **7**."
    older = await after(Recorder("SELECT count(*) AS c FROM fruit", cache=cache))
    assert older.said == "Running it. c is **4**."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.xlsx", b"PK\x03\x04....", "Excel"),
        ("x.csv", b"", "is empty"),
        ("x.db", b"SQLite format 3\0" + b"\xff" * 500, "damaged"),
        ("x.png", b"\x89PNG\0\0", "neither text nor SQLite"),
    ],
)
async def test_an_unreadable_file_is_reported_and_changes_nothing(
    cache: dict[str, Any], name: str, content: bytes, message: str
) -> None:
    turn = await after(Recorder(files=[UploadedFile(name, content)], cache=cache))
    assert message in turn.only("status-card")["message"]
    assert turn.patches[-1][1] == "failed"
    assert list(cache["workspace"].datasets) == ["small"]


async def test_a_text_with_a_file_is_answered_about_the_file(cache: dict[str, Any]) -> None:
    upload = UploadedFile("speeds.csv", b"animal,speed\nsnail,1\nhare,70\n")
    recorder = Recorder("top 1 animal by speed", [upload], answers=[False], cache=cache)
    turn = await after(recorder)
    assert turn.tools[-1].args["sql"].startswith('SELECT "animal", round(avg("speed"), 2)')


async def test_use_changes_what_is_asked_first(cache: dict[str, Any]) -> None:
    await after(Recorder(files=[UploadedFile("fruit.csv", b"kind,price\nfig,9\n")], cache=cache))
    newer = await after(Recorder("highest price", cache=cache))
    await after(Recorder("use fruit", cache=cache))
    older = await after(Recorder("highest price", cache=cache))
    assert ("**9**" in newer.said, "**3.5**" in older.said) == (True, True)


async def test_the_data_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.csv").write_text("a\n1\n")
    monkeypatch.setenv("EXPLORER_DATA", str(tmp_path / "mine.csv"))
    turn = await after(Recorder("tables"))
    assert turn.only("key-value")["title"] == "Tables in mine"


async def test_missing_data_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_DATA", str(tmp_path / "gone.csv"))
    turn = await after(Recorder("tables"))
    card = turn.only("status-card")
    assert card["title"] == "I cannot read this file"
    assert "EXPLORER_DATA" in card["sections"][0]["content"]
