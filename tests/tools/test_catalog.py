"""Tools of the catalog in a turn: shown, recorded, with their pictures and tables."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from arp.protocol.json_value import JsonObject
from arp.tools.catalog import component_of_result
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
