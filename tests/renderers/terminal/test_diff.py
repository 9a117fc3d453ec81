"""Differences of two texts, line by line."""

from __future__ import annotations

from arp.protocol.components import Component
from tests.renderers.terminal.drawing import drawn, painted, picture


def test_changed_lines_have_signs_and_the_numbers_of_both_sides() -> None:
    before = "a = 1\nb = 2\nc = 3"
    after = "a = 1\nb = 4\nc = 3\nd = 5"
    assert drawn(
        "diff", 40, title="conf", before=before, after=after, before_label="old", after_label="new"
    ) == picture(
        """
        conf  old → new  +2 -1
        1 1   a = 1
        2   - b = 2
          2 + b = 4
        3 3   c = 3
          4 + d = 5
        """
    )


def test_long_stretches_without_a_change_are_folded() -> None:
    before = "\n".join(str(number) for number in range(12))
    assert drawn("diff", 40, before=before, after=before + "\nend") == picture(
        """
        +1 -0
        ⋯ 9 unchanged lines
        10 10   9
        11 11   10
        12 12   11
           13 + end
        """
    )


def test_equal_texts_say_so() -> None:
    assert drawn("diff", before="x", after="x") == "no differences\n1 1   x"


def test_the_words_that_changed_are_marked() -> None:
    component = Component("d", "diff", {"before": "the red car", "after": "the blue car"})
    lines = painted(component, width=40)
    assert "\x1b[7;31mred\x1b[0m" in lines[1]
    assert "\x1b[7;32mblue\x1b[0m" in lines[2]


def test_texts_too_long_to_compare_are_removed_and_added_whole() -> None:
    before = "\n".join(f"a{number % 7}" for number in range(4001))
    lines = drawn("diff", 40, before=before, after="b").split("\n")
    assert lines[0] == "+1 -4001"
    assert lines[1] == "   1      - a0"
    assert lines[-1] == "        1 + b"
