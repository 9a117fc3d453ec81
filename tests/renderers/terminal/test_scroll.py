"""What is printed, when, and in which order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arp.protocol.components import Component, author_of
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import (
    Commit,
    ErrorMessage,
    Patch,
    Render,
    SurfaceInfo,
    SurfaceMessage,
)
from arp.protocol.patch import Append, Insert, Remove, Reorder, Update
from arp_terminal.log.scroll import Scroll
from arp_terminal.log.transcript import Transcript
from arp_terminal.options import Options
from tests.renderers.terminal.drawing import PROMPT, painted, picture
from tests.renderers.terminal.fake_client import FakeClient


class Paper(FakeClient):
    """A client whose events go straight to a scroll; `printed` is all that was printed."""

    def __init__(self, *, hold: bool = True, room: int | None = 100) -> None:
        super().__init__()
        self.transcript = Transcript(self.screen, hold=hold)
        self.scroll = Scroll(self.transcript, Options(width=40, colour=False))
        self.lines: list[str] = []
        self.room = room

    def tell(self, *messages: object) -> None:
        for message in messages:
            self.screen.apply(message)
        for message in messages:
            self.transcript.receive(message)

    def frame(self) -> Paper:
        self.lines += self.scroll.advance(self.room)
        return self

    @property
    def printed(self) -> str:
        return "\n".join(self.lines)

    @property
    def tail(self) -> str:
        return "\n".join(self.scroll.tail)


def text(component_id: str, content: str) -> Component:
    return Component(component_id, "text", {"content": content})


def test_a_paragraph_is_live_until_the_next_one_begins() -> None:
    paper = Paper()
    paper.say("One **bo")
    assert (paper.frame().printed, paper.tail) == ("", "  One **bo")
    paper.say("ld**.\n\nTwo")
    assert (paper.frame().printed, paper.tail) == ("  One bold.", "\n  Two")
    paper.end()
    assert (paper.frame().printed, paper.tail) == ("  One bold.\n\n  Two", "")


def test_items_of_a_tight_list_are_printed_one_by_one_without_gaps() -> None:
    paper = Paper()
    for piece in ("1. a\n", "1. b\n", "1. c\n", "\nend"):
        paper.say(piece)
        paper.frame()
    assert paper.printed == "  1. a\n  2. b\n  3. c"
    paper.end()
    assert paper.frame().printed == "  1. a\n  2. b\n  3. c\n\n  end"


def test_the_users_words_stand_at_the_first_column_and_the_agents_two_cells_in() -> None:
    paper = Paper()
    paper.input("hello\nthere")
    paper.say("hi")
    paper.end()
    assert paper.frame().printed == f"{PROMPT} hello\n  there\n\n  hi"


def test_a_tool_stands_between_what_was_said_before_and_after_it() -> None:
    """Also when all of it came in one batch, and was on the screen before the first was heard."""
    paper = Paper()
    paper.tell(
        paper.turn_message("running"),
        paper.delta("Let me look. "),
        paper.tool_start("query", '{"n": 1}'),
        paper.tool_end("query"),
        paper.delta("Found"),
        paper.delta(" it."),
        paper.tool_start("plot"),
        paper.tool_end("plot", ok=False, error="no data"),
        *paper.rendered(text("a", "shown")),
        paper.tool_start("last"),
        paper.tool_end("last"),
    )
    paper.end()
    assert paper.frame().printed == picture(
        """
          Let me look.

          ✓ query  n: 1

          Found it.

          ✗ plot
            No data.

          shown

          ✓ last
        """
    ).replace("\n", "\n  ").replace("\n  \n", "\n\n").replace("Let", "  Let", 1)


def test_a_tool_does_not_break_a_block_of_code() -> None:
    paper = Paper()
    paper.say("```\none\n")
    paper.tell(paper.tool_start("t"), paper.tool_end("t"))
    paper.say("two\n```\n")
    paper.end()
    assert paper.frame().printed == "  ✓ t\n\n    one\n    two"


def test_tools_that_run_are_live() -> None:
    paper = Paper()
    paper.tell(paper.tool_start("t"))
    assert (paper.frame().printed, paper.tail) == ("", "  ◌ t")
    assert paper.scroll.advance(100, "/") == []
    assert paper.tail == "  / t"
    paper.tell(paper.tool_end("t"))
    assert paper.frame().printed == "  ✓ t"


def test_thinking_is_live_with_its_last_lines_and_printed_as_one() -> None:
    paper = Paper()
    paper.think("First I look.\nThen\nI\nthink.")
    assert (paper.frame().printed, paper.tail) == ("", "  ∴ Then\n    I\n    think.")
    paper.say("Well")
    assert paper.frame().printed == "  ∴ First I look. Then I think."


def test_a_component_is_live_while_its_turn_runs() -> None:
    paper = Paper()
    paper.show(text("a", "old"))
    assert (paper.frame().printed, paper.tail) == ("", "  old")
    paper.patch(Update("a", "props.content", "new"))
    assert (paper.frame().printed, paper.tail) == ("", "  new")
    paper.end()
    assert (paper.frame().printed, paper.tail) == ("  new", "")


def test_what_does_not_fit_below_is_printed_from_the_top() -> None:
    """T4: the tail never takes more lines than there are."""
    paper = Paper(room=3)
    paper.show(text("a", "a"), text("b", "b"), text("c", "c"))
    paper.frame()
    assert (paper.printed, paper.tail) == ("  a\n\n  b", "\n  c")


def test_a_block_of_code_that_grows_beyond_the_room_is_printed_but_for_its_end() -> None:
    paper = Paper(room=4)
    paper.say("```\n" + "".join(f"{number} *\n\n" for number in range(5)))
    assert paper.frame().printed == "    0 *\n\n    1 *\n\n    2 *\n\n    3 *"
    assert paper.tail == "\n    4 *"
    paper.say("5\n```\n")
    paper.end()
    lines = [f"    {number} *" for number in range(5)]
    assert paper.frame().printed == "\n\n".join(lines) + "\n\n    5"


def test_text_that_may_still_look_different_is_cut_from_above_while_it_grows() -> None:
    """Of a table, each row may change the widths; what looks like a star may begin a bold word."""
    paper = Paper(room=2)
    bold = "It is **" + "very " * 20
    paper.say(bold)
    assert paper.frame().printed == ""
    assert paper.tail.split("\n") == ["  very very very very very very very"] * 2
    paper.say("long**")
    paper.end()
    printed = paper.frame().printed
    assert (printed.count("very"), printed.count("It is"), "*" in printed) == (20, 1, False)


def shown_at(paper: Paper, width: int) -> bool:
    """Makes the terminal that narrow; returns whether what is live could stay."""
    tail = paper.scroll.live
    stays = paper.scroll.leave(tail)
    if stays:
        paper.lines += tail.lines
    paper.scroll.resize(Options(width=width, colour=True))
    return stays


def test_text_that_stays_goes_on_in_the_middle_of_a_line() -> None:
    paper = Paper()
    paper.show(text("a", "Above."))
    paper.say("one *two* three four fi")
    paper.frame()
    assert shown_at(paper, 18)
    assert paper.frame().tail == ""
    paper.say("ve **six** seven eight nine\n\nNext")
    paper.frame()
    assert paper.lines[:3] == ["  Above.", "", "  one two three four fi"]
    assert [_plain(line) for line in paper.lines[3:]] == ["  ve six", "  seven eight nine"]
    assert _plain(paper.tail) == "\n  Next"
    assert shown_at(paper, 12)
    paper.end()
    assert _plain(paper.frame().printed).endswith("  seven eight nine\n\n  Next")


def test_code_whose_long_line_was_cut_elsewhere_goes_on_too() -> None:
    paper = Paper()
    paper.say("```\n> " + "abcdefgh " * 5)
    assert paper.frame().tail.split("\n") == [
        "    > abcdefgh abcdefgh abcdefgh abcdefg",
        "    ↪ h abcdefgh",
    ]
    assert shown_at(paper, 24)
    paper.say("end\n> next\n")
    assert [_plain(line) for line in paper.frame().scroll.tail] == ["    end", "    > next"]


def test_text_that_turns_out_to_begin_differently_is_printed_again() -> None:
    paper = Paper()
    paper.say("one **two")
    paper.frame()
    assert shown_at(paper, 30)
    paper.say(" three** four")
    paper.end()
    assert _plain(paper.frame().printed) == "  one **two\n\n  one two three four"


def test_what_changes_in_its_place_does_not_stay_and_nothing_has_happened_then() -> None:
    paper = Paper()
    paper.tell(paper.tool_start("query"))
    paper.frame()
    assert not shown_at(paper, 30)
    paper.tell(paper.tool_end("query"))
    assert _plain(paper.frame().printed) == "  ✓ query"
    paper.show(text("a", "old"))
    paper.frame()
    paper.patch(Update("a", "props.content", "new"))
    assert not shown_at(paper, 20)
    paper.end()
    assert _plain(paper.frame().printed) == "  ✓ query\n\n  new"


def _plain(lines: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", lines)


def test_a_change_of_what_is_printed_is_told_as_an_update_once() -> None:
    """T30."""
    paper = Paper(hold=False)
    paper.show(text("a", "one"))
    assert paper.frame().printed == "  one"
    paper.patch(Update("a", "props.content", "two"))
    paper.patch(Update("a", "props.content", "three"))
    assert paper.frame().printed == "  one"
    paper.end()
    assert paper.frame().printed == "  one\n\n  ↻ updated\n  three"
    assert paper.frame().printed == "  one\n\n  ↻ updated\n  three"


def test_a_change_that_shows_before_it_is_heard_of_is_not_lost() -> None:
    """The screen is the client's: it may be ahead of the messages that were heard."""
    paper = Paper()
    paper.show(text("a", "old"))
    paper.frame()
    seq = 9
    change = [
        Patch(session_id="s", turn_id="t1", ops=[Update("a", "props.content", "new")], seq=seq),
        Commit(session_id="s", turn_id="t1", final=True, seq=seq),
    ]
    for message in change:
        paper.screen.apply(message)
    assert paper.frame().printed == "  new"
    for message in change:
        paper.transcript.receive(message)
    assert paper.frame().printed == "  new"


def test_a_change_that_was_taken_back_is_not_told() -> None:
    paper = Paper(hold=False)
    paper.show(text("a", "one"))
    paper.frame()
    paper.patch(Update("a", "props.content", "two"))
    paper.patch(Update("a", "props.content", "one"))
    paper.end()
    assert paper.frame().printed == "  one"


def test_a_nested_component_updates_the_one_that_holds_it() -> None:
    paper = Paper(hold=False)
    inner = {"id": "in", "type": "text", "props": {"content": "x"}}
    paper.show(Component("g", "group", {"children": [inner]}))
    paper.frame()
    paper.patch(Append("in", "props.content", "y"))
    paper.end()
    assert paper.frame().printed == "  x\n\n  ↻ updated\n  xy"


def test_an_earlier_turn_can_be_updated() -> None:
    paper = Paper()
    paper.show(text("a", "one"))
    paper.end()
    paper.frame()
    paper.patch(Update("a", "props.content", "two"), turn="t2")
    assert paper.frame().printed == "  one\n\n  ↻ updated\n  two"


def test_what_is_not_printed_follows_the_screen() -> None:
    paper = Paper()
    paper.show(text("a", "a"), text("b", "b"), text("c", "c"))
    paper.frame()
    paper.patch(Remove("b"), Reorder("c", None), Insert(text("d", "d"), after="c"))
    paper.end()
    assert paper.frame().printed == "  c\n\n  d\n\n  a"


def test_an_answer_is_told_at_once_unless_a_turn_begins_with_it() -> None:
    paper = Paper(hold=False)
    paper.input("go")
    paper.turn("running")
    paper.show(Component("q", "confirm", {"title": "Sure?"}))
    paper.frame()
    paper.answer("q", True)
    paper.say("Well then.")
    assert paper.frame().printed.endswith("[n] No\n\n  ✓ Sure? → Yes")
    assert paper.tail == "\n  Well then."
    paper.show(Component("r", "confirm", {"title": "More?"}))
    paper.end()
    before = paper.frame().printed
    paper.answer("r", True, turn="t2")
    assert paper.frame().printed == before + f"\n\n{PROMPT} (answer)"


def test_a_turn_in_line_says_so_and_stands_below() -> None:
    paper = Paper()
    paper.say("busy")
    paper.turn("running")
    paper.input("next", turn="t2")
    paper.turn("queued", turn="t2")
    paper.frame()
    assert paper.tail == f"  busy\n\n{PROMPT} next  (queued, 1 in line)"
    paper.end()
    paper.turn("running", turn="t2")
    assert paper.frame().printed == f"  busy\n\n{PROMPT} next"


def test_errors_and_the_end_of_a_stopped_turn_are_told() -> None:
    paper = Paper()
    paper.say("half")
    paper.end("cancelled")
    assert paper.frame().printed == "  half\n\n  ■ Stopped"
    paper.end("failed", turn="t2")
    assert paper.frame().printed.endswith("\n\n  ✗ Failed")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (text("a", "aside"), "  aside"),
        (text("a/1", "aside"), "  aside"),
        (
            Component("a/1", "table", {"headers": ["h"], "rows": [["aside"]]}),
            "  h\n  ─────\n  aside",
        ),
    ],
)
def test_another_surface_is_told_too(shown: Component, printed: str) -> None:
    """Whatever its components are called."""
    paper = Paper()
    render, commit = paper.rendered(shown)
    paper.tell(
        type(render)(session_id="s", surface="side", components=render.components, seq=9),
        type(commit)(session_id="s", surface="side", seq=9),
    )
    assert paper.frame().printed == printed


def test_a_surface_has_its_title_and_says_that_it_is_closed() -> None:
    """What an agent calls it is drawn as the agent's, and cannot move the cursor."""
    paper = Paper()

    def show(component: Component, title: str, seq: int) -> None:
        described = SurfaceMessage(session_id="s", surface="side", payload=SurfaceInfo(title=title))
        render = Render(session_id="s", surface="side", components=[component])
        paper.tell(described, render, Commit(session_id="s", surface="side", seq=seq))
        paper.frame()

    show(text("a", "one"), "Details", 9)
    assert paper.printed == "  ▸ Details\n\n  one"
    show(text("a", "one"), "Details \x1b[1m2", 10)
    paper.tell(SurfaceMessage(session_id="s", surface="side", seq=11, closed="user"))
    assert "\x1b" not in paper.frame().printed
    assert paper.printed.endswith("one\n\n  ▸ Details ␛[1m2\n\n  ▸ Details ␛[1m2: closed")
    paper.lines.clear()
    show(text("a", "two"), "Details", 13)
    assert paper.printed == "\n  ▸ Details\n\n  two"


def test_a_new_screen_prints_only_what_is_missing() -> None:
    """T26: after a snapshot nothing is doubled and nothing is lost."""
    paper = Paper()
    paper.input("q")
    paper.say("One.\n\nTw")
    paper.frame()
    again = Paper()
    again.input("q")
    again.tell(
        *again.rendered(
            Component("t1/1", "text", {"content": "One.\n\nTwo.", "format": "markdown"})
        )
    )
    again.show(text("a", "new"))
    again.end()
    paper.screen = again.screen
    paper.transcript.adopt(again.screen)
    assert paper.frame().printed == f"{PROMPT} q\n\n  One.\n\n  Two.\n\n  new"


def test_a_new_screen_tells_what_has_changed_meanwhile() -> None:
    paper = Paper()
    paper.show(text("a", "old"))
    paper.end()
    paper.frame()
    again = Paper()
    again.show(text("a", "new"))
    again.end()
    paper.transcript.adopt(again.screen)
    assert paper.frame().printed == "  old\n\n  ↻ updated\n  new"


def test_an_empty_screen_after_much_was_printed_is_no_trouble() -> None:
    paper = Paper()
    paper.input("q")
    paper.say("half")
    paper.tell(paper.tool_start("t"))
    paper.frame()
    paper.transcript.adopt(Screen())
    assert paper.frame().printed == f"{PROMPT} q\n\n  half"
    assert paper.tail == ""


WORDS = st.lists(
    st.sampled_from(
        [
            "word ",
            "**b** ",
            "\n",
            "\n\n",
            "- item\n",
            "1. one\n",
            "# h\n",
            "```\n",
            "| a |\n|---|\n",
        ]
    ),
    max_size=25,
)


PLACES = st.lists(st.integers(0, 25), max_size=6)


@given(WORDS, PLACES, st.lists(st.integers(0, 25), max_size=3), PLACES)
def test_all_words_are_printed_once_and_in_order_however_they_came(
    words: list[str], frames: list[int], tools: list[int], widths: list[int]
) -> None:
    numbered = [word.replace("word", f"w{n}").replace("b", f"b{n}") for n, word in enumerate(words)]
    paper = Paper(room=4)
    for place, word in enumerate(numbered):
        paper.say(word)
        if place in tools:
            paper.tell(paper.tool_start("t"), paper.tool_end("t"))
        if place in frames:
            paper.frame()
        if place in widths and not re.search(r"[*`]", paper.frame().tail):  # an open mark
            shown_at(paper, 40 - place)
    paper.end()
    paper.frame()
    whole = re.sub(r"\n *↪ ", "", _plain("\n".join(paper.lines)))  # code that was cut at the border
    assert numbers(whole) == numbers("".join(numbered))
    assert _plain(paper.printed).count("✓ t") == len(
        {place for place in tools if place < len(words)}
    )


def numbers(text: str) -> list[str]:
    return [word for word in text.replace("*", " ").split() if word[1:].isdecimal()]


def test_errors_of_a_turn_are_told_but_not_those_that_answer_an_input() -> None:
    """The latter stand at the prompt, where the input was typed."""
    paper = Paper()
    for payload in (ErrorPayload("the agent failed", 18), ErrorPayload("bad answer", 11, id="i1")):
        paper.tell(ErrorMessage(payload=payload, session_id="s", turn_id="t1"))
    paper.end("failed")
    assert paper.frame().printed == "  ✗ The agent failed."


def test_a_session_that_is_joined_shows_its_tools_where_they_ran() -> None:
    """A snapshot names their places (protocol.md 2.3)."""
    there = Paper()
    there.input("q")
    there.think("hm")
    there.say("Found.")
    there.tell(there.tool_start("query"), there.tool_end("query"))
    there.end()
    paper = Paper()
    paper.transcript.adopt(there.screen)
    assert paper.frame().printed == f"{PROMPT} q\n\n  ∴ hm\n\n  Found.\n\n  ✓ query"
    paper.transcript.adopt(there.screen)
    assert paper.frame().printed.count("Found.") == 1


def author_named(component_id: str, name: str) -> Component:
    return replace(author_of(name), id=component_id)


def test_the_name_of_an_author_stands_directly_above_what_they_say() -> None:
    paper = Paper()
    paper.input("go")
    paper.say("I ask.")
    for number, (name, words) in enumerate([("Research Desk", "It is\n\n42."), ("agent", "Good.")]):
        paper.tell(*paper.rendered(author_named(f"a{number}", name)), paper.delta(words))
    assert paper.frame().tail.endswith("● agent\n  Good.")
    paper.end()
    assert paper.frame().printed == picture(
        f"""
        {PROMPT} go

          I ask.

          ● Research Desk
          It is

          42.

          ● agent
          Good.
        """
    )


def test_without_unicode_and_for_minimal_renderers_an_author_is_plain_text() -> None:
    named = author_named("a", "Ann\x1b[2J")
    assert painted(named, width=40, colour=False, unicode=False) == ["Ann␛[2J:"]
    assert painted(named, width=40, colour=False, level="minimal") == ["Ann␛[2J"]
