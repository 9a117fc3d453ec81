"""Input components as they stand in the conversation."""

from __future__ import annotations

import pytest

from tests.renderers.terminal.drawing import drawn, picture


def test_confirm_shows_both_answers() -> None:
    assert drawn(
        "confirm", title="Write out.csv?", message="1,461 rows", confirm_label="Write"
    ) == (
        picture(
            """
            ┃ Write out.csv?
            ┃ 1,461 rows
            ┃ [y] Write   [n] No
            """
        )
    )


def test_a_destructive_confirm_says_so_in_words() -> None:
    assert drawn("confirm", unicode=False, title="Delete all?", destructive=True) == picture(
        """
        | Delete all?
        | This cannot be undone.
        | [y] Yes   [n] No
        """
    )


@pytest.mark.parametrize(
    ("state", "answer", "shown"),
    [
        ("answered", True, "✓ Sure? → Go"),
        ("answered", "confirm", "✓ Sure? → Go"),
        ("answered", False, "✗ Sure? → No"),
        ("expired", None, "○ Sure? (not answered in time)"),
        ("cancelled", None, "○ Sure? (withdrawn)"),
    ],
)
def test_a_question_that_is_over_is_one_line(state: str, answer: object, shown: str) -> None:
    assert drawn("confirm", title="Sure?", confirm_label="Go", state=state, answer=answer) == shown


def test_choices_are_numbered() -> None:
    options = [
        "Tables",
        {"label": "Plot", "value": "p", "description": "as bars", "icon": "📊"},
        {"label": "Off", "disabled": True},
    ]
    assert drawn("choices", title="What next?", options=options) == picture(
        """
        ┃ What next?
        ┃ 1. Tables
        ┃ 2. 📊 Plot  as bars
        ┃ 3. Off  (not available)
        """
    )


def test_answered_choices_show_the_labels_of_what_was_taken() -> None:
    options = ["Tables", {"label": "Plot it", "value": "p"}]
    assert drawn("choices", title="Next?", options=options, state="answered", answer="p") == (
        "✓ Next? → Plot it"
    )
    several = drawn(
        "choices", title="Next?", options=options, state="answered", answer=["p", "Tables"]
    )
    assert several == "✓ Next? → Plot it, Tables"


FIELDS = [
    {"name": "year", "label": "Year", "field_type": "number", "required": True, "value": 2012},
    {"name": "kind", "field_type": "select", "options": ["rain", {"label": "Sun", "value": "s"}]},
    {"name": "pin", "label": "Pin", "field_type": "password", "value": "1234"},
]


def test_a_form_shows_its_fields_and_never_the_value_of_a_password() -> None:
    assert drawn("form", title="Query", description="What to count.", fields=FIELDS) == picture(
        """
        ┃ Query
        ┃ What to count.
        ┃   Year * number  [2012]
        ┃   kind   rain / Sun
        ┃   Pin    password
        """
    )


def test_an_answered_form_shows_what_was_sent_but_passwords() -> None:
    answer = {"year": 2013, "kind": "s", "pin": "1234"}
    assert drawn("form", title="Query", fields=FIELDS, state="answered", answer=answer) == picture(
        """
        ✓ Query
          Year   2013
          kind   Sun
          Pin    ••••••
        """
    )


def test_text_input_shows_what_is_asked_and_what_was_written() -> None:
    assert drawn("text-input", label="Name?", placeholder="e.g. Ada") == "┃ Name?\n┃ e.g. Ada"
    assert drawn("text-input", label="Name?", state="answered", answer="Ada") == "✓ Name? → Ada"
