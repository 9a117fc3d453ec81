"""What the agent is saying, and the text part that it goes to."""

from __future__ import annotations

from typing import Any

from arp.protocol.connection.screen import Screen
from arp.protocol.messages import Commit, Delta, Render
from arp.protocol.patch import Remove
from arp.redact.redactor import known_shapes
from arp.session.recording.log import TextAssembler
from arp.session.recording.recorded import OUTPUT_TEXT, REASONING_TEXT, Cursor, Text, recorded_text
from tests.session.conversation import text


class Speaker:
    """A text assembler on a screen, with facts numbered as a log numbers them."""

    def __init__(self) -> None:
        self.screen = Screen()
        self.assembler = TextAssembler(self.screen, known_shapes())
        self.assembler.begin_turn("t1")
        self.sequence = 0

    def say(self, words: str, kind: str = OUTPUT_TEXT, turn: str = "t1") -> Text:
        self.sequence += 1
        spoken = recorded_text(self.sequence, kind, "s", turn, words)
        self.assembler.add(spoken)
        return spoken

    def show(self, component_id: str) -> None:
        self.sequence += 1
        render = Render(session_id="s", turn_id="t1", components=[text(component_id)])
        self.screen.apply(render, self.sequence)
        self.screen.apply(Commit(session_id="s", turn_id="t1"), self.sequence)
        self.assembler.is_last = False

    def cursor(self) -> Cursor:
        return self.assembler.cursor(self.sequence)

    def output(self, turn: str = "t1") -> list[Any]:
        return [part.props["content"] for part in self.screen.output(turn)]


def test_text_goes_on_in_its_part() -> None:
    speaker = Speaker()
    first, second = speaker.say("one "), speaker.say("two")
    assert (first.part, second.part) == ("t1/1", "t1/1")
    assert speaker.output() == ["one two"]
    assert speaker.cursor() == Cursor(2, "t1/1", 7, "t1", 0)
    assert speaker.screen.surfaces["main"].nodes["t1/1"].seq == 2


def test_screen_is_the_one_that_the_messages_make() -> None:
    """The quick way to the part and the general one come to the same."""
    speaker, other = Speaker(), Screen()
    told: list[Delta | Any] = []
    for words in ("a", "b", "c"):
        told += speaker.say(words).messages
    for message in told:
        other.apply(message)
    assert other.canonical() == speaker.screen.canonical()


def test_component_ends_the_part() -> None:
    speaker = Speaker()
    speaker.say("a")
    speaker.show("c")
    assert speaker.cursor() == Cursor(2, None, 0, "t1", 0)
    assert speaker.say("b").part == "t1/2"
    assert speaker.output() == ["a", "x", "b"]
    assert speaker.cursor() == Cursor(3, "t1/2", 1, "t1", 0)


def test_what_was_recorded_elsewhere_does_not_end_the_part() -> None:
    speaker = Speaker()
    speaker.say("a")
    speaker.assembler.is_last = False
    assert speaker.cursor() == Cursor(1, "t1/1", 1, "t1", 0)
    speaker.assembler.is_last = False
    assert speaker.say("b").part == "t1/1"


def test_part_that_is_last_again_is_counted_whole() -> None:
    """The place of a renderer is how much of the part it has, whoever wrote it when."""
    speaker = Speaker()
    speaker.say("one ")
    speaker.show("c")
    speaker.cursor()
    tree = speaker.screen.surfaces["main"]
    tree.begin(9)
    tree.patch(Remove("c"))
    tree.keep()
    speaker.assembler.is_last = False
    assert speaker.say("two").part == "t1/1"
    assert speaker.cursor().characters == 7


def test_part_of_a_surface_that_was_emptied_is_over() -> None:
    speaker = Speaker()
    speaker.say("a")
    tree = speaker.screen.surfaces["main"]
    tree.begin(9)
    tree.clear()
    tree.keep()
    speaker.assembler.is_last = False
    assert speaker.cursor() == Cursor(1, None, 0, "t1", 0)
    speaker.say("b")
    assert speaker.output() == ["b"]


def test_text_of_another_turn_goes_there() -> None:
    speaker = Speaker()
    speaker.say("a")
    assert speaker.say("b", turn="t2").part == "t2/1"
    assert (speaker.output(), speaker.output("t2")) == (["a"], ["b"])


def test_thinking_is_counted_beside_the_part() -> None:
    speaker = Speaker()
    speaker.say("a")
    assert speaker.say("hm", REASONING_TEXT).cursor == Cursor(2, "t1/1", 1, "t1", 2)
    assert speaker.say("b").part == "t1/1"
    assert speaker.screen.turns["t1"].thinking == "hm"
    assert speaker.cursor() == Cursor(3, "t1/1", 2, "t1", 2)


def test_text_knows_the_place_behind_it() -> None:
    """It is the place of the session, for the one who writes it down alone."""
    speaker = Speaker()
    assert speaker.say("one ").cursor == speaker.cursor() == Cursor(1, "t1/1", 4, "t1", 0)
    assert speaker.say("two").cursor == speaker.cursor() == Cursor(2, "t1/1", 7, "t1", 0)
    speaker.show("c")
    assert (
        speaker.say("hm", REASONING_TEXT).cursor == speaker.cursor() == Cursor(4, None, 0, "t1", 2)
    )
    assert speaker.say("x").cursor == speaker.cursor() == Cursor(5, "t1/2", 1, "t1", 2)


def test_new_turn_begins_with_nothing_said() -> None:
    speaker = Speaker()
    speaker.say("a")
    speaker.say("hm", REASONING_TEXT)
    speaker.assembler.begin_turn("t2")
    assert speaker.cursor() == Cursor(2, None, 0, "t2", 0)
