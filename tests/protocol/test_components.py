"""The ten display components: what fits and what does not (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.component import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.validation import check_component

FITS: list[tuple[str, dict[str, Any]]] = [
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

FAILS: list[tuple[str, dict[str, Any], str]] = [
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
    assert refused.value.message == message
