"""Refusals name the path in the sender's words and JSON's own kinds."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from arp.protocol.components import ChartProps, CodeBlockProps, ImageProps, TableProps
from arp.protocol.json_value import kind_of
from arp.protocol.validate import explain


def refusal(value: Any, root: Any, where: str = "components[0].props", cut: str = "") -> str:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(value, root)
    return explain(refused.value, root, where, cut)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"headers": [], "rows": [[], [], [], 1]},
            "components[0].props.rows[3]: expected array, got number",
        ),
        ({"rows": []}, "components[0].props.headers: missing"),
        ([], "components[0].props: expected object, got array"),
        (
            {"headers": [], "rows": [[[]]]},
            "components[0].props.rows[0][0]: expected boolean, number, string or null, got array",
        ),
        (
            {"headers": [], "rows": [], "sortable": None},
            "components[0].props.sortable: expected boolean, got null",
        ),
        (
            {"headers": [], "rows": [], "titel": "t"},
            'components[0].props.titel: unknown; did you mean "title"?',
        ),
        (
            {"headers": [], "rows": [], "tabs": [{"name": "n", "headers": []}]},
            "components[0].props.tabs[0].rows: missing",
        ),
    ],
)
def test_what_was_wrong_and_where(value: Any, message: str) -> None:
    assert refusal(value, TableProps) == message


def test_a_rule_across_props_is_told_in_its_own_words() -> None:
    assert refusal({}, CodeBlockProps, "c") == "c: needs code or tabs"


def test_a_bound_is_told_by_its_description() -> None:
    value = {"src": "https://a", "alt": "", "width": 0}
    assert refusal(value, ImageProps, "c") == "c.width: expected a size in 1…10000"


def test_a_word_of_a_closed_list_is_told_with_the_list() -> None:
    value = {"type": "donut", "labels": [], "datasets": []}
    assert refusal(value, ChartProps, "c") == (
        "c.type: 'donut' is not one of line, bar, pie, scatter, area"
    )


def test_a_hostile_name_or_word_does_not_fill_the_message() -> None:
    value: dict[str, Any] = {"type": "x" * 10_000 + " - at `$.labels", "labels": [], "datasets": []}
    assert refusal(value, ChartProps, "c") == (
        f"c.type: '{'x' * 59} is not one of line, bar, pie, scatter, area"
    )
    unknown = refusal({"headers": [], "rows": [], "y" * 10_000: 1}, TableProps, "c")
    assert unknown.startswith(f"c.{'y' * 60}: unknown")


def test_a_fraction_where_a_whole_number_belongs_is_called_one() -> None:
    value: dict[str, Any] = {"headers": [], "rows": [], "highlight": [0.5]}
    assert refusal(value, TableProps, "c") == (
        "c.highlight[0]: expected whole number, got fraction"
    )


def test_the_field_that_stands_for_the_value_itself_is_cut_off() -> None:
    holder = msgspec.defstruct("Holder", [("value", list[int])])
    assert refusal({"value": [1, "a"]}, holder, "w", "value") == (
        "w[1]: expected number, got string"
    )


def test_a_path_that_the_types_do_not_have_is_told_as_it_is() -> None:
    assert refusal({"a": {"b": "x"}}, dict[str, dict[str, int]], "c") == (
        "c[...][...]: expected number, got string"
    )


def test_kinds_are_named_as_json_names_them() -> None:
    values: list[Any] = [None, True, 1, 1.5, "a", [], {}, b""]
    assert [kind_of(value) for value in values] == [
        "null",
        "boolean",
        "number",
        "number",
        "string",
        "array",
        "object",
        "bytes",
    ]


class _Renamed(msgspec.Struct, rename="camel"):
    first_bad: Annotated[int, msgspec.Meta(ge=1, description="a whole number from 1")]


def test_a_field_is_found_by_its_name_in_the_message() -> None:
    told = refusal({"firstBad": 0}, _Renamed, "payload")
    assert told == "payload.firstBad: expected a whole number from 1"
