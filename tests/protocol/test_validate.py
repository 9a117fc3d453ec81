"""What passes the border on the agent side, and how the rest is refused (protocol.md 3 and 4)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.catalog import CATALOG
from arp.protocol.components import (
    ChartProps,
    CodeBlockProps,
    Component,
    FormProps,
    GroupProps,
    ImageProps,
    SplitProps,
    TableProps,
    TabsProps,
)
from arp.protocol.errors import (
    ArpError,
    ComponentUnsupported,
    InvalidComponent,
    InvalidPatch,
    ResourceLimit,
)
from arp.protocol.json_value import JsonObject, kind_of
from arp.protocol.messages import RendererMessage
from arp.protocol.patch import PatchOp, parse_path
from arp.protocol.validate import (
    bounds,
    check_appended,
    check_component,
    check_fields,
    check_property,
    explain,
    fits,
    item_type,
    names_in,
    nearest,
    options,
    type_at,
)


def text(component_id: str = "t", content: str = "x") -> JsonObject:
    return {"id": component_id, "type": "text", "props": {"content": content}}


def group(*children: JsonObject, component_id: str = "g") -> JsonObject:
    return {"id": component_id, "type": "group", "props": {"children": list(children)}}


def table(rows: Any) -> JsonObject:
    return {"id": "t", "type": "table", "props": {"headers": ["a"], "rows": rows}}


def refused(value: Any, kind: type[ArpError] = InvalidComponent, **more: Any) -> str:
    with pytest.raises(kind) as error:
        check_component(value, "components[0]", **more)
    assert type(error.value) is kind
    return error.value.message


# -- check_component ------------------------------------------------------------------------------


def test_an_object_of_the_wire_becomes_a_component_that_shares_its_props() -> None:
    value = table([[1]])
    component = check_component(value)
    assert component == Component("t", "table", {"headers": ["a"], "rows": [[1]]})
    assert component.props is value["props"]


def test_a_component_that_fits_is_given_back_itself() -> None:
    component = Component("t", "text", {"content": "x"}, 1, Component("", "text", {"content": ""}))
    assert check_component(component) is component


def test_the_path_of_a_refusal_is_the_path_of_the_wire() -> None:
    assert refused(table([[1], [2], [3], 4])) == (
        "components[0].props.rows[3]: expected array, got number"
    )
    bad = {"id": "t", "type": "table", "props": {"rows": []}}
    assert refused(bad) == "components[0].props.headers: missing"
    assert refused(group(text("a"), {**bad, "props": 1})) == (
        "components[0].props.children[1].props: expected object, got number"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "components[0]: expected object, got null"),
        ([], "components[0]: expected object, got array"),
        ({"type": "text", "props": {}}, "components[0].id: missing"),
        ({"id": "a", "props": {}}, "components[0].type: missing"),
        ({"id": "a", "type": "text"}, "components[0].props: missing"),
        (
            {"id": "a", "type": "text", "prosp": {}},
            'components[0].prosp: unknown; did you mean "props"?',
        ),
        ({**text(), "id": 1}, "components[0].id: expected string, got number"),
        ({**text(), "type": None}, "components[0].type: expected string, got null"),
        ({**text(), "props": []}, "components[0].props: expected object, got array"),
        ({**text(), "version": 0}, "components[0].version: expected a whole number from 1"),
        ({**text(), "version": True}, "components[0].version: expected number, got boolean"),
        ({**text(), "version": "1"}, "components[0].version: expected number, got string"),
        ({**text(), "fallback": 1}, "components[0].fallback: expected object, got number"),
        (
            {**text(), "fallback": {**text(), "props": {}}},
            "components[0].fallback.props.content: missing",
        ),
        (table([[float("nan")]]), "components[0].props.rows[0][0]: nan is not a JSON number"),
        (table([[2**64]]), "components[0].props.rows[0][0]: integer beyond 64 bits"),
        (table(((1,),)), "components[0].props.rows: tuple is not a JSON value"),
        (Component("t", "text", {"content": b""}), "components[0].props.content: bytes is not "),
    ],
)
def test_what_is_no_component_is_refused_by_its_path(value: Any, message: str) -> None:
    assert refused(value).startswith(message)


@pytest.mark.parametrize("bad", ["", "a/b", "a\nb", "a\x00", "a\u202eb", "a\u2028b", "i" * 129])
def test_an_id_is_printable_without_a_slash_up_to_128_characters(bad: str) -> None:
    message = refused(text(bad))
    assert message.startswith(
        "components[0].id: expected 1…128 printable characters without /, got "
    )
    assert len(message) < 150


@pytest.mark.parametrize("good", ["a", "a b", "a.b:c#d", "日本", "i" * 128])
def test_other_ids_are_free(good: str) -> None:
    assert check_component(text(good)).id == good


def test_builders_may_leave_ids_empty_more_than_once() -> None:
    value = group(text(""), text(""), component_id="")
    assert check_component(value, empty_ids=True).id == ""
    assert refused(group(text(""))).startswith("components[0].props.children[0].id: expected 1…128")


def test_an_id_is_used_once_over_all_levels() -> None:
    assert refused(group(text("a"), group(text("a"), component_id="h"))) == (
        'components[0].props.children[1].props.children[0].id: "a" is used twice'
    )
    assert "used twice" in refused(group(text("g")))


def test_the_alias_of_content_is_read_as_content_on_every_level() -> None:
    alias = {"id": "a", "type": "text", "props": {"text": "x", "format": "plain"}}
    expected = {"content": "x", "format": "plain"}
    assert check_component(alias).props == expected
    untouched = text("b")
    nested = check_component(group(untouched, group(alias, component_id="h")))
    assert nested.props["children"][1]["props"]["children"][0]["props"] == expected
    assert nested.props["children"][0] is untouched
    assert alias["props"] == {"text": "x", "format": "plain"}
    fallback = {**text("b"), "fallback": {**alias, "id": ""}}
    checked = check_component(group(fallback))
    assert checked.props["children"][0]["fallback"]["props"] == expected
    assert check_component(fallback).fallback == Component("", "text", expected)


def test_content_and_its_alias_together_are_refused() -> None:
    both = {"id": "a", "type": "text", "props": {"text": "x", "content": "x"}}
    assert refused(both) == (
        "components[0].props.text: is another name of content; give one of them"
    )


def test_an_unknown_type_is_refused_with_the_nearest_name() -> None:
    message = refused({"id": "t", "type": "tabel", "props": {}}, ComponentUnsupported)
    assert message == 'components[0].type: no component "tabel"; did you mean "table"?'
    message = refused({"id": "t", "type": "x-map", "props": {}}, ComponentUnsupported)
    assert message == 'components[0].type: no component "x-map"; write x-vendor-name or s-name'
    fallback = {"id": "t", "type": "tabel", "props": {}, "fallback": text()}
    assert "no component" in refused(fallback, ComponentUnsupported)


def test_a_custom_type_takes_any_props_but_needs_a_fallback() -> None:
    value = {"id": "m", "type": "x-acme-map", "props": {"at": [1, {"deep": None}]}}
    assert refused(value, ComponentUnsupported) == (
        'components[0]: "x-acme-map" needs a fallback for renderers that do not know it'
    )
    component = check_component({**value, "fallback": text(""), "version": 7})
    assert (component.version, component.fallback) == (7, Component("", "text", {"content": "x"}))


def test_a_version_that_is_not_known_is_refused() -> None:
    assert refused({**text(), "version": 2, "fallback": text()}, ComponentUnsupported) == (
        "components[0].version: text 2 is not known here, 1 is"
    )


def test_three_levels_fit_and_a_fourth_does_not() -> None:
    three = group(group(text("c"), component_id="b"), component_id="a")
    check_component(three)
    assert refused(group(three), ResourceLimit) == (
        "components[0].props.children[0].props.children[0].props.children[0]: "
        "nested deeper than 3 levels"
    )
    check_component(text(), levels=1)
    assert "nested deeper" in refused(group(text()), ResourceLimit, levels=1)


def test_a_fallback_stands_on_the_level_of_its_component() -> None:
    check_component(group(group({**text("c"), "fallback": text("")}, component_id="b")))
    deep = group(text("c"), component_id="b")
    assert "nested deeper" in refused(
        group(group({**text("d"), "fallback": deep}, component_id="e")), ResourceLimit
    )


def test_ids_in_a_fallback_are_unique_among_themselves() -> None:
    """A fallback is shown instead, so it may name its children as its component does."""
    tabs = {
        "id": "t",
        "type": "tabs",
        "props": {"tabs": [{"label": "L", "component": text("a")}]},
        "fallback": group(text("a"), component_id=""),
    }
    check_component(tabs)
    twice = {**tabs, "fallback": group(text("a"), text("a"))}
    assert refused(twice) == 'components[0].fallback.props.children[1].id: "a" is used twice'


def test_ids_in_a_fallback_may_be_empty() -> None:
    """No patch names what is in it; where it is shown it gets ids made of its component's."""
    inner = Component("", "group", group(text(""), text(""))["props"])
    component = Component("x", "x-acme-map", {}, fallback=inner)
    assert check_component(component) is component


def test_fallbacks_of_fallbacks_end() -> None:
    value = text()
    for _ in range(4):
        value = {**text(), "fallback": value}
    check_component(value)
    assert "more than 4 fallbacks in a row" in refused({**text(), "fallback": value}, ResourceLimit)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
prop_names = sorted({name for spec in CATALOG.values() for name in spec.props.__struct_fields__})
near_misses = st.recursive(
    st.fixed_dictionaries(
        {
            "id": st.text(max_size=3) | json_values,
            "type": st.sampled_from([*CATALOG, "x-a-b", "tabel"]) | json_values,
            "props": st.dictionaries(st.sampled_from(prop_names), json_values) | json_values,
        },
        optional={"version": json_values, "fallback": json_values, "other": json_values},
    ),
    lambda inner: st.builds(
        lambda children, fallback: {
            "id": "g",
            "type": "group",
            "props": {"children": children},
            "fallback": fallback,
        },
        st.lists(inner, max_size=3),
        st.none() | inner,
    ),
    max_leaves=5,
)


@given(json_values | near_misses)
def test_any_json_ends_in_a_component_or_a_coded_error(value: Any) -> None:
    try:
        component = check_component(value)
    except ArpError:
        return
    assert check_component(component) is component


@given(st.sampled_from([*CATALOG, "x-a-b"]), json_values, st.lists(st.sampled_from(prop_names)))
def test_any_value_at_any_path_is_taken_or_refused_by_its_place(
    kind: str, value: Any, names: list[str]
) -> None:
    for check in (check_property, check_appended):
        message = "here: taken"
        try:
            check(kind, names or ["title"], value, "here")
        except ArpError as error:
            message = error.message
        assert message.startswith("here")


structs = [*(spec.props for spec in CATALOG.values()), *get_args(RendererMessage), PatchOp]


@given(
    st.sampled_from(structs),
    st.dictionaries(st.sampled_from([*prop_names, "type", "op"]), json_values),
)
def test_every_refusal_has_a_place_and_words_of_ours(struct: Any, value: dict[str, Any]) -> None:
    """Whatever msgspec refuses, `explain` finds why, and repeats none of its English."""
    if not fits(value, struct):
        told = explain(value, struct, "here")
        assert told.startswith("here")
        assert "does not fit" not in told
        assert not re.search("Expected|Object (missing|contains)|Invalid", told)


# -- check_property -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("table", ("rows",), [[1], ["a"]]),
        ("table", ("rows", 3), [None]),
        ("table", ("rows", 3, 0), True),
        ("table", ("title",), None),
        ("table", ("sortable",), True),
        ("chart", ("datasets", 1, "data", 5), 2.5),
        ("code-block", ("code",), ""),
        ("code-block", ("tabs",), [{"name": "n", "code": "c"}]),
        ("code-block", ("title",), None),
        ("form", ("answer",), {"a": [1]}),
        ("form", ("answer", "a", 0), "x"),
        ("form", ("state",), "answered"),
        ("x-acme-map", ("anything", 0, "at_all"), [1]),
        ("tabs", ("tabs", 0, "label"), "L"),
    ],
)
def test_a_value_that_fits_its_place_is_given_back(
    kind: str, path: tuple[str | int, ...], value: Any
) -> None:
    assert check_property(kind, path, value, "here") is value


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("table", ("rows", 3), 4, "here: expected array, got number"),
        ("table", ("rows",), [[1], 2], "here[1]: expected array, got number"),
        ("table", ("headers",), None, "here: expected array, got null"),
        ("table", ("rwos",), [], 'here: table has no "rwos" there; did you mean "rows"?'),
        ("table", ("rows", "a"), [], 'here: table has no "a" there'),
        ("table", ("title", "x"), "", 'here: table has no "x" there'),
        ("table", ("rows", 0, 0), {1: 2}, "here: object key 1 is not a string"),
        ("text", ("text",), "x", "here: is another name of props.content; patch that"),
        ("image", ("src",), "javascript:x", "here: expected an http or https address, "),
        ("code-block", ("code",), None, "here: a code-block needs code or tabs; use replace"),
        ("code-block", ("tabs",), [], "here: a code-block needs code or tabs; use replace"),
        (
            "status-card",
            ("sections", 0),
            {"label": "l"},
            "here.content: missing",
        ),
        (
            "group",
            ("children", 0, "props", "content"),
            "x",
            "here: there is a component; patch it by its id",
        ),
        ("split", ("left", "id"), "x", "here: there is a component; patch it by its id"),
        ("x-acme-map", ("a",), float("inf"), "here: inf is not a JSON number"),
    ],
)
def test_a_value_that_does_not_fit_its_place_is_refused(
    kind: str, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    with pytest.raises(InvalidPatch) as refused:
        check_property(kind, path, value, "here")
    assert refused.value.message.startswith(message)


def test_components_in_a_value_are_checked_too() -> None:
    with pytest.raises(InvalidComponent) as refused:
        check_property("group", ("children",), [text("a"), {"id": "b", "type": "text"}], "here")
    assert refused.value.message == "here[1].props: missing"
    with pytest.raises(InvalidComponent, match="used twice"):
        check_property("group", ("children",), [text("a"), text("a")], "here")
    with pytest.raises(ComponentUnsupported):
        check_property("split", ("left",), {"id": "b", "type": "tabel", "props": {}}, "here")
    deep = group(group(text("c"), component_id="b"), component_id="a")
    with pytest.raises(ResourceLimit):
        check_property("tabs", ("tabs", 0), {"label": "L", "component": deep}, "here")


def test_an_alias_in_a_value_is_read_as_content() -> None:
    alias = {"id": "a", "type": "text", "props": {"text": "x"}}
    assert check_property("group", ("children", 0), alias, "here") == text("a")
    assert alias["props"] == {"text": "x"}


# -- check_appended -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("text", ("content",), "more"),
        ("code-block", ("code",), ""),
        ("status-card", ("message",), "more"),
        ("table", ("rows",), [[1], [2]]),
        ("table", ("rows", 0), [1, "a"]),
        ("table", ("rows", 0, 0), "more"),
        ("chart", ("datasets", 0, "data"), [1, None]),
        ("group", ("children",), [text("a")]),
        ("x-acme-map", ("a",), "more"),
        ("x-acme-map", ("a", 0), [1]),
    ],
)
def test_text_extends_a_string_and_items_an_array(
    kind: str, path: tuple[str | int, ...], value: Any
) -> None:
    assert check_appended(kind, path, value, "here") is value


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("text", ("content",), ["a"], "here: expected string, got array"),
        ("text", ("format",), "x", "here: cannot be appended to; use update"),
        ("table", ("rows",), [1], "here[0]: expected array, got number"),
        ("table", ("rows",), "a", "here: expected array of new items, got string"),
        ("table", ("sortable",), True, "here: cannot be appended to; use update"),
        ("image", ("src",), "/../x", "here: cannot be appended to; use update"),
        ("chart", ("height",), 1, "here: cannot be appended to; use update"),
        ("text", ("titel",), "x", 'here: text has no "titel" there; '),
        ("x-acme-map", ("a",), 1, "here: expected string or array of new items, got number"),
        ("text", ("content",), b"x", "here: bytes is not a JSON value"),
    ],
)
def test_nothing_else_can_be_appended(
    kind: str, path: tuple[str | int, ...], value: Any, message: str
) -> None:
    with pytest.raises(InvalidPatch) as refused:
        check_appended(kind, path, value, "here")
    assert refused.value.message.startswith(message)


# -- parse_path -----------------------------------------------------------------------------------


def test_a_path_is_names_and_indexes_behind_props() -> None:
    assert parse_path("props.title") == ("title",)
    assert parse_path("props.rows.3.0") == ("rows", 3, 0)
    assert parse_path("props.answer.0") == ("answer", 0)
    assert parse_path("props.answer.+1") == ("answer", "+1")
    assert parse_path("props.a-b.²") == ("a-b", "²")
    assert parse_path("props." + ".".join("a" * 16)) == tuple("a" * 16)
    assert parse_path("props." + "a" * 64) == ("a" * 64,)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", 'begins with "props"'),
        ("id", 'begins with "props"'),
        ("prop.a", 'begins with "props"'),
        (".props.a", 'begins with "props"'),
        ("props", "names no property"),
        ("props.", "has an empty segment"),
        ("props.a..b", "has an empty segment"),
        ("props.__class__", 'the segment "__class__" is not allowed'),
        ("props.a._b", 'the segment "_b" is not allowed'),
        ("props.constructor", 'the segment "constructor" is not allowed'),
        ("props.a.prototype.b", 'the segment "prototype" is not allowed'),
        ("props." + ".".join("a" * 17), "more than 16 segments"),
        ("props" + ".a" * 100_000, "more than 16 segments"),
        ("props." + "a" * 65, "a segment has more than 64 characters"),
        ("props.1234567890", 'the index "1234567890" is too large'),
        ("props.rows.00", 'the index "00" begins with 0; write "0"'),
        ("props.rows.007.0", 'the index "007" begins with 0; write "7"'),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str, message: str) -> None:
    with pytest.raises(InvalidPatch) as refused:
        parse_path(path)
    assert message in refused.value.message
    assert len(refused.value.message) < 200


@given(st.text())
def test_any_text_is_a_path_or_is_refused(path: str) -> None:
    try:
        segments = parse_path(f"props.{path}")
    except InvalidPatch:
        return
    assert 0 < len(segments) <= 16
    assert not any(str(segment).startswith("_") for segment in segments)


def refusal(value: Any, root: Any, where: str = "components[0].props") -> str:
    assert not fits(value, root)
    return explain(value, root, where)


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


def test_an_array_is_looked_at_by_halves_and_the_first_that_does_not_fit_is_named() -> None:
    for wrong in range(20):
        items: list[Any] = [*range(wrong), "a", *range(wrong, 20), "b"]
        assert refusal(items, list[int], "w") == f"w[{wrong}]: expected number, got string"


def test_a_value_of_a_free_name_is_refused_by_its_name() -> None:
    assert refusal({"a": {"b": "x"}}, dict[str, dict[str, int]], "c") == (
        "c.a.b: expected number, got string"
    )
    assert refusal({3: 1}, dict[str, int], "c") == "c: object key 3 is not a string"


def test_one_of_several_objects_is_told_apart_by_its_tag() -> None:
    known = "update, append, insert, remove, replace, reorder"
    assert refusal({"op": "move"}, PatchOp, "ops[0]") == f"ops[0].op: 'move' is not one of {known}"
    assert refusal({}, PatchOp, "ops[0]") == "ops[0].op: missing"
    assert refusal({"op": "remove"}, PatchOp, "ops[0]") == "ops[0].target: missing"
    assert refusal({"op": []}, PatchOp, "o") == f"o.op: [] is not one of {known}"


def test_what_no_rule_has_words_for_is_shown() -> None:
    bound = Annotated[int, msgspec.Meta(ge=1)]
    assert refusal(0, bound, "c") == "c: 0 does not fit"
    assert refusal("x", bytearray | None, "c") == "c: expected null, got string"
    assert refusal(1, Level, "c") == "c: expected string, got number"
    assert refusal("c", Level, "c") == "c: 'c' is not one of a, b"


class Level(StrEnum):
    LOW = "a"
    HIGH = "b"


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


def test_a_path_through_arrays_and_objects_ends_at_the_type_there() -> None:
    assert options(type_at(TableProps, ("rows", 0, 0))) == (str, int, float, bool, type(None))
    assert options(type_at(ChartProps, ("datasets", 0, "label"))) == (str,)
    assert options(type_at(FormProps, ("fields", 0, "validation", "min_length")))[0] is int


def test_anything_can_stand_below_a_prop_of_any_json() -> None:
    assert type_at(FormProps, ("answer", "a", 0, "b")) is Any


@pytest.mark.parametrize(
    "path", [("headings",), ("rows", "a"), ("title", 0), ("tabs", 0, "nam"), ("tabs", 0, "nam", 0)]
)
def test_a_path_that_leads_nowhere_has_no_type(path: tuple[str | int, ...]) -> None:
    assert type_at(TableProps, path) is None


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (GroupProps, ("children", 0, "props")),
        (TabsProps, ("tabs", 0, "component", "id")),
        (SplitProps, ("left", "props", "content")),
    ],
)
def test_a_path_ends_at_a_component_with_an_id_of_its_own(
    root: Any, path: tuple[str | int, ...]
) -> None:
    assert type_at(root, path) is None


def test_bounds_are_found_through_unions() -> None:
    (mark,) = bounds(type_at(ImageProps, ("width",)))
    assert mark.description == "a size in 1…10000"
    assert bounds(type_at(ImageProps, ("alt",))) == ()


def test_only_arrays_have_items() -> None:
    assert item_type(type_at(TableProps, ("headers",))) is str
    assert item_type(type_at(TableProps, ("title",))) is None


def test_names_are_those_of_objects() -> None:
    assert names_in(type_at(ChartProps, ("datasets", 0))) == ("data", "label", "color")
    assert names_in(str) == ()


def test_the_nearest_name_is_meant_else_all_are_told() -> None:
    assert nearest("hedaers", ["headers", "rows"]) == '; did you mean "headers"?'
    assert nearest("zzz", ["headers", "rows"]) == "; known are headers, rows"
    assert nearest("zzz", []) == ""


def nested(component_id: str, **props: Any) -> dict[str, Any]:
    return {"id": component_id, "type": "text", "props": props}


@pytest.mark.parametrize(
    ("kind", "props", "where"),
    [
        ("group", {"children": [nested("a", content="a"), nested("b")]}, "children[1]"),
        (
            "tabs",
            {"tabs": [{"label": "1", "component": nested("a")}]},
            "tabs[0].component",
        ),
        ("split", {"left": nested("a", content="a"), "right": nested("b")}, "right"),
    ],
)
def test_children_are_checked_where_they_stand(
    kind: str, props: dict[str, Any], where: str
) -> None:
    assert refused({"id": "l", "type": kind, "props": props}) == (
        f"components[0].props.{where}.props.content: missing"
    )


def test_a_child_with_an_alias_is_written_anew_and_its_holders_alone_are_copied() -> None:
    first = {"label": "1", "component": nested("a", text="x")}
    second = {"label": "2", "component": nested("b", content="y")}
    value = {"tabs": [first, second], "active_tab": 1}
    checked = check_component({"id": "t", "type": "tabs", "props": value})
    assert checked.props == {
        "tabs": [{"label": "1", "component": nested("a", content="x")}, second],
        "active_tab": 1,
    }
    assert checked.props["tabs"][1] is second
    assert value == {"tabs": [first, second], "active_tab": 1}
    assert first == {"label": "1", "component": nested("a", text="x")}


class Settings(msgspec.Struct, frozen=True):
    level: Annotated[int, msgspec.Meta(ge=1, description="a number from 1")] = 1
    bound: Level = Level.LOW


def test_values_that_a_program_gave_a_struct_are_checked() -> None:
    check_fields(Settings(2, Level.HIGH))
    wrong: Any = {}
    for settings, told in (
        (Settings(0), "Settings.level: expected a number from 1"),
        (Settings(1, wrong), "Settings.bound: expected Level(…), got a dict"),
    ):
        with pytest.raises(ValueError, match=re.escape(told)):
            check_fields(settings)


def test_component_made_by_hand_is_checked_as_one_that_came() -> None:
    wrong: Any = 5
    assert refused(Component(wrong, "text", {"content": "x"})) == (
        "components[0].id: expected string, got number"
    )


def test_what_fits_has_no_reason() -> None:
    assert explain({}, Settings, "c") == "c: does not fit"


def test_words_of_an_enum_are_texts_of_a_component() -> None:
    """Its id and type may be written as whatever is a text; its version is a number and no bool."""

    class Kind(StrEnum):
        TEXT = "text"

    check_component(Component(Kind.TEXT, Kind.TEXT, {"content": "x"}))
    with pytest.raises(InvalidComponent, match="version: expected number, got boolean"):
        check_component(Component("a", "text", {"content": "x"}, version=True))
