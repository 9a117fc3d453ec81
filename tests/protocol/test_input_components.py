"""The four input components: what fits and what does not (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.component import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.input_components import FieldOption, Option, label_of, value_of
from arp.protocol.validation import check_component

FITS: list[tuple[str, dict[str, Any]]] = [
    ("form", {"fields": []}),
    (
        "form",
        {
            "title": "t",
            "description": "d",
            "fields": [
                {"name": "first name", "label": "First name", "required": True},
                {"name": "age", "field_type": "number", "validation": {"min": 0, "max": 1.5}},
                {
                    "name": "day",
                    "field_type": "date",
                    "validation": {"min": "2026-01-01", "message": "too early"},
                },
                {
                    "name": "size",
                    "field_type": "select",
                    "options": ["S", {"label": "Medium", "value": 2}],
                    "value": "S",
                },
                {"name": "pin", "field_type": "password", "validation": {"max_length": 4}},
                {"name": "ok", "field_type": "checkbox", "value": True},
                {"name": "note", "field_type": "textarea", "placeholder": "p"},
                {"name": "scan", "field_type": "file"},
            ],
            "submit_label": "Send",
            "submit_action": "save",
            "state": "answered",
            "answer": {"anything": ["plain", 1]},
        },
    ),
    ("confirm", {"title": "Sure?"}),
    (
        "confirm",
        {
            "title": "Sure?",
            "message": "m",
            "confirm_label": "y",
            "deny_label": "n",
            "destructive": True,
            "state": "open",
            "answer": None,
        },
    ),
    ("choices", {"options": []}),
    (
        "choices",
        {
            "title": "t",
            "options": [
                "a",
                {"label": "b", "value": 2, "description": "d", "icon": "★", "disabled": True},
            ],
            "style": "cards",
            "multi_select": True,
            "state": "expired",
        },
    ),
    ("text-input", {}),
    (
        "text-input",
        {
            "label": "l",
            "placeholder": "p",
            "max_length": 10,
            "multiline": True,
            "submit_label": "s",
            "state": "cancelled",
        },
    ),
]


def field(**more: Any) -> dict[str, Any]:
    return {"fields": [{"name": "f", **more}]}


FAILS: list[tuple[str, dict[str, Any], str]] = [
    ("form", {"fields": [{"label": "l"}]}, "fields[0].name: missing"),
    (
        "form",
        {"fields": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        'component.props: two fields are named "a"',
    ),
    ("form", field(field_type="url"), "fields[0].field_type: 'url' is not one of text, "),
    ("form", field(field_type="select"), "fields[0]: a select field needs options"),
    ("form", field(options=["a"]), "fields[0]: options belong to a select field, this is text"),
    (
        "form",
        field(validation={"min": 1}),
        "fields[0]: validation.min and max do not apply to a text field",
    ),
    (
        "form",
        field(field_type="number", validation={"max": "2026-01-01"}),
        "fields[0]: validation.min and max of a number field are numbers",
    ),
    (
        "form",
        field(field_type="date", validation={"min": 3}),
        "fields[0]: validation.min and max of a date field are dates",
    ),
    (
        "form",
        field(field_type="number", validation={"min_length": 3}),
        "fields[0]: validation.min_length and max_length: not for a number field",
    ),
    (
        "form",
        field(field_type="checkbox", validation={"max_length": 3}),
        "fields[0]: validation.min_length and max_length: not for a checkbox field",
    ),
    (
        "form",
        field(validation={"pattern": "(a+)+"}),
        "fields[0].validation.pattern: unknown; known are min, max, ",
    ),
    ("form", {"fields": [], "state": "closed"}, "state: 'closed' is not one of open, answered, "),
    ("confirm", {}, "title: missing"),
    ("choices", {"options": [1]}, "options[0]: expected string or object, got number"),
    ("choices", {"options": [{"value": 1}]}, "options[0].label: missing"),
    (
        "choices",
        {"options": [{"label": "l", "value": True}]},
        "options[0].value: expected number, string or null, got boolean",
    ),
    ("text-input", {"max_length": -1}, "max_length: expected a whole number from 0"),
]


@pytest.mark.parametrize(("kind", "props"), FITS)
def test_props_of_the_catalog_fit(kind: str, props: dict[str, Any]) -> None:
    component = Component("c", kind, props)
    assert check_component(component) is component


@pytest.mark.parametrize(("kind", "props", "message"), FAILS)
def test_what_does_not_fit_is_refused_by_its_path(
    kind: str, props: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidComponent) as refused:
        check_component(Component("c", kind, props))
    assert message in refused.value.message
    assert refused.value.message.startswith("component.props")


@pytest.mark.parametrize(
    "name", ["", "a:b", "a=b", "a;b", "a\nb", "__proto__", "constructor", "prototype", "n" * 129]
)
def test_a_field_name_cannot_be_what_typed_answers_or_objects_stumble_over(name: str) -> None:
    with pytest.raises(InvalidComponent, match="expected a field name"):
        check_component(Component("c", "form", {"fields": [{"name": name}]}))


@pytest.mark.parametrize("name", ["_id", "constructors", "日付", "a.b", "first name"])
def test_other_field_names_are_free(name: str) -> None:
    check_component(Component("c", "form", {"fields": [{"name": name}]}))


def test_an_option_without_value_is_its_label() -> None:
    options: list[str | FieldOption | Option] = ["a", FieldOption("b"), Option("c", 0)]
    assert [value_of(option) for option in options] == ["a", "b", 0]
    assert [label_of(option) for option in options] == ["a", "b", "c"]
