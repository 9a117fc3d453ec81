"""Words, excerpts and cursors, which all stores share."""

from __future__ import annotations

from arp.store.session_list import (
    MAX_WORDS,
    excerpt,
    fold,
    missing_words,
    page_limit,
    split_cursor,
    words_of,
)
from tests.store.samples import meta


def test_a_cursor_is_taken_apart_at_the_first_mark() -> None:
    assert meta("s~1", "2026-11-21T08:00:00Z").cursor == "2026-11-21T08:00:00Z~s~1"
    assert split_cursor("2026-11-21T08:00:00Z~s~1") == ("2026-11-21T08:00:00Z", "s~1")
    assert split_cursor("") == ("", "")


def test_page_sizes_are_brought_inside() -> None:
    assert [page_limit(limit) for limit in (-1, 0, 1, 1000, 1001)] == [1, 1, 1, 1000, 1000]


def test_folding_keeps_every_character_in_its_place() -> None:
    assert fold("ÀB ß İ ẞ") == "àb ß İ ß"
    assert len(fold("İstanbul")) == len("İstanbul")


def test_words_are_few_and_short() -> None:
    assert words_of("  One TWO\tthree ") == ["one", "two", "three"]
    assert len(words_of("x " * 99)) == MAX_WORDS
    assert words_of("y" * 99) == ["y" * 64]


def test_what_a_title_lacks() -> None:
    assert missing_words("Sales in Oslo", ["oslo", "snow"]) == ["snow"]


def test_an_excerpt_is_one_line_around_the_word() -> None:
    text = "a" * 100 + "\nfind\tME " + "b" * 100
    assert excerpt(text, "me") == "…" + "a" * 54 + " find ME " + "b" * 59 + "…"
    assert excerpt("short", "short") == "short"
    assert excerpt("short", "other") == ""
