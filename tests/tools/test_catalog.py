"""Tools of the catalog in a turn: shown, recorded, with their pictures and tables."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from arp.protocol.json_value import JsonObject
from arp.tools.faces.catalog import MAX_TEXT, component_of_result, text_of_result
from tests.tools.serving_routes import ToolHouse, tool_house


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHouse]:
    with tool_house(tmp_path_factory.mktemp("data")) as made:
        yield made


def run(served: ToolHouse, message: str) -> JsonObject:
    answer = httpx.post(f"{served.url}/user", json={"message": message}, timeout=20)
    assert answer.status_code == 200, answer.text
    value: JsonObject = answer.json()
    return value


def test_result_shows_as_names_and_values(served: ToolHouse) -> None:
    done = run(served, "add 2 3")
    (shown,) = done["components"]
    assert shown["type"] == "key-value"
    assert shown["props"] == {"title": "Add", "items": [{"key": "sum", "value": 5}]}
    (tool,) = done["tools"]
    assert (tool["name"] if "name" in tool else tool["tool"]) == "add"


def test_rows_show_as_a_table(served: ToolHouse) -> None:
    (shown,) = run(served, "rows")["components"]
    assert shown["type"] == "table"
    assert shown["props"]["headers"] == ["name", "count"]
    assert shown["props"]["rows"] == [["tea", 3], ["jam", 0]]


def test_picture_shows_as_a_picture_that_can_be_loaded(served: ToolHouse) -> None:
    image, _ = run(served, "picture")["components"]
    assert image["type"] == "image"
    loaded = httpx.get(f"{served.url}{image['props']['src']}")
    assert loaded.status_code == 200
    assert loaded.headers["content-type"] == "image/png"


def test_tool_that_fails_ends_the_turn_with_its_words(served: ToolHouse) -> None:
    done = run(served, "fail")
    assert done["status"] == "failed"
    assert "the disk is full" in str(done["errors"])


def test_params_that_do_not_fit_are_refused_with_their_path(served: ToolHouse) -> None:
    assert "params: 'b' is a required property" in str(run(served, "add 2")["errors"])


def test_use_is_recorded_with_the_rule_that_allows_it(served: ToolHouse) -> None:
    run_id = run(served, "add 2 3")["run_id"]
    session_id = run_id.rpartition(".")[0]
    events = httpx.get(f"{served.url}/_api/sessions/{session_id}/events").json()
    facts = events["events"] if isinstance(events, dict) else events
    types = [fact["type"] for fact in facts]
    assert "tool.started" in types
    (evaluated,) = [fact for fact in facts if fact["type"] == "permission.evaluated"]
    assert evaluated["payload"]["decision"] == "allow"
    assert evaluated["payload"]["decidedBy"] == {"kind": "rule", "name": "active-tool"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([{"a": 1}], "table"),
        ({"rows": [{"a": 1}], "count": 1}, "table"),
        ({"x": [{"a": 1}], "y": [{"a": 1}]}, "key-value"),
        ({"x": 1}, "key-value"),
        ([1, 2], None),
        ("text", None),
        ({}, None),
        (None, None),
    ],
)
def test_what_shows_a_result(value: object, kind: str | None) -> None:
    shown = component_of_result(value, "x")
    assert (shown and shown.type) == kind


def test_long_table_says_how_much_of_it_is_shown() -> None:
    shown = component_of_result([{"n": number} for number in range(1_001)], "Count")
    assert shown is not None
    assert shown.props["title"] == "Count (1,000 of 1,001 rows)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text", "a text"),
        ({"sum": 5}, '{"sum":5}'),
        ([1, [2]], "[1,[2]]"),
        (None, "null"),
        (
            [{"name": "tea", "count": 3}, {"name": "jam", "price": 0.5}],
            '{"columns":["name","count","price"],"rows":[["tea",3,null],["jam",null,0.5]]}',
        ),
        (
            {"rows": [{"name": "tea"}], "total": 1},
            '{"rows":{"columns":["name"],"rows":[["tea"]]},"total":1}',
        ),
        ({"rows": []}, '{"rows":[]}'),
        ([{"a": "x" * 501}], f'{{"columns":["a"],"rows":[["{"x" * 500}…"]]}}'),
    ],
)
def test_model_reads_a_result_as_compact_json(value: object, text: str) -> None:
    assert text_of_result(value) == text


def test_model_reads_the_first_rows_of_a_long_table_and_how_many_more_there_are() -> None:
    rows = [{"number": number, "text": "x" * 90} for number in range(5_000)]
    text = text_of_result({"total": 5_000, "rows": rows})
    read = json.loads(text)
    assert read["total"] == 5_000
    table = read["rows"]
    assert [row[0] for row in table["rows"]] == list(range(len(table["rows"])))
    assert len(table["rows"]) + table["more_rows"] == 5_000
    assert MAX_TEXT * 0.85 < len(text) <= MAX_TEXT


def test_model_reads_so_much_of_another_long_result() -> None:
    assert text_of_result("x" * (MAX_TEXT + 7)) == "x" * MAX_TEXT + "… (7 more characters)"
    assert text_of_result(["x" * MAX_TEXT]).endswith("… (4 more characters)")
    one_row = text_of_result([{str(column): "x" * 300 for column in range(200)}])
    assert one_row.startswith('{"columns":["0","1",')
    assert len(one_row) < MAX_TEXT + 50
