"""A question as text says how to answer; a closed one says how it went (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.surface.as_text import as_text

FORM = {
    "title": "You",
    "description": "For the badge",
    "fields": [
        {"name": "name", "label": "Full name", "required": True, "placeholder": "Ann Li"},
        {"name": "age", "field_type": "number", "validation": {"min": 0, "max": 120}},
        {
            "name": "nick",
            "label": "nick",
            "value": "al",
            "validation": {"min_length": 2, "max_length": 9, "message": "2 to 9"},
        },
        {"name": "size", "field_type": "select", "options": ["S", {"label": "M", "value": 2}]},
        {"name": "news", "field_type": "checkbox", "value": False},
        {"name": "day", "field_type": "date"},
        {"name": "note", "field_type": "textarea"},
        {"name": "pin", "field_type": "password", "value": "1234"},
        {"name": "scan", "field_type": "file"},
    ],
}

CHOICES = {
    "title": "Which?",
    "options": ["a", {"label": "b", "value": 2, "description": "second", "disabled": True}],
}

CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "form",
        FORM,
        (
            "You\n"
            "For the badge\n"
            "- name (Full name): text, required, such as Ann Li\n"
            "- age: number, from 0, to 120, optional\n"
            "- nick: text, at least 2 characters, at most 9 characters, optional, now al\n"
            "- size: one of S | M, optional\n"
            "- news: yes or no, optional, now false\n"
            "- day: date YYYY-MM-DD, optional\n"
            "- note: text, optional\n"
            "- pin: password, cannot be typed here, optional\n"
            "- scan: file, cannot be typed here, optional\n"
            'Reply with a line "name: value" for each field.'
        ),
    ),
    (
        "form",
        {"fields": [{"name": "city", "label": "City"}, {"name": "scan", "field_type": "file"}]},
        (
            "- city (City): text, optional\n"
            "- scan: file, cannot be typed here, optional\n"
            "Reply with the City."
        ),
    ),
    ("form", {"fields": [{"name": "city"}]}, "- city: text, optional\nReply with the city."),
    (
        "form",
        {"fields": [{"name": "pin", "field_type": "password", "required": True}]},
        "- pin: password, cannot be typed here, required\nThis form cannot be answered by text.",
    ),
    (
        "form",
        {
            **FORM,
            "state": "answered",
            "answer": {
                "name": "Ann",
                "age": 30,
                "nick": None,
                "size": 2,
                "news": True,
                "pin": "1234",
                "scan": {"id": "f", "name": "a.pdf", "size": 1, "mime": "x/y", "sha256": "0"},
            },
        },
        (
            "You\n"
            "For the badge\n"
            "- Full name: Ann\n"
            "- age: 30\n"
            "- size: M\n"
            "- news: yes\n"
            "- pin: ••••\n"
            "- scan: a.pdf\n"
            "Answered."
        ),
    ),
    (
        "form",
        {"fields": [{"name": "a"}, {"name": "b"}], "state": "answered", "answer": {"a": False}},
        "- a: no\nAnswered.",
    ),
    ("form", {"fields": [{"name": "a"}], "state": "answered"}, "Answered."),
    ("form", {"fields": [{"name": "a"}], "state": "declined"}, "Declined."),
    ("form", {"fields": [{"name": "a"}], "state": "expired"}, "Expired."),
    ("confirm", {"title": "Delete?"}, "Delete?\nReply yes or no."),
    (
        "confirm",
        {
            "title": "Delete?",
            "message": "All of it",
            "confirm_label": "Delete",
            "deny_label": "Keep",
            "destructive": True,
            "state": "open",
        },
        "[warning] Delete?\nAll of it\nReply yes (Delete) or no (Keep).",
    ),
    (
        "confirm",
        {"title": "Go?", "confirm_label": "Go", "state": "answered", "answer": True},
        "Go?\nAnswered: yes (Go).",
    ),
    ("confirm", {"title": "Go?", "state": "answered", "answer": False}, "Go?\nAnswered: no."),
    ("confirm", {"title": "Go?", "state": "answered"}, "Go?\nAnswered."),
    ("confirm", {"title": "Go?", "state": "cancelled"}, "Go?\nCancelled."),
    (
        "choices",
        CHOICES,
        "Which?\n1. a\n2. b: second (not available)\nReply with a number.",
    ),
    (
        "choices",
        {"options": ["a", {"label": "b"}], "multi_select": True},
        "1. a\n2. b\nReply with numbers, such as 1,3.",
    ),
    ("choices", {"options": ["2", "4"]}, "- 2\n- 4\nReply with one of them."),
    (
        "choices",
        {"options": ["2", "4"], "multi_select": True},
        "- 2\n- 4\nReply with one or more of them.",
    ),
    ("choices", {**CHOICES, "state": "answered", "answer": 2}, "Which?\nAnswered: b."),
    (
        "choices",
        {**CHOICES, "state": "answered", "answer": ["a", 2]},
        "Which?\nAnswered: a, b.",
    ),
    ("choices", {"options": [], "state": "answered", "answer": []}, "Answered: none."),
    (
        "choices",
        {"options": ["a"], "state": "expired"},
        "1. a\nExpired.",
    ),
    ("text-input", {}, "Reply with your answer, a line of text."),
    (
        "text-input",
        {"label": "Name", "placeholder": "Ann", "max_length": 9, "multiline": True},
        "Name\nSuch as: Ann\nReply with your answer, a text of at most 9 characters.",
    ),
    ("text-input", {"label": "Name", "state": "answered", "answer": "Li"}, "Name\nAnswered: Li"),
    ("text-input", {"label": "Name", "state": "answered"}, "Name\nAnswered."),
    ("text-input", {"label": "Name", "state": "expired"}, "Name\nExpired."),
]


@pytest.mark.parametrize(("kind", "props", "text"), CASES)
def test_the_text_says_how_to_answer_or_how_it_went(
    kind: str, props: dict[str, Any], text: str
) -> None:
    assert as_text(kind, props) == text


def test_an_answer_of_an_unexpected_shape_is_shown_as_json() -> None:
    form = {"fields": [{"name": "a"}], "state": "answered", "answer": {"a": [1, "b"]}}
    assert as_text("form", form) == '- a: [1,"b"]\nAnswered.'
    choices = {"options": [], "state": "answered", "answer": [{"b": 1}]}
    assert as_text("choices", choices) == 'Answered: {"b":1}.'
