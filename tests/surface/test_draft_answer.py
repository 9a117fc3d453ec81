"""What the draft's own client sends for a button or a form (protocol.md 2.2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Component
from arp.surface.answers import check_answer
from arp.surface.draft_answer import understand_draft


def read(kind: str, props: dict[str, Any], text: str) -> Any:
    return understand_draft(Component("q", kind, props), text)


NAMED = {"title": "Delete?", "confirm_label": "Delete it", "deny_label": "Keep"}


@pytest.mark.parametrize(
    ("props", "text", "action"),
    [
        ({"title": "Sure?"}, "[Confirmed] Confirm", "confirm"),
        ({"title": "Sure?"}, "[Denied] Deny", "deny"),
        ({"title": "Sure?"}, "[Denied] Cancel", "deny"),
        (NAMED, "[Confirmed] Delete it", "confirm"),
        (NAMED, " [Denied] Keep\n", "deny"),
        ({"title": "Sure?", "confirm_label": ""}, "[Confirmed] ", "confirm"),
    ],
)
def test_a_button_of_a_confirm_answers_it(props: dict[str, Any], text: str, action: str) -> None:
    assert read("confirm", props, text) == ("action", {"action": action})


@pytest.mark.parametrize(
    "text",
    ["yes", "", "Confirm", "[Confirmed]", "[Confirmed] Confirm", "[Denied] Delete it", "[Denied]x"],
)
def test_the_button_of_another_question_confirms_nothing(text: str) -> None:
    assert read("confirm", NAMED, text) is None


CITIES = {"options": ["Rome", {"label": "New York", "value": "ny"}], "multi_select": True}


@pytest.mark.parametrize(
    ("text", "selected"), [("Rome", ["Rome"]), (" New York ", ["ny"]), ("1", None), ("rome?", None)]
)
def test_a_button_of_choices_sends_its_label(text: str, selected: list[str] | None) -> None:
    expected = None if selected is None else ("selection", {"selected": selected})
    assert read("choices", CITIES, text) == expected


ORDER = {
    "fields": [
        {"name": "size", "field_type": "number"},
        {"name": "note"},
        {"name": "gift", "field_type": "checkbox"},
        {"name": "pin", "field_type": "password"},
    ]
}
SENT = '{"size":"42","note":"","gift":"","pin":"0000"}'
FIELDS = {"size": "42", "note": "", "gift": "", "pin": "0000"}


@pytest.mark.parametrize(
    ("props", "text"),
    [
        (ORDER, SENT),
        ({**ORDER, "submit_action": "order"}, f"[Form: order] {SENT}"),
        ({**ORDER, "submit_action": "order"}, SENT),
        ({**ORDER, "submit_action": "a] {b"}, f"[Form: a] {{b] {SENT}"),
    ],
)
def test_a_form_is_sent_as_json(props: dict[str, Any], text: str) -> None:
    assert read("form", props, text) == ("form_submit", {"fields": FIELDS})
    _, data = read("form", props, text)
    fitted = check_answer(Component("q", "form", props), "form_submit", data)
    assert fitted["fields"] == {"size": 42, "note": None, "gift": False, "pin": "0000"}


@pytest.mark.parametrize(
    "text",
    [
        "size: 42",
        "[Form: other] " + SENT,
        "[Form: order] nope",
        "[Form: order] [1]",
        "[Form: order]",
        '{"colour":"red"}',
        "{}",
        "[]",
        "{" + '"size":' * 3,
        "[" * 10_000,
        '{"a":' * 10_000,
        '{"size":"' + "x" * 200_000 + '"}',
    ],
)
def test_other_texts_fill_no_form(text: str) -> None:
    assert read("form", {**ORDER, "submit_action": "order"}, text) is None


def test_what_the_draft_does_not_have_is_answered_as_text() -> None:
    """It has no text input, and shows what stands in the place of a custom component."""
    assert read("text-input", {}, "Ada") == ("text", {"text": "Ada"})
    custom = Component("q", "x-acme-ask", {}, fallback=Component("", "confirm", NAMED))
    assert understand_draft(custom, "[Confirmed] Delete it") == ("action", {"action": "confirm"})
    assert read("table", {"headers": [], "rows": []}, "1") is None
    rows = {"headers": ["n"], "rows": [[1], [2]], "selectable": "many"}
    assert read("table", rows, "2, 1") == ("selection", {"selected": [1, 0]})


@pytest.mark.parametrize("state", ["answered", "expired", "cancelled"])
def test_a_closed_question_takes_no_text(state: str) -> None:
    assert read("confirm", {"title": "Sure?", "state": state}, "[Confirmed] Confirm") is None


@given(st.text())
def test_whatever_is_typed_is_read_without_a_fault(text: str) -> None:
    for kind, props in (("confirm", NAMED), ("choices", CITIES), ("form", ORDER)):
        read(kind, props, text)
        read(kind, props, f"[Form: order] {text}")
