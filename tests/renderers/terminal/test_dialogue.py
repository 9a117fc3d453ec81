"""Questions, line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Permission
from arp_terminal.asking.dialogue import Dialogue, PermissionDialogue, dialogue_for
from arp_terminal.prompt import (
    ActionReply,
    FormReply,
    Option,
    Problem,
    Prompt,
    Reply,
    SelectionReply,
    TextReply,
)


def ask(type_name: str, offered: bool = False, **props: Json) -> Dialogue:
    dialogue = dialogue_for(Component("q", type_name, props), offered=offered)
    assert dialogue is not None
    return dialogue


def test_only_input_components_are_asked() -> None:
    assert dialogue_for(Component("q", "table", {}), offered=False) is None


# -- confirm ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("y", ActionReply("confirm")),
        (" YES ", ActionReply("confirm")),
        ("write", ActionReply("confirm")),
        ("n", ActionReply("deny")),
        ("No", ActionReply("deny")),
        ("leave it", ActionReply("deny")),
    ],
)
def test_a_confirmation_is_typed_out(typed: str, reply: Reply) -> None:
    dialogue = ask("confirm", title="Write?", confirm_label="Write", deny_label="Leave it")
    prompt = dialogue.prompt
    assert (prompt.label, prompt.hint, prompt.keys) == (
        "Write? [y/n]",
        "y = Write, n = Leave it",
        "yn",
    )
    assert dialogue.enter(typed) == reply


@pytest.mark.parametrize("typed", ["", "  ", "yup", "ny", "1", "ok", "y\ny"])
def test_nothing_else_is_taken_for_an_answer(typed: str) -> None:
    """T22, T53: neither an empty line nor what was typed for something else decides."""
    assert ask("confirm", title="Delete?").enter(typed) == Problem("type y or n")


# -- permissions -----------------------------------------------------------------------------------

SHOWN = '{"command":"ls \u202e","n":1}'


def permission(**terms: Any) -> PermissionDialogue:
    asked = Permission("q", "shell", digest="0a", **terms)
    return PermissionDialogue({"title": "Run it?"}, asked, SHOWN)


ALL: dict[str, Any] = {"scopes": ["once", "session"], "session_rule": "ls *", "editable": True}


@pytest.mark.parametrize(
    ("typed", "action", "payload"),
    [
        ("1", "confirm", {"scope": "once"}),
        ("2", "confirm", {"scope": "session"}),
        ("3", "deny", {"reason": ""}),
        ("3 not now", "deny", {"reason": "not now"}),
        ("y", "confirm", {"scope": "once"}),
        (" YES ", "confirm", {"scope": "once"}),
        ("s", "confirm", {"scope": "session"}),
        ("n", "deny", {"reason": ""}),
        ("N not now", "deny", {"reason": "not now"}),
        ("no not in  /tmp", "deny", {"reason": "not in  /tmp"}),
    ],
)
def test_a_permission_is_bound_to_what_was_shown(
    typed: str, action: str, payload: JsonObject
) -> None:
    assert permission(**ALL).enter(typed) == ActionReply(action, {**payload, "digest": "0a"})


def test_the_prompt_of_a_permission_says_what_is_offered() -> None:
    ends = "2026-01-02T03:04:05.000000Z"
    asked = permission(**ALL, expires_at=ends).prompt
    assert asked.label == "Run it? [y/s/n/e]"
    assert asked.keys == "y1s2n3e"
    assert asked.hint.startswith(
        "y or 1 = allow once, s or 2 = for this session: ls *, n or 3 = no"
    )
    assert asked.hint.endswith("until 2026-01-02T03:04:05Z")
    assert permission().prompt.label == "Run it? [y/n]"


def test_the_letter_that_the_hint_names_for_a_reason_does_not_answer_by_itself() -> None:
    asked = permission(**ALL).prompt
    assert "N REASON says why" in asked.hint
    assert "n REASON" not in asked.hint
    assert "N" not in asked.keys


def test_numbers_of_a_permission_are_those_of_the_page() -> None:
    """The page numbers its buttons: once, for the session if that is offered, no."""
    numbers = [(one.number, one.letter) for one in permission(**ALL).prompt.options]
    assert numbers == [(1, "y"), (2, "s"), (3, "n"), (None, "e")]
    assert [one.number for one in permission().prompt.options] == [1, 2]
    assert permission().enter("2") == ActionReply("deny", {"reason": "", "digest": "0a"})


@pytest.mark.parametrize(
    "typed", ["", "s", "e", "session", "yes please", "ls", "0", "3", "12", "1,2", "y1", "1 please"]
)
def test_what_a_permission_does_not_offer_is_no_answer(typed: str) -> None:
    assert permission().enter(typed) == Problem("type y or n; N REASON says why")


def test_a_permission_refuses_a_wrong_line_with_all_that_it_offers() -> None:
    assert permission(**ALL).enter("ok") == Problem("type y, s, n or e; N REASON says why")


def test_a_prompt_says_how_many_questions_are_open() -> None:
    answers = (Option("y", "Yes"), Option("n", "No"))
    assert Prompt("Sure?", options=answers).label == "Sure? [y/n]"
    assert (
        Prompt("Sure?", options=answers, open_questions=3).label == "Sure? [y/n] (question 1 of 3)"
    )
    assert Prompt("", open_questions=3).label == ""


def test_an_input_is_edited_as_json() -> None:
    """It begins with what was shown, in ASCII; what is no object is said, and stays."""
    dialogue = permission(**ALL)
    assert dialogue.enter("e") is None
    initial = dialogue.prompt.initial
    assert initial.isascii()
    assert json.loads(initial) == json.loads(SHOWN)
    for wrong in ("{", "[1]", '{"a": 1, "a": 2}', '{"a": NaN}', "y"):
        assert isinstance(dialogue.enter(wrong), Problem)
        assert dialogue.prompt.initial == wrong
    edited = {"scope": "once", "updated_input": {"command": "pwd"}, "digest": "0a"}
    assert dialogue.enter('{"command": "pwd"}') == ActionReply("confirm", edited)


@pytest.mark.parametrize("back", ["", " /back "])
def test_an_edit_can_be_given_up(back: str) -> None:
    dialogue = permission(**ALL)
    dialogue.enter("e")
    assert dialogue.enter(back) is None
    assert dialogue.prompt.label == "Run it? [y/s/n/e]"


def test_where_nobody_waits_other_words_are_for_the_agent() -> None:
    dialogue = ask("confirm", offered=True, title="More?")
    assert dialogue.enter("what is it?") == TextReply("what is it?", answers=False)
    assert dialogue.enter("y") == ActionReply("confirm")
    assert dialogue.enter("") == Problem("type y or n")


# -- choices ---------------------------------------------------------------------------------------

OPTIONS: list[Json] = ["Tables", {"label": "Plot", "value": 7}, {"label": "Off", "disabled": True}]


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("1", SelectionReply(["Tables"])),
        (" 2 ", SelectionReply([7])),
        ("plot", SelectionReply([7])),
        ("3", Problem("Off is not available")),
        ("4", Problem("there is no 4; type a number from 1 to 3")),
        ("0", Problem("there is no 0; type a number from 1 to 3")),
        ("1,2", Problem("choose one")),
        ("", Problem("type a number from 1 to 3")),
        ("else", Problem("type a number from 1 to 3")),
    ],
)
def test_one_option_is_chosen_by_number_or_label(typed: str, reply: Reply | Problem) -> None:
    dialogue = ask("choices", title="Next?", options=OPTIONS)
    assert dialogue.prompt == Prompt("Next? [1–3]", "a number, 1–3")
    assert dialogue.enter(typed) == reply


def test_several_options_are_chosen_by_numbers() -> None:
    dialogue = ask("choices", options=OPTIONS, multi_select=True)
    assert dialogue.prompt == Prompt("Choose [1–3]", "numbers from 1–3, such as 1,2")
    assert dialogue.enter("2, 1") == SelectionReply([7, "Tables"])
    assert dialogue.enter("1 2") == SelectionReply(["Tables", 7])


def test_offered_options_leave_room_for_other_words() -> None:
    dialogue = ask("choices", offered=True, options=OPTIONS)
    assert dialogue.prompt.hint == "a number, 1–3, or say something else"
    assert dialogue.enter("show rain") == TextReply("show rain", answers=False)


# -- text ------------------------------------------------------------------------------------------


def test_text_is_taken_as_it_is_typed_up_to_its_length() -> None:
    dialogue = ask("text-input", label="Name", placeholder="e.g. Ada", max_length=4)
    assert dialogue.prompt == Prompt("Name", "e.g. Ada")
    assert dialogue.enter("Ada ") == TextReply("Ada ")
    assert dialogue.enter("Grace") == Problem("at most 4 characters; this has 5")
    assert dialogue.enter(" ") == Problem("type an answer")


def test_text_of_several_lines_is_asked_as_such() -> None:
    assert ask("text-input", multiline=True).prompt == Prompt("Answer", multiline=True)


# -- form ------------------------------------------------------------------------------------------

FIELDS: list[Json] = [
    {"name": "year", "label": "Year", "field_type": "number", "required": True},
    {
        "name": "kind",
        "field_type": "select",
        "options": ["rain", {"label": "Sun", "value": 3}],
        "value": 3,
    },
    {"name": "ok", "label": "Sure", "field_type": "checkbox"},
    {"name": "pin", "label": "Pin", "field_type": "password"},
]


def test_a_form_is_asked_field_by_field() -> None:
    dialogue = ask("form", title="Query", fields=FIELDS, submit_action="run")
    assert dialogue.prompt == Prompt("Year *", "1 of 4, a number")
    assert dialogue.enter("") == Problem("needed")
    assert dialogue.enter(" 2012 ") is None
    assert dialogue.prompt == Prompt("kind [Sun]", "2 of 4, 1. rain  2. Sun")
    assert dialogue.enter("5") == Problem("type a number from 1 to 2")
    assert dialogue.enter("1") is None
    assert dialogue.prompt == Prompt("Sure", "3 of 4, y or n")
    assert dialogue.enter("maybe") == Problem("type y or n")
    assert dialogue.enter("y") is None
    assert dialogue.prompt == Prompt(
        "Pin", "4 of 4, not shown while you type; sent to the agent", secret=True
    )
    assert dialogue.enter(" 12 ") == FormReply(
        {"year": "2012", "kind": "rain", "ok": True, "pin": " 12 "}, "run"
    )


def test_an_empty_line_takes_what_stands_there_and_leaves_out_what_is_not_needed() -> None:
    dialogue = ask("form", fields=FIELDS)
    assert [dialogue.enter(typed) for typed in ("1", "", "")] == [None, None, None]
    assert dialogue.enter("") == FormReply({"year": "1", "kind": 3})


def test_back_goes_to_the_field_before_and_keeps_its_answer() -> None:
    dialogue = ask("form", fields=FIELDS)
    assert dialogue.enter("/back") is None
    dialogue.enter("2012")
    dialogue.enter("/back")
    assert dialogue.prompt.label == "Year * [2012]"


def test_a_refusal_goes_back_to_its_field_and_keeps_the_other_answers() -> None:
    dialogue = ask("form", fields=FIELDS)
    for typed in ("x", "2", "n", ""):
        dialogue.enter(typed)
    problem = dialogue.refused('fields.year: expected a number, got "x"', "fields.year")
    assert problem == Problem('expected a number, got "x"')
    assert dialogue.prompt.label == "Year *"
    assert [dialogue.enter(typed) for typed in ("2012", "", "")] == [None, None, None]
    assert dialogue.prompt.label == "Pin"
    assert dialogue.enter("") == FormReply({"year": "2012", "kind": 3, "ok": False})


def test_a_refusal_that_names_no_field_begins_again() -> None:
    dialogue = ask("form", fields=FIELDS)
    dialogue.enter("1")
    assert dialogue.refused("closed", None) == Problem("closed")
    assert dialogue.prompt.label == "Year * [1]"


def test_a_file_cannot_be_typed() -> None:
    dialogue = ask("form", fields=[{"name": "f", "field_type": "file"}])
    assert dialogue.enter("/etc/passwd") == Problem("files cannot be given here; leave it empty")
    assert dialogue.enter("") == FormReply({})


def test_a_form_without_fields_is_sent_by_enter() -> None:
    dialogue = ask("form", title="Go", fields=[])
    assert dialogue.prompt == Prompt("Go: press Enter to send")
    assert dialogue.enter("") == FormReply({})


def test_labels_are_made_harmless() -> None:
    assert ask("confirm", title="a\x1b[2Jb\nc").prompt.label == "a␛[2Jb␊c [y/n]"
    hostile: list[Json] = [{"name": "f", "label": "\x1b]0;x\x07", "placeholder": "\u202e"}]
    prompt = ask("form", fields=hostile).prompt
    assert (prompt.label, prompt.hint) == ("␛]0;x␇", "1 of 1, <U+202E>")


# -- rows of a table -------------------------------------------------------------------------------

ROWS: list[Json] = [["Ann", 3], ["Bob", 5], ["Cem", 8]]


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("1", SelectionReply([0])),
        (" 3 ", SelectionReply([2])),
        ("4", Problem("there is no row 4; type a number from 1 to 3")),
        ("0", Problem("there is no row 0; type a number from 1 to 3")),
        ("1,2", Problem("select one row")),
        ("none", Problem("type a number from 1 to 3")),
        ("", Problem("type a number from 1 to 3")),
        ("Ann", Problem("type a number from 1 to 3")),
    ],
)
def test_one_row_is_selected_by_its_number(typed: str, reply: Reply | Problem) -> None:
    dialogue = ask("table", title="Who?", headers=["name", "age"], rows=ROWS, selectable="one")
    assert dialogue.prompt == Prompt("Who? [1–3]", "the number of a row, 1–3")
    assert dialogue.enter(typed) == reply


def test_several_rows_are_selected_by_their_numbers() -> None:
    dialogue = ask("table", headers=["name", "age"], rows=ROWS, selectable="many")
    hint = "numbers of rows from 1–3, such as 1,2, or none"
    assert dialogue.prompt == Prompt("Select [1–3]", hint)
    assert dialogue.enter("3, 1 3") == SelectionReply([2, 0])
    assert dialogue.enter("none") == SelectionReply([])
    assert dialogue.refused("gone", None) == Problem("gone")


def test_offered_rows_leave_room_for_other_words() -> None:
    dialogue = ask("table", offered=True, headers=["n"], rows=[[1]], selectable="one")
    assert dialogue.prompt.hint == "the number of a row, 1, or say something else"
    assert dialogue.enter("show rain") == TextReply("show rain", answers=False)
