"""Typed text answers a question that was shown as text, or is no answer (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Component
from arp.surface.typed_answer import NO, YES, by_number, understand


def read(kind: str, props: dict[str, Any], text: str) -> Any:
    return understand(Component("q", kind, props), text)


# -- confirm ---------------------------------------------------------------------------------------

DELETE = {"title": "Delete?", "confirm_label": "Delete it", "deny_label": "Keep"}


@pytest.mark.parametrize("text", ["yes", "Y", " OK! ", "ja", "oui", "是", "はい。", "delete IT"])
def test_yes_in_many_words_confirms(text: str) -> None:
    assert read("confirm", DELETE, text) == ("action", {"action": "confirm"})


@pytest.mark.parametrize("text", ["no", "N.", "nein", "取消", "cancel", "keep"])
def test_no_in_many_words_denies(text: str) -> None:
    assert read("confirm", DELETE, text) == ("action", {"action": "deny"})


@pytest.mark.parametrize("text", ["", "  ", "maybe", "yes and no", "delete", "yes " * 1000])
def test_no_other_word_answers_a_confirm(text: str) -> None:
    assert read("confirm", DELETE, text) is None


def test_a_label_that_means_its_opposite_answers_nothing() -> None:
    assert read("confirm", {"title": "Stay?", "confirm_label": "No"}, "no") is None
    assert read("confirm", {"title": "Go?", "deny_label": "OK"}, "ok") is None


def test_no_word_means_both() -> None:
    assert not YES & NO
    assert all(word == word.casefold() for word in YES | NO)


# -- choices ---------------------------------------------------------------------------------------

COLOURS = {"options": ["Red", {"label": "Deep blue", "value": "b"}, {"label": "Green", "value": 3}]}
SEVERAL = {**COLOURS, "multi_select": True}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("1", ["Red"]),
        ("2.", ["b"]),
        ("\uff13)", [3]),
        ("deep blue", ["b"]),
        ("Green!", [3]),
        ("B", ["b"]),
        ("7", ["#7"]),
        ("0", ["#0"]),
        ("12345678", ["#12345678"]),
    ],
)
def test_one_choice_is_its_number_its_label_or_its_value(text: str, selected: list[Any]) -> None:
    assert read("choices", COLOURS, text) == ("selection", {"selected": selected})
    assert read("choices", SEVERAL, text) == ("selection", {"selected": selected})


@pytest.mark.parametrize("text", ["1,3", "3 1", "red; green", "Red、3", "1\n2"])
def test_several_choices_are_separated(text: str) -> None:
    expected = {
        "1,3": ["Red", 3],
        "3 1": [3, "Red"],
        "red; green": ["Red", 3],
        "Red、3": ["Red", 3],
        "1\n2": ["Red", "b"],
    }
    assert read("choices", SEVERAL, text) == ("selection", {"selected": expected[text]})
    assert read("choices", COLOURS, text) is None


@pytest.mark.parametrize("text", ["", "pink", "red, pink", "what is there?", "1 " * 1000, ",,"])
def test_anything_else_is_no_choice(text: str) -> None:
    assert read("choices", COLOURS, text) is None
    assert read("choices", SEVERAL, text) is None


def test_options_that_read_like_numbers_are_taken_by_their_label() -> None:
    sizes = {"options": ["2", "4", "8"]}
    assert not by_number(["2", "4"])
    assert read("choices", sizes, "2") == ("selection", {"selected": ["2"]})
    assert read("choices", sizes, "4.") == ("selection", {"selected": ["4"]})
    assert read("choices", sizes, "3") is None


def test_a_number_beyond_the_last_is_not_offered_even_if_it_is_a_value() -> None:
    props = {"options": [{"label": "a", "value": 7}]}
    assert read("choices", props, "7") == ("selection", {"selected": ["#7"]})


# -- rows of a table -------------------------------------------------------------------------------

ROW = {"headers": ["n"], "rows": [["a"], ["b"], ["c"]], "selectable": "one"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("1", [0]),
        (" 3. ", [2]),
        ("\uff12", [1]),
        ("4", ["#4"]),
        ("0", ["#0"]),
        ("12345678", ["#12345678"]),
    ],
)
def test_a_row_is_its_number_from_one(text: str, selected: list[Any]) -> None:
    assert read("table", ROW, text) == ("selection", {"selected": selected})


@pytest.mark.parametrize(
    ("text", "selected"), [("1,3", [0, 2]), ("3 1", [2, 0]), ("2、9", [1, "#9"]), ("1\n2", [0, 1])]
)
def test_several_rows_are_several_numbers(text: str, selected: list[Any]) -> None:
    several = {**ROW, "selectable": "many"}
    assert read("table", several, text) == ("selection", {"selected": selected})
    assert read("table", ROW, text) is None


@pytest.mark.parametrize("text", ["", " . ", "a", "1 and 2", "-1", "1 " * 1000])
def test_other_words_select_no_row(text: str) -> None:
    assert read("table", {**ROW, "selectable": "many"}, text) is None


def test_a_table_without_selection_takes_no_number() -> None:
    assert read("table", {"headers": ["n"], "rows": [["a"]]}, "1") is None


# -- form ------------------------------------------------------------------------------------------

FORM = {
    "fields": [
        {"name": "name", "label": "Full name", "required": True},
        {"name": "age", "field_type": "number", "value": 18},
        {"name": "note", "field_type": "textarea"},
        {"name": "pin", "field_type": "password", "value": "0000"},
    ]
}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("name: Ann\nage: 30", {"name": "Ann", "age": "30"}),
        ("Full Name = Ann", {"name": "Ann", "age": 18}),
        ("- name\uff1a 安", {"name": "安", "age": 18}),
        ("name: Ann; age: 30", {"name": "Ann", "age": "30"}),
        ("name: Ann; Bob\n", {"name": "Ann; Bob", "age": 18}),
        ("note: one\ntwo\n\nname: Ann", {"note": "one\ntwo\n", "name": "Ann", "age": 18}),
        ("name: Ann\ncity: Rome", {"name": "Ann", "city": "Rome", "age": 18}),
        ("name:", {"name": "", "age": 18}),
    ],
)
def test_a_form_is_filled_by_lines_of_name_and_value(text: str, fields: dict[str, Any]) -> None:
    assert read("form", FORM, text) == ("form_submit", {"fields": fields})


@pytest.mark.parametrize("text", ["", "Ann", "Note to self", "city: Rome", "name: Ann\nhello"])
def test_text_that_names_no_field_fills_no_form(text: str) -> None:
    assert read("form", FORM, text) is None


def test_the_one_field_of_a_form_takes_the_whole_text() -> None:
    form = {"fields": [{"name": "city"}, {"name": "scan", "field_type": "file"}]}
    assert read("form", form, " Rome: the city ") == (
        "form_submit",
        {"fields": {"city": "Rome: the city"}},
    )
    assert read("form", form, "City: Rome") == ("form_submit", {"fields": {"city": "Rome"}})


def test_a_very_long_text_is_not_searched_for_fields() -> None:
    long = "note: x\n" + "\n" * 100_000
    assert read("form", FORM, long) is None
    assert read("form", {"fields": [{"name": "a"}]}, f"a: {'x' * 100_000}") == (
        "form_submit",
        {"fields": {"a": f"a: {'x' * 100_000}"}},
    )


def test_a_password_or_file_is_never_taken_from_text() -> None:
    pin = {"name": "pin", "field_type": "password"}
    assert read("form", {"fields": [pin]}, "1234") is None
    assert read("form", {"fields": [{"name": "a"}, {**pin, "required": True}]}, "a: 1") is None
    assert read("form", {"fields": [{"name": "a"}, pin]}, "pin: 1") is None
    assert read("form", {"fields": [{"name": "a"}, pin]}, "a: 1\npin: 1") is None


# -- text input and the rest -----------------------------------------------------------------------


def test_a_text_input_takes_the_whole_text() -> None:
    assert read("text-input", {}, " hi\n") == ("text", {"text": "hi"})
    assert read("text-input", {"multiline": True}, " hi\n") == ("text", {"text": " hi\n"})


@pytest.mark.parametrize("state", ["answered", "expired", "cancelled"])
def test_a_closed_question_is_not_answered_by_text(state: str) -> None:
    assert read("confirm", {"title": "t", "state": state}, "yes") is None
    assert read("confirm", {"title": "t", "state": "open"}, "yes") is not None


def test_what_stood_in_the_place_of_a_question_is_answered_too() -> None:
    fallback = Component("", "confirm", {"title": "Go?"})
    picker = Component("p", "x-acme-picker", {}, fallback=fallback)
    assert understand(picker, "yes") == ("action", {"action": "confirm"})
    assert (
        understand(Component("t", "text", {"content": "Go?"}, fallback=fallback), "perhaps") is None
    )


def test_what_asks_nothing_is_not_answered_by_text() -> None:
    assert read("text", {"content": "Really?"}, "yes") is None
    assert read("tabs", {"tabs": []}, "1") is None


@given(st.text())
def test_any_text_is_an_answer_that_can_be_judged_or_none(text: str) -> None:
    for kind, props in (("confirm", DELETE), ("choices", SEVERAL), ("form", FORM)):
        understood = read(kind, props, text)
        assert understood is None or understood[0] in ("action", "selection", "form_submit")


# -- declining -------------------------------------------------------------------------------------

ASKED: dict[str, dict[str, Any]] = {
    "confirm": {"title": "Sure?"},
    "choices": {"options": ["a"]},
    "form": {"fields": [{"name": "n"}]},
    "text-input": {"label": "Why?"},
    "table": {"headers": ["a"], "rows": [[1]], "selectable": "one"},
}


@pytest.mark.parametrize("kind", ASKED)
def test_one_word_declines_where_the_question_offers_that(kind: str) -> None:
    props = {**ASKED[kind], "can_decline": True}
    for text in ("decline", " Decline. "):
        assert read(kind, props, text) == ("action", {"action": "decline"})
    for text in ("decline it", "I decline"):
        assert read(kind, props, text) != ("action", {"action": "decline"})


@pytest.mark.parametrize("kind", ASKED)
def test_that_word_is_any_other_where_the_question_does_not_offer_it(kind: str) -> None:
    assert read(kind, ASKED[kind], "decline") != ("action", {"action": "decline"})
