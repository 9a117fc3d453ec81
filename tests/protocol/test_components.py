"""Props take what the protocol says, and refuse the rest with the place and what would fit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.components import (
    Color,
    Component,
    FieldOption,
    ImageSource,
    Language,
    Link,
    Option,
    Ratio,
    author_of,
    label_of,
    value_of,
)
from arp.protocol.errors import InvalidComponent
from arp.protocol.validate import check_component

BLOB = "/_api/blobs/0f3a-b.png"
ADDRESSES = ["http://a", "https://a.example/b?c=d#e", "HTTPS://A.example", "https://ä.example/ü"]
DATA = ["data:image/png;base64,aGk=", "data:image/webp;base64,aGkh", "data:image/gif;base64,YQ=="]

HOSTILE = [
    "",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\nscript:alert(1)",
    " https://a",
    "https://a\n",
    "https://a b",
    "https://a\u202eb",
    "https://a\u200bb",
    'https://a"b',
    "https://a<b",
    "https://a\\b",
    "https://",
    "vbscript:x",
    "file:///etc/passwd",
    "ftp://a",
    "//a.example/b",
    "/b",
    "b.png",
    "data:text/html;base64,aGk=",
    "data:image/svg+xml;base64,aGk=",
    "data:image/png,raw",
    "data:image/png;base64,aGk=\n",
    "blob:https://a",
    "/_api/blobs/",
    "/_api/blobs/..",
    "/_api/blobs/a/../b",
    "/_api/blobs/a?b",
    "/_api/chats/a",
]


def takes(kind: Any, value: str) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("value", [*ADDRESSES, BLOB, "mailto:a@b.example", "MAILTO:a@b.example"])
def test_a_link_leads_to_the_web_to_mail_or_to_a_blob(value: str) -> None:
    assert takes(Link, value)


@pytest.mark.parametrize("value", [*ADDRESSES, BLOB, *DATA])
def test_an_image_comes_from_the_web_from_data_or_from_a_blob(value: str) -> None:
    assert takes(ImageSource, value)


@pytest.mark.parametrize("value", HOSTILE)
def test_every_other_address_is_refused(value: str) -> None:
    assert not takes(Link, value)
    assert not takes(ImageSource, value)


def test_a_link_is_no_data_and_an_image_no_mail() -> None:
    assert not takes(Link, DATA[0])
    assert not takes(ImageSource, "mailto:a@b.example")


@pytest.mark.parametrize(
    "value", ["#fff", "#36A2EB", "#36a2ebcc", "teal", "chart-1", "rgb(1, 2, 3)", "hsla(9,5%,5%,.5)"]
)
def test_a_colour_is_hex_a_name_or_a_function_of_numbers(value: str) -> None:
    assert takes(Color, value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "#ff",
        "#fffffffff",
        "red;",
        "red\n",
        "url(//a.example/b)",
        "expression(1)",
        "rgb(url(x))",
        "var(--a)",
        "r" * 33,
    ],
)
def test_a_colour_is_nothing_else(value: str) -> None:
    assert not takes(Color, value)


@pytest.mark.parametrize("value", ["python", "C++", "c#", "objective-c", "f" * 32])
def test_a_language_is_a_short_name(value: str) -> None:
    assert takes(Language, value)


@pytest.mark.parametrize("value", ["", "a b", 'x" onload="', "../x", "python\n", "f" * 33])
def test_a_language_is_nothing_else(value: str) -> None:
    assert not takes(Language, value)


def test_a_ratio_is_two_numbers_from_1_to_99() -> None:
    assert takes(Ratio, "1:99")
    assert not any(takes(Ratio, value) for value in ("0:1", "1:100", "1", "1:2:3", "1:2\n"))


DISPLAY_FITS: list[tuple[str, dict[str, Any]]] = [
    ("text", {"content": ""}),
    ("text", {"content": "hi", "format": "markdown"}),
    ("markdown", {"content": "# hi"}),
    ("status-card", {"status": "info", "title": "Done"}),
    (
        "status-card",
        {
            "status": "error",
            "title": "Failed",
            "message": None,
            "sections": [{"label": "log", "content": "x", "style": "code"}],
        },
    ),
    ("table", {"headers": [], "rows": []}),
    ("table", {"headers": ["a", "b"], "rows": [["x", 1], [None, 2.5], [True], [1, 2, 3]]}),
    (
        "table",
        {
            "title": "T",
            "headers": ["a"],
            "rows": [[1]],
            "tabs": [{"name": "n", "headers": ["b"], "rows": [[2]], "highlight": [0]}],
            "highlight": [0],
            "searchable": True,
            "sortable": False,
        },
    ),
    ("code-block", {"code": ""}),
    ("code-block", {"title": "t", "language": "C++", "code": "x"}),
    ("code-block", {"tabs": [{"name": "a.cs", "language": "c#", "code": "x"}]}),
    ("diff", {"before": "a", "after": "b"}),
    (
        "diff",
        {
            "title": "t",
            "before": "",
            "after": "",
            "before_label": "old",
            "after_label": "new",
            "language": "python",
        },
    ),
    ("key-value", {"items": []}),
    ("key-value", {"title": "t", "items": [{"key": "k", "value": None, "style": "muted"}]}),
    ("progress", {"steps": [{"name": "a", "status": "active", "detail": "half"}]}),
    ("chart", {"type": "pie", "labels": [], "datasets": []}),
    (
        "chart",
        {
            "type": "scatter",
            "title": "t",
            "labels": [1, 2.5],
            "datasets": [{"label": "d", "data": [1, None], "color": "#36a2eb"}],
            "height": 300,
        },
    ),
    ("image", {"src": "https://example.com/cat.png", "alt": "a cat"}),
    (
        "image",
        {
            "src": "data:image/png;base64,aGk=",
            "alt": "",
            "width": 10,
            "height": 2.5,
            "caption": "Cat",
        },
    ),
    ("product-cards", {"cards": []}),
    (
        "product-cards",
        {
            "title": "t",
            "cards": [
                {
                    "name": "n",
                    "price": 9.5,
                    "image": "/_api/blobs/ab12",
                    "brand": "b",
                    "description": "d",
                    "badge": "new",
                    "url": "mailto:a@example.com",
                }
            ],
        },
    ),
]

DISPLAY_FAILS: list[tuple[str, dict[str, Any], str]] = [
    ("text", {}, "component.props.content: missing"),
    ("text", {"content": 1}, "component.props.content: expected string, got number"),
    (
        "text",
        {"content": "", "format": "html"},
        "component.props.format: 'html' is not one of plain, markdown",
    ),
    ("markdown", {"content": None}, "component.props.content: expected string, got null"),
    (
        "status-card",
        {"status": "bad", "title": "t"},
        "component.props.status: 'bad' is not one of success, error, warning, info",
    ),
    (
        "status-card",
        {"status": "info", "title": "t", "sections": [{"label": "l"}]},
        "component.props.sections[0].content: missing",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [[1], [2], [3], 4]},
        "component.props.rows[3]: expected array, got number",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [[{}]]},
        "component.props.rows[0][0]: expected boolean, number, string or null, got object",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [], "highlight": [-1]},
        "component.props.highlight[0]: expected a whole number from 0",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [], "highlight": [1.5]},
        "component.props.highlight[0]: expected whole number, got fraction",
    ),
    ("code-block", {}, "component.props: needs code or tabs"),
    ("code-block", {"tabs": []}, "component.props: needs code or tabs"),
    (
        "code-block",
        {"code": "", "language": "py thon"},
        'component.props.language: expected the name of a language such as "python", "c++" or "c#"',
    ),
    ("diff", {"before": "a"}, "component.props.after: missing"),
    (
        "key-value",
        {"items": {"a": 1}},
        "component.props.items: expected array, got object",
    ),
    (
        "progress",
        {"steps": [{"name": "a", "status": "done", "state": 1}]},
        'component.props.steps[0].state: unknown; did you mean "status"?',
    ),
    ("chart", {"type": "bar", "labels": []}, "component.props.datasets: missing"),
    (
        "chart",
        {"type": "bar", "labels": [], "datasets": [{"data": ["1"]}]},
        "component.props.datasets[0].data[0]: expected number or null, got string",
    ),
    (
        "chart",
        {"type": "bar", "labels": [], "datasets": [], "height": 0},
        "component.props.height: expected a size in 1…10000",
    ),
    ("image", {"src": "https://example.com/"}, "component.props.alt: missing"),
    (
        "product-cards",
        {"cards": [{"name": "n", "url": "javascript:alert(1)"}]},
        (
            "component.props.cards[0].url: expected an http, https or mailto address, "
            "or a path below /_api/blobs/"
        ),
    ),
]


INPUT_FITS: list[tuple[str, dict[str, Any]]] = [
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


INPUT_FAILS: list[tuple[str, dict[str, Any], str]] = [
    ("form", {"fields": [{"label": "l"}]}, "component.props.fields[0].name: missing"),
    (
        "form",
        {"fields": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        'component.props: two fields are named "a"',
    ),
    (
        "form",
        field(field_type="url"),
        (
            "component.props.fields[0].field_type: 'url' is not one of text, textarea, "
            "select, checkbox, number, date, email, password, file"
        ),
    ),
    ("form", field(field_type="select"), "component.props.fields[0]: a select field needs options"),
    (
        "form",
        field(options=["a"]),
        "component.props.fields[0]: options belong to a select field, this is text",
    ),
    (
        "form",
        field(validation={"min": 1}),
        "component.props.fields[0]: validation.min and max do not apply to a text field",
    ),
    (
        "form",
        field(field_type="number", validation={"max": "2026-01-01"}),
        "component.props.fields[0]: validation.min and max of a number field are numbers",
    ),
    (
        "form",
        field(field_type="date", validation={"min": 3}),
        "component.props.fields[0]: validation.min and max of a date field are dates",
    ),
    (
        "form",
        field(field_type="number", validation={"min_length": 3}),
        "component.props.fields[0]: validation.min_length and max_length: not for a number field",
    ),
    (
        "form",
        field(field_type="checkbox", validation={"max_length": 3}),
        "component.props.fields[0]: validation.min_length and max_length: not for a checkbox field",
    ),
    (
        "form",
        field(validation={"pattern": "(a+)+"}),
        (
            "component.props.fields[0].validation.pattern: unknown; known are min, max, "
            "min_length, max_length, message"
        ),
    ),
    (
        "form",
        {"fields": [], "state": "closed"},
        (
            "component.props.state: 'closed' is not one of open, answered, declined, expired, "
            "cancelled"
        ),
    ),
    ("confirm", {}, "component.props.title: missing"),
    (
        "choices",
        {"options": [1]},
        "component.props.options[0]: expected string or object, got number",
    ),
    ("choices", {"options": [{"value": 1}]}, "component.props.options[0].label: missing"),
    (
        "choices",
        {"options": [{"label": "l", "value": True}]},
        "component.props.options[0].value: expected number, string or null, got boolean",
    ),
    (
        "text-input",
        {"max_length": -1},
        "component.props.max_length: expected a whole number from 0",
    ),
]


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


LEFT = {"id": "l", "type": "text", "props": {"content": "left"}}
RIGHT = {"id": "r", "type": "text", "props": {"content": "right"}, "version": 1}

LAYOUT_FITS: list[tuple[str, dict[str, Any]]] = [
    ("group", {"children": []}),
    ("group", {"children": [LEFT, RIGHT], "direction": "horizontal", "gap": "none"}),
    ("tabs", {"tabs": []}),
    ("tabs", {"tabs": [{"label": "L", "icon": "★", "component": LEFT}], "active_tab": 0}),
    ("split", {"left": LEFT, "right": RIGHT}),
    ("split", {"left": LEFT, "right": RIGHT, "ratio": "1:2", "direction": "vertical"}),
]

LAYOUT_FAILS: list[tuple[str, dict[str, Any], str]] = [
    ("group", {}, "component.props.children: missing"),
    (
        "group",
        {"children": ["a"]},
        "component.props.children[0]: expected object, got string",
    ),
    (
        "group",
        {"children": [LEFT, {"id": "t", "type": "table", "props": {"headers": [], "rows": 5}}]},
        "component.props.children[1].props.rows: expected array, got number",
    ),
    ("tabs", {"tabs": [{"label": "L"}]}, "component.props.tabs[0].component: missing"),
    (
        "tabs",
        {"tabs": [{"label": "L", "component": {"id": "t", "type": "text", "props": {}}}]},
        "component.props.tabs[0].component.props.content: missing",
    ),
    (
        "tabs",
        {"tabs": [], "active_tab": "L"},
        "component.props.active_tab: expected number, got string",
    ),
    ("split", {"left": LEFT}, "component.props.right: missing"),
    (
        "split",
        {"left": LEFT, "right": RIGHT, "ratio": "0:1"},
        'component.props.ratio: expected a ratio such as "1:2"',
    ),
    (
        "split",
        {"left": LEFT, "right": LEFT},
        'component.props.right.id: "l" is used twice',
    ),
]


@pytest.mark.parametrize(("kind", "props"), [*DISPLAY_FITS, *INPUT_FITS, *LAYOUT_FITS])
def test_props_of_the_catalog_fit(kind: str, props: dict[str, Any]) -> None:
    component = Component("c", kind, props)
    assert check_component(component) is component


@pytest.mark.parametrize(
    ("kind", "props", "message"), [*DISPLAY_FAILS, *INPUT_FAILS, *LAYOUT_FAILS]
)
def test_what_does_not_fit_is_refused_by_its_path(
    kind: str, props: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidComponent) as refused:
        check_component(Component("c", kind, props))
    assert refused.value.message == message


def test_author_is_named_in_bold_where_the_renderer_does_not_know_authors() -> None:
    """Characters that mean something in Markdown are escaped, white space and length are cut."""
    made = author_of(" A*da\n B. ")
    assert (made.id, made.type, made.props) == ("", "x-arp-author", {"name": "A*da B."})
    assert made.fallback is not None
    assert made.fallback.props["content"] == "**A\\*da B.**"
    assert len(author_of("x" * 200).props["name"]) == 80
