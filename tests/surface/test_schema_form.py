"""A JSON Schema gives a form, and what the form was answered with becomes what the schema wants."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.components import Field, FormProps
from arp.protocol.errors import InvalidAnswer
from arp.protocol.validate import check_component
from arp.surface.answers import check_answer
from arp.surface.question_text import QUESTIONS
from arp.surface.schema_form import MAX_FIELDS, NoForm, form_of_schema


def fields(schema: dict[str, Any], **values: Any) -> list[dict[str, Any]]:
    """The fields of a form, as they stand on the wire; it passes the check of every form."""
    form = form_of_schema(schema, values)
    shown = check_component(form.component(id="q"), "form")
    return list(shown.props["fields"])


def one(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """An object with the one property `x`."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}


def read(schema: dict[str, Any], given: dict[str, Any]) -> Any:
    """What a form was answered with, through the check of every form."""
    form = form_of_schema(schema)
    told = check_answer(form.component(id="q"), "form_submit", {"fields": given})
    return form.read(told["fields"])


def refused(schema: dict[str, Any], given: dict[str, Any]) -> tuple[str | None, str]:
    """Which field is refused, and why."""
    with pytest.raises(InvalidAnswer) as error:
        read(schema, given)
    return error.value.detail, error.value.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "string"}, {"label": "X", "required": True}),
        (
            {"type": "string", "title": "Name", "description": "as in the passport"},
            {"label": "Name: as in the passport", "required": True},
        ),
        (
            {"type": "string", "title": "X", "description": "Where to?"},
            {"label": "Where to?", "required": True},
        ),
        (
            {"type": "string", "minLength": 2, "maxLength": 9, "default": "ab"},
            {
                "label": "X",
                "required": True,
                "value": "ab",
                "validation": {"min_length": 2, "max_length": 9},
            },
        ),
        (
            {"type": "string", "maxLength": 4000},
            {
                "label": "X",
                "required": True,
                "field_type": "textarea",
                "validation": {"max_length": 4000},
            },
        ),
        (
            {"type": "string", "format": "date"},
            {"label": "X", "required": True, "field_type": "date"},
        ),
        (
            {"type": "string", "format": "email"},
            {"label": "X", "required": True, "field_type": "email"},
        ),
        (
            {"type": "string", "writeOnly": True, "default": "hush"},
            {"label": "X", "required": True, "field_type": "password"},
        ),
        (
            {"type": "string", "format": "date-time"},
            {"label": "X", "required": True, "placeholder": "2026-01-31T18:30:00Z"},
        ),
        (
            {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
            {
                "label": "X",
                "required": True,
                "field_type": "number",
                "validation": {"min": 1, "max": 9},
            },
        ),
        (
            {"type": "number", "exclusiveMaximum": 1.5},
            {"label": "X", "required": True, "field_type": "number", "validation": {"max": 1.5}},
        ),
        ({"type": "boolean"}, {"label": "X", "field_type": "checkbox", "value": False}),
        (
            {"type": ["boolean", "null"]},
            {"label": "X", "field_type": "select", "options": ["Yes", "No"]},
        ),
        (
            {"enum": ["a", "b", None], "default": "b"},
            {"label": "X", "field_type": "select", "value": "b", "options": ["a", "b"]},
        ),
        (
            {"enum": ["s", "l"], "enumNames": ["small", "large"]},
            {
                "label": "X",
                "required": True,
                "field_type": "select",
                "options": [
                    {"label": "small", "value": "s"},
                    {"label": "large", "value": "l"},
                ],
            },
        ),
        (
            {
                "anyOf": [
                    {"const": 1, "title": "one"},
                    {"const": 2, "title": "two"},
                    {"type": "null"},
                ]
            },
            {"label": "X", "field_type": "select", "options": ["one", "two"]},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": ["a", "b"]},
            {
                "label": "X",
                "required": True,
                "field_type": "textarea",
                "value": "a\nb",
                "placeholder": "one on each line",
            },
        ),
    ],
)
def test_property_becomes_a_field(schema: dict[str, Any], field: dict[str, Any]) -> None:
    assert fields(one(schema)) == [{"name": "x", **field}]


def test_names_are_read_as_words() -> None:
    schema = {
        "type": "object",
        "properties": {"startDate": {"type": "string"}, "n_of": {"type": "integer"}},
    }
    assert [field["label"] for field in fields(schema)] == ["Start Date", "N of"]


def test_form_has_the_title_and_description_of_the_schema_unless_told_otherwise() -> None:
    form = form_of_schema({"title": "Trip", "description": "Where to", **one({"type": "string"})})
    shown = form.component(id="q").props
    assert (shown["title"], shown["description"]) == ("Trip", "Where to")
    other = form.component(title="Other", description="More", submit_label="Go").props
    assert (other["title"], other["description"], other["submit_label"]) == ("Other", "More", "Go")


def test_values_stand_in_the_fields_at_first() -> None:
    inner = {"type": "object", "properties": {"y": {"type": "integer", "default": 1}}}
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "in": inner}}
    assert [field.get("value") for field in fields(schema, x="a", **{"in": {"y": 5}})] == ["a", 5]
    assert [field.get("value") for field in fields(schema, x=None, **{"in": 3})] == [None, 1]
    assert fields({"type": "integer"}, value=4)[0]["value"] == 4


SIZES = {"enum": ["S", "M"], "default": "M"}


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (SIZES, {}, ("M", False)),  # left out, the default applies
        (SIZES, {"x": "S"}, ("S", True)),
        ({"enum": ["S", "M", None], "default": "M"}, {"x": "S"}, ("S", False)),
        ({"enum": ["S", "M", None], "default": "M"}, {"x": None}, (None, False)),
        ({"enum": ["S", "M"]}, {"y": 1}, (None, False)),
    ],
)
def test_choice_that_was_made_can_be_taken_back_only_for_null(
    schema: dict[str, Any], values: dict[str, Any], expected: tuple[Any, bool]
) -> None:
    (field,) = fields(one(schema, required=False), **values)
    assert (field.get("value"), field.get("required", False)) == expected


@pytest.mark.parametrize(
    "kind",
    [{"enum": ["S", "M", None]}, {"type": ["integer", "null"]}, {"type": ["boolean", "null"]}],
)
def test_emptied_field_is_null_where_values_were_given_and_the_default_elsewhere(
    kind: dict[str, Any],
) -> None:
    schema = one({**kind, "default": "M"}, required=False)
    for values, expected in ({"x": "S"}, {"x": None}), ({}, {}):
        assert form_of_schema(schema, values).read({"x": None}) == expected


def test_object_inside_has_its_fields_beside_the_others() -> None:
    address = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
        "required": ["city"],
    }
    schema = {
        "type": "object",
        "properties": {"address": {"$ref": "#/$defs/a~1b"}, "name": {"type": "string"}},
        "required": ["address"],
        "$defs": {"a/b": address},
    }
    city, number, name = fields(schema)
    assert (city["name"], city["label"], city["required"]) == (
        "address.city",
        "Address: City",
        True,
    )
    assert ("required" in number, "required" in name) == (False, False)
    given = {"address.city": "Rome", "address.zip": "12"}
    assert read(schema, given) == {"address": {"city": "Rome", "zip": 12}}


def test_offered_values_of_a_list_are_checkboxes() -> None:
    schema = one({"type": "array", "items": {"enum": ["tea", "milk"]}, "default": ["milk"]})
    tea, milk = fields(schema)
    assert [tea["label"], milk["label"]] == ["X: tea", "X: milk"]
    assert [tea["value"], milk["value"]] == [False, True]
    assert read(schema, {"x.1": True, "x.2": False}) == {"x": ["tea"]}
    assert read(one({"type": "array", "items": {"enum": ["a"]}}, required=False), {}) == {}
    bounded = one({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 1})
    assert refused(bounded, {}) == ("fields.x.1", "expected at least 1, got 0")
    both = {"x.1": True, "x.2": True}
    assert refused(bounded, both) == ("fields.x.1", "expected at most 1, got 2")


@pytest.mark.parametrize(
    ("schema", "given", "value"),
    [
        ({"type": "string"}, "a", "a"),
        ({"type": "integer"}, "3.0", 3),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number", "multipleOf": 5}, 10, 10),
        ({"type": "boolean"}, True, True),
        ({"type": ["boolean", "null"]}, "No", False),
        ({"enum": [1, 2.5, True]}, "2.5", 2.5),
        ({"enum": [1, 2.5, True]}, "Yes", True),
        ({"enum": ["s", "l"], "enumNames": ["small", "large"]}, "large", "l"),
        ({"type": "array", "items": {"type": "string"}}, " a \n\nb", ["a", "b"]),
        ({"type": "array", "items": {"type": "integer"}}, "1\n2", [1, 2]),
        ({"type": "array", "items": {"type": "number"}}, "1\n2.5", [1.0, 2.5]),
        ({"type": "array", "items": {"type": "string"}}, None, []),
        ({"type": "string", "format": "date-time"}, "2026-01-31T18:30:00Z", "2026-01-31T18:30:00Z"),
        ({"type": "string", "format": "uri"}, "https://a.example/b", "https://a.example/b"),
        ({"type": ["string", "null"]}, None, None),
    ],
)
def test_answer_becomes_what_the_schema_wants(
    schema: dict[str, Any], given: Any, value: Any
) -> None:
    answer = read(one(schema), {"x": given})
    assert (answer, type(answer["x"])) == ({"x": value}, type(value))


def test_what_nobody_filled_in_is_left_out_so_that_defaults_apply() -> None:
    assert read(one({"type": "string"}, required=False), {"x": ""}) == {}
    assert read(one({"type": ["string", "null"], "default": "a"}, required=False), {"x": ""}) == {}
    assert read(one({"type": "array", "items": {"type": "string"}}, required=False), {}) == {}
    assert read(one({"type": "boolean"}, required=False), {}) == {"x": False}


def test_property_with_one_value_has_no_field() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"const": "trip"}, "to": {"type": "string"}},
        "required": ["kind", "to"],
    }
    assert [field["name"] for field in fields(schema)] == ["to"]
    assert read(schema, {"to": "Rome"}) == {"kind": "trip", "to": "Rome"}
    optional = one({"const": "a"}, required=False)
    assert read(optional, {"x": None}) == {}
    assert read(optional, {"x": "a"}) == {"x": "a"}


@pytest.mark.parametrize(
    ("schema", "given", "why"),
    [
        ({"type": "integer"}, "1.5", "expected a whole number, got 1.5"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "expected more than 0, got 0"),
        ({"type": "number", "exclusiveMaximum": 2, "maximum": 2}, 2, "expected less than 2, got 2"),
        ({"type": "integer", "multipleOf": 5}, 7, "expected a multiple of 5, got 7"),
        (
            {"type": "array", "items": {"type": "integer"}},
            "1\nno",
            'expected a number on each line, got "no"',
        ),
        (
            {"type": "array", "items": {"type": "number"}},
            "inf",
            'expected a number on each line, got "inf"',
        ),
        ({"type": "array", "items": {"type": "integer"}}, "1.5", "expected whole numbers, got 1.5"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
            "a",
            "expected at least 2, got 1",
        ),
        (
            {"type": "string", "format": "date-time"},
            "soon",
            "expected a date and time such as 2026-01-31T18:30:00Z",
        ),
        (
            {"type": "string", "format": "uri"},
            "soon",
            "expected an address such as https://example.org",
        ),
        ({"type": "string"}, "", "missing; this field is required"),
    ],
)
def test_value_that_does_not_fit_is_refused_by_its_field(
    schema: dict[str, Any], given: Any, why: str
) -> None:
    assert refused(one(schema), {"x": given}) == ("fields.x", why)


def test_schema_that_is_no_object_is_one_field() -> None:
    """An interrupt or a tool may ask for a text or a number alone."""
    schema = {"type": "integer", "title": "How many"}
    (field,) = fields(schema)
    assert (field["name"], field["label"]) == ("value", "How many")
    assert read(schema, {"value": "3"}) == 3
    assert fields({"type": "string"})[0]["label"] == "Answer"
    assert read({"type": ["string", "null"]}, {"value": None}) is None


def test_place_in_the_answer_has_its_field() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "list": {"type": "array", "items": {"enum": ["x"]}},
        },
    }
    form = form_of_schema(schema)
    assert form.field_of(["a", "b"]) == "a.b"
    assert form.field_of(["list", 0]) == "list.1"
    assert (form.field_of(["a"]), form.field_of([])) == (None, None)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            one({"type": "array", "items": {"type": "object"}}),
            "x: type 'array', for which there is",
        ),
        (one({}), "x: no type, for which there is no field"),
        (one({"type": ["string", "integer"]}), "x: type ['string', 'integer'], for which"),
        (one({"type": "array"}), "x: no schema"),
        (one({"$ref": "https://example.org/x.json"}), "x: a reference to"),
        (one({"$ref": "#/$defs/none"}), "x: a reference to"),
        (
            {**one({"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}},
            "x: references that",
        ),
        ({"type": "object"}, "schema: an object of any shape"),
        (
            one(
                {
                    "properties": {
                        "x": {"properties": {"x": {"properties": {"x": {"properties": {}}}}}}
                    }
                }
            ),
            "x.x.x.x: an object",
        ),
    ],
)
def test_what_no_field_can_stand_for_gives_no_form(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(NoForm) as error:
        form_of_schema(schema)
    assert error.value.message.startswith(why)


def test_form_has_a_bound() -> None:
    many = {f"f{number}": {"type": "string"} for number in range(MAX_FIELDS + 1)}
    with pytest.raises(NoForm, match="at most 100"):
        form_of_schema({"type": "object", "properties": many})


def test_component_is_one_that_renderers_know() -> None:
    props = form_of_schema(one({"type": "integer"})).component(id="q").props
    told = msgspec.convert(props, FormProps)
    assert told.fields == (Field("x", "X", "number", required=True),)


# -- schemas of others -----------------------------------------------------------------------------


def test_options_that_share_a_title_are_told_apart_by_their_values() -> None:
    """A server may name two offices after their city; both can be chosen, by a click and in text."""  # noqa: E501
    schema = one(
        {"oneOf": [{"const": "zrh1", "title": "Zurich"}, {"const": "zrh2", "title": "zurich"}]}
    )
    (field,) = fields(schema)
    assert field["options"] == [
        {"label": "Zurich (zrh1)", "value": "zrh1"},
        {"label": "zurich (zrh2)", "value": "zrh2"},
    ]
    for given in ("zrh2", "zurich (zrh2)"):
        assert read(schema, {"x": given}) == {"x": "zrh2"}


@pytest.mark.parametrize(
    ("schema", "labels", "values"),
    [
        # A number and its text are two values; true is not 1.
        ({"enum": [1, "1", True]}, ["1", "1 (2)", "Yes"], [1, "1", True]),
        # The same option twice is one.
        ({"enum": ["a", "a"]}, ["a"], ["a"]),
        ({"enum": ["a", "b", "c"], "enumNames": ["A", "A", "A"]}, ["A", "A (b)", "A (c)"], "abc"),
        # The label of one is the value of the other: a text means the label.
        ({"enum": ["a", "b"], "enumNames": ["b", "a"]}, ["b", "a"], ["a", "b"]),
        # What would make two alike already is the label of a third one.
        (
            {"enum": ["1", "2", "3"], "enumNames": ["A", "A", "A (1)"]},
            ["A (2)", "A (2) (2)", "A (1)"],
            ["1", "2", "3"],
        ),
        ({"enum": [9007199254740993, 9007199254740992]}, ["9007199254740993", "9007199254740992"],
         [9007199254740993, 9007199254740992]),
        ({"anyOf": [{"const": "r", "title": " "}, {"const": None}]}, ["r"], ["r"]),
        ({"enum": [{"a": 1}, [2]]}, ['{"a":1}', "[2]"], [{"a": 1}, [2]]),
    ],
)  # fmt: skip
def test_each_offered_value_can_be_chosen_by_its_label(
    schema: dict[str, Any], labels: list[str], values: Any
) -> None:
    (field,) = fields(one(schema))
    shown = [option if isinstance(option, str) else option["label"] for option in field["options"]]
    assert len(set(shown)) == len(values)
    for label, value in zip(shown, values, strict=True):
        answer = read(one(schema), {"x": label})["x"]
        assert (answer, type(answer)) == (value, type(value))
    if "A (1)" not in labels:
        assert shown == labels


def test_title_of_the_only_option_is_not_that_of_the_property() -> None:
    low = {"const": "low", "title": "Low priority"}
    for way in ("oneOf", "anyOf"):
        (field,) = fields(one({"type": "string", way: [low]}))
        assert (field["label"], field["options"]) == (
            "X",
            [{"label": "Low priority", "value": "low"}],
        )
    (box,) = fields(one({"type": "array", "items": {"anyOf": [low]}}))
    assert box["label"] == "X: Low priority"


def test_only_value_that_may_be_null_too_is_a_choice() -> None:
    schema = one({"anyOf": [{"const": "a"}, {"type": "null"}]})
    assert fields(schema)[0]["options"] == ["a"]
    assert (read(schema, {"x": "a"}), read(schema, {})) == ({"x": "a"}, {"x": None})
    assert read(one({"allOf": [{"const": "a"}]}), {}) == {"x": "a"}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "array", "items": {"type": "string"}, "default": ["a", "b"]}, ["a\nb"]),
        ({"type": "array", "items": {"type": "integer"}, "default": [1, 2.0]}, ["1\n2"]),
        ({"type": "array", "items": {"enum": ["a", 1, True]}, "default": [True]}, [False, False, True]),  # noqa: E501
        # A default with two lines in a value cannot stand in the field: it applies if left out.
        ({"type": "array", "items": {"type": "string"}, "default": ["a\nb"]}, [None]),
        ({"type": "array", "items": {"type": "integer"}, "default": [1, "x"]}, [None]),
        ({"type": "array", "items": {"type": "string"}, "default": "a"}, [None]),
        ({"type": "integer", "default": 3.0}, [3]),
        ({"type": "integer", "default": 2.5}, [None]),
        ({"type": "integer", "default": True}, [None]),
        ({"type": "integer", "default": 2**70}, [None]),
        ({"type": "number", "default": 2.5}, [2.5]),
        ({"type": "string", "default": 5}, [None]),
        ({"type": "string", "format": "date", "default": "2026-01-31"}, ["2026-01-31"]),
        ({"type": "string", "format": "date", "default": "today"}, [None]),
        ({"type": "string", "format": "date", "default": "20260131"}, [None]),
        ({"enum": ["s", "l"], "enumNames": ["small", "large"], "default": "l"}, ["l"]),
        ({"enum": ["s"], "default": "x"}, [None]),
        ({"enum": [True, 1], "default": 1}, ["1"]),
    ],
)  # fmt: skip
def test_default_stands_in_the_field_as_far_as_it_fits(
    schema: dict[str, Any], shown: list[Any]
) -> None:
    values = [field.get("value") for field in fields(one(schema))]
    assert (values, list(map(type, values))) == (shown, list(map(type, shown)))


def test_default_of_an_object_is_one_for_each_of_its_properties() -> None:
    address = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "default": "Bern"},
            "zip": {"type": "integer", "default": 3000},
            "tags": {"type": "array", "items": {"enum": ["home", "work"]}},
        },
    }
    default = {"home": {"city": "Rome", "tags": ["work"]}}
    schema = {
        "type": "object",
        "properties": {"home": {"$ref": "#/$defs/address"}},
        "default": default,
        "$defs": {"address": address},
    }
    values = [field["value"] for field in fields(schema)]
    assert values == ["Rome", 3000, False, True]


def test_emptied_list_does_not_become_its_default_again() -> None:
    words = {"type": "array", "items": {"type": "string"}, "default": ["a"]}
    assert read(one(words, required=False), {"x": ""}) == {"x": []}
    ticks = {"type": "array", "items": {"enum": ["a"]}, "default": ["a"]}
    assert read(one(ticks, required=False), {"x.1": False}) == {"x": []}


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({"type": "integer", "exclusiveMinimum": -0.5, "exclusiveMaximum": 2.5}, {"min": 0, "max": 2}),  # noqa: E501
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": 1}, {"min": 5}),
        ({"type": "integer", "minimum": 1.0, "maximum": 2.5}, {"min": 1, "max": 2}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"min": 1}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": 2}, {"min": 2}),
        ({"type": "number", "maximum": 3, "exclusiveMaximum": 2}, {"max": 2}),
        # A limit that no renderer can count to is left to the answer's check.
        ({"type": "integer", "minimum": 0, "maximum": 2**63}, {"min": 0}),
        ({"type": "number", "maximum": 1e308}, None),
    ],
)  # fmt: skip
def test_limits_of_numbers(schema: dict[str, Any], bounds: dict[str, Any] | None) -> None:
    (field,) = fields(one(schema))
    assert field.get("validation") == bounds


@pytest.mark.parametrize(
    ("schema", "given", "why"),
    [
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, 1, "expected more than 1, got 1"),  # noqa: E501
        ({"type": "array", "items": {"type": "integer", "maximum": 1}}, "2", "expected at most 1, got 2"),  # noqa: E501
        ({"type": "number", "multipleOf": 0.1}, 0.25, "expected a multiple of 0.1, got 0.25"),
        (
            {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "2\n0",
            "expected at least 1, got 0",
        ),
        ({"type": "array", "items": {"type": "integer"}}, "9" * 30, f"the number {'9' * 30} is too large"),  # noqa: E501
        (
            {"type": "array", "items": {"type": "number"}},
            "1_0",
            'expected a number on each line, got "1_0"',
        ),
        (
            {"type": "array", "items": {"type": "number"}},
            "1e999",
            'expected a number on each line, got "1e999"',
        ),
    ],
)  # fmt: skip
def test_number_that_its_schema_refuses_is_refused_by_its_field(
    schema: dict[str, Any], given: Any, why: str
) -> None:
    assert refused(one(schema), {"x": given}) == ("fields.x", why)


def test_numbers_keep_all_their_digits() -> None:
    big = 9007199254740993
    listed = one({"type": "array", "items": {"type": "integer"}})
    assert read(listed, {"x": f"{big}\n1"}) == {"x": [big, 1]}
    assert read(one({"type": "number", "multipleOf": 0.1}), {"x": "0.3"}) == {"x": 0.3}
    tiny = one({"type": "number", "multipleOf": 1e-300})
    assert read(tiny, {"x": "1e300"}) == {"x": 1e300}


def test_property_whose_name_no_field_can_have_is_asked_under_another() -> None:
    """`:` would end the name in a typed answer; and two ways lead to the name `a.b`."""
    schema = {
        "type": "object",
        "properties": {
            "a:b": {"type": "string"},
            "prototype": {"type": "string"},
            "a.b": {"type": "string"},
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "list": {"type": "array", "items": {"enum": ["x"]}},
            "list.1": {"type": "string"},
            "field 1": {"type": "string"},
        },
    }
    names = [field["name"] for field in fields(schema)]
    assert names == ["field 1", "field 2", "a.b", "field 4", "list.1", "field 6", "field 7"]
    given = {name: str(place) for place, name in enumerate(names) if name != "list.1"}
    assert read(schema, {**given, "list.1": True}) == {
        "a:b": "0",
        "prototype": "1",
        "a.b": "2",
        "a": {"b": "3"},
        "list": ["x"],
        "list.1": "5",
        "field 1": "6",
    }


def test_default_is_read_by_its_label_where_the_form_is_text() -> None:
    sizes = {"enum": ["s", "l"], "enumNames": ["small", "large"], "default": "l"}
    form = form_of_schema(one(sizes)).component(id="q")
    assert "- x (X): one of small | large, required, now large" in QUESTIONS["form"](form.props)
