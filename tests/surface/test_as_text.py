"""Every display component as text with the same content (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.surface.as_text import as_text

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("text", {"content": "a\nb"}, "a\nb"),
    ("markdown", {"content": "# a"}, "# a"),
    ("status-card", {"status": "success", "title": "Done"}, "[success] Done"),
    (
        "status-card",
        {
            "status": "error",
            "title": "Failed",
            "message": "No such file",
            "sections": [
                {"label": "path", "content": "a.csv"},
                {"label": "log", "content": "one\ntwo", "style": "code"},
            ],
        },
        "[error] Failed\nNo such file\npath: a.csv\nlog:\n  one\n  two",
    ),
    (
        "table",
        {"title": "T", "headers": ["a", "b"], "rows": [["x", 1], ["y", 22]]},
        "T\na   b\n-  --\nx   1\ny  22",
    ),
    (
        "table",
        {"title": "T", "headers": ["a"], "rows": [["x"], ["y"]], "selectable": "many"},
        "T\n#  a\n-  -\n1  x\n2  y\nReply with numbers of rows, such as 1,3.",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [["x"]], "selectable": "one", "state": "open"},
        "#  a\n-  -\n1  x\nReply with the number of a row.",
    ),
    (
        "table",
        {
            "headers": ["a"],
            "rows": [["x"]],
            "selectable": "many",
            "state": "answered",
            "answer": [0],
        },
        "#  a\n-  -\n1  x\nAnswered: 1.",
    ),
    (
        "table",
        {"headers": [], "rows": [], "selectable": "many", "state": "answered", "answer": []},
        "Answered: none.",
    ),
    (
        "table",
        {"headers": [], "rows": [], "selectable": "one", "state": "answered", "answer": 4},
        "Answered: 5.",
    ),
    (
        "table",
        {"headers": [], "rows": [], "selectable": "one", "state": "answered", "answer": "odd"},
        "Answered: odd.",
    ),
    (
        "table",
        {"headers": [], "rows": [], "selectable": "one", "state": "expired"},
        "Expired.",
    ),
    (
        "table",
        {"headers": ["a"], "rows": [["x"], ["y"]], "highlight": [1]},
        "  a\n  -\n  x\n* y",
    ),
    (
        "table",
        {
            "headers": [],
            "rows": [],
            "tabs": [
                {"name": "One", "headers": ["a"], "rows": [[1]], "highlight": [0]},
                {"name": "Two", "headers": [], "rows": [["x"]]},
            ],
        },
        "One\n  a\n  -\n* 1\n\nTwo\nx",
    ),
    ("table", {"headers": [], "rows": []}, ""),
    ("code-block", {"code": "x = 1"}, "x = 1"),
    (
        "code-block",
        {"title": "t.py", "language": "python", "code": "x"},
        "t.py (python)\nx",
    ),
    ("code-block", {"language": "python", "code": "x"}, "(python)\nx"),
    (
        "code-block",
        {
            "title": "Files",
            "tabs": [
                {"name": "a.py", "language": "python", "code": "x"},
                {"name": "b", "code": ""},
            ],
        },
        "Files\n\na.py (python)\nx\n\nb\n",
    ),
    ("code-block", {"tabs": [{"name": "a", "code": "x"}]}, "a\nx"),
    (
        "diff",
        {"title": "D", "before": "a", "after": "b", "language": "python"},
        "D\n--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b",
    ),
    (
        "key-value",
        {
            "title": "Facts",
            "items": [
                {"key": "a", "value": 1},
                {"key": "long", "value": None},
                {"key": "b", "value": True, "style": "error"},
                {"key": "c", "value": "x", "style": "muted"},
            ],
        },
        "Facts\na:    1\nlong:\nb:    true [error]\nc:    x",
    ),
    ("key-value", {"items": []}, ""),
    (
        "progress",
        {
            "title": "Import",
            "steps": [
                {"name": "read", "status": "done"},
                {"name": "write", "status": "active", "detail": "half"},
                {"name": "check", "status": "pending"},
                {"name": "mail", "status": "failed"},
            ],
        },
        "Import (1/4)\n[x] read\n[>] write: half\n[ ] check\n[!] mail",
    ),
    ("progress", {"steps": []}, "(0/0)"),
    (
        "chart",
        {"type": "bar", "title": "C", "labels": ["a"], "datasets": [{"label": "d", "data": [2.5]}]},
        "C\n     d\n-  ---\na  2.5",
    ),
    (
        "image",
        {"src": "https://example.com/c.png", "alt": "a cat", "caption": "Tom"},
        "[image: a cat] https://example.com/c.png\nTom",
    ),
    ("image", {"src": "data:image/png;base64,aGk=", "alt": "a cat"}, "[image: a cat]"),
    (
        "product-cards",
        {"title": "P", "cards": [{"name": "A", "price": 3}]},
        "P\nName  Price\n----  -----\nA         3",
    ),
]


@pytest.mark.parametrize(("kind", "props", "text"), CASES)
def test_the_text_says_what_the_component_says(kind: str, props: dict[str, Any], text: str) -> None:
    assert as_text(kind, props) == text


def test_text_of_a_long_table_is_cut_as_the_table_would_be() -> None:
    chart = {"type": "bar", "labels": ["a", "b"], "datasets": [{"label": "d", "data": [1, 2]}]}
    assert as_text("chart", chart, 1) == "   d\n-  -\na  1\n… 1 more row not shown"
    assert as_text("chart", chart, 2) == "   d\n-  -\na  1\nb  2"


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(numbers | st.text(), max_size=5),
    st.lists(st.lists(numbers | st.none(), max_size=5), max_size=3),
)
def test_a_chart_as_text_has_every_number_in_it(
    labels: list[Any], columns: list[list[Any]]
) -> None:
    datasets = [{"label": "d", "data": column} for column in columns]
    text = as_text("chart", {"type": "line", "labels": labels, "datasets": datasets})
    words = text.split()
    for value in [*labels, *(value for column in columns for value in column)]:
        if type(value) in (int, float):
            assert repr(value) in words
