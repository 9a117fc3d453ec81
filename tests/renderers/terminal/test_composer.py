"""The line that is typed, and what happens to it when a question appears."""

from __future__ import annotations

from prompt_toolkit.history import InMemoryHistory

from arp_terminal.programs.composer import Composer
from arp_terminal.prompt import Option, Prompt

FREE = Prompt("")
OFFERED = Prompt("Next? [1–2]", offered=True)
QUESTION = Prompt("Sure? [y/n]")


def composer(typed: str = "") -> Composer:
    made = Composer(InMemoryHistory(), status=list, unicode=True)
    made.buffer.insert_text(typed)
    return made


async def test_what_was_being_typed_is_put_aside_for_a_question_and_comes_back() -> None:
    made = composer("my dra")
    made.ask(QUESTION, changed=True)
    assert made.buffer.text == ""
    made.buffer.insert_text("y")
    assert made.take() == "y"
    made.ask(FREE, changed=True)
    assert made.buffer.text == "my dra"


async def test_what_was_typed_for_one_question_is_not_taken_for_the_next() -> None:
    made = composer("draft")
    made.ask(QUESTION, changed=True)
    made.buffer.insert_text("ye")
    made.ask(Prompt("Delete? [y/n]"), changed=True)
    assert made.buffer.text == ""
    made.ask(OFFERED, changed=True)
    assert made.buffer.text == "draft"


async def test_the_next_field_of_a_form_leaves_the_line_alone() -> None:
    made = composer()
    made.ask(QUESTION, changed=True)
    made.buffer.insert_text("typed ahead")
    made.ask(Prompt("Month"), changed=False)
    assert made.buffer.text == "typed ahead"


async def test_what_is_to_be_changed_stands_there_once() -> None:
    made = composer()
    made.ask(QUESTION, changed=True)
    edit = Prompt("Arguments", multiline=True, initial='{"a": 1}')
    made.ask(edit, changed=False)
    assert made.buffer.text == '{"a": 1}'
    made.buffer.insert_text(" ")
    made.ask(edit, changed=False)
    assert made.buffer.text == '{"a": 1} '


async def test_suggestions_do_not_take_away_what_is_being_typed() -> None:
    made = composer("my own wor")
    made.ask(OFFERED, changed=True)
    assert made.buffer.text == "my own wor"
    made.ask(FREE, changed=True)
    assert made.buffer.text == "my own wor"


async def test_words_go_into_the_history_and_answers_do_not() -> None:
    made = composer("words")
    made.take()
    made.ask(Prompt("Pin", secret=True), changed=True)
    made.buffer.insert_text("1234")
    made.take()
    assert made.buffer.history.get_strings() == ["words"]


async def test_it_knows_how_many_lines_it_takes() -> None:
    made = composer("one\ntwo")
    assert made.height(80) == 6
    made.flash = ["a note"]
    made.ask(Prompt("Kind", "x" * 100), changed=False)
    assert made.height(80) == 8


async def test_a_line_that_was_not_used_comes_back_where_any_text_may_be_typed() -> None:
    made = composer("draft")
    made.ask(QUESTION, changed=True)
    made.keep("n not now", QUESTION)
    made.keep("1234", Prompt("Pin", secret=True))
    made.keep("y", Prompt("Sure?", options=(Option("y", "Yes"),)))
    assert made.buffer.text == ""
    made.ask(FREE, changed=True)
    assert made.buffer.text == "draft\nn not now"
    made.keep("first", FREE)
    assert made.buffer.text == "first\ndraft\nn not now"
