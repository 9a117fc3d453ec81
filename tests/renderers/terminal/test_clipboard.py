"""Copying through the terminal."""

from __future__ import annotations

from arp_terminal.programs.chat_terminal import MAX_COPIED, copy_sequence


def test_text_travels_as_base64_so_that_nothing_of_it_is_obeyed() -> None:
    assert copy_sequence("hi\x07", {}) == "\x1b]52;c;aGkH\x07"


def test_inside_of_tmux_it_is_passed_through() -> None:
    assert copy_sequence("hi", {"TMUX": "/tmp/t"}) == "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"


def test_nothing_and_too_much_are_not_copied() -> None:
    assert copy_sequence("", {}) is None
    assert copy_sequence("x" * (MAX_COPIED + 1), {}) is None
