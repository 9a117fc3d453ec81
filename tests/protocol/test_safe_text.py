"""No character of an agent's text may be obeyed by a terminal, hide from us or break a codec."""

from __future__ import annotations

import enum
import json
import sys
import unicodedata
from typing import Any
from unittest.mock import NonCallableMagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.safe_text import escaped_json, is_safe, sanitise, sanitise_line, well_formed

DANGEROUS = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))


def test_every_control_format_and_separator_character_is_escaped() -> None:
    """All of Unicode, one by one, each between letters; newline and tab are layout."""
    passed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in DANGEROUS
        and chr(code) not in "\n\t"
        and chr(code) in sanitise(f"a{chr(code)}b")
    ]
    assert passed == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x1b]52;c;Zm9v\x1b\\", "␛]52;c;Zm9v␛\\"),
        ("\x1bP1$r\x1b\\", "␛P1$r␛\\"),
        ("\x1b_Gf=1;\x1b\\", "␛_Gf=1;␛\\"),
        ("\x9b31m", "<U+009B>31m"),
        ("50 %\r100 %", "50 %␍100 %"),
        ("passwd\b\b", "passwd␈␈"),
        ("\x00\x7f", "␀␡"),
        ("user\u202etxt.exe", "user<U+202E>txt.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("a\u2028b\u2029c", "a<U+2028>b<U+2029>c"),
        ("\U000e0041\U000e0042", "<U+E0041><U+E0042>"),
        ("a\ufe01b\U000e0101", "a<U+FE01>b<U+E0101>"),
        ("a\u200db", "a<U+200D>b"),
        ("a\ufe0f", "a<U+FE0F>"),
        ("soft\u00adhyphen", "soft<U+00AD>hyphen"),
        ("\ufeffbom", "<U+FEFF>bom"),
        ("\ud800", "<U+D800>"),
        ("hangul\u3164filler", "hangul<U+3164>filler"),
    ],
)
def test_what_a_terminal_would_obey_becomes_visible(text: str, shown: str) -> None:
    assert sanitise(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "日本語",
        "naïve",
        "a\u0301",
        "👨‍👩‍👧",
        "👍🏽",
        "❤️",
        "👩🏽‍🚀",
        "1️⃣",
        "🏳️‍🌈",
        "🇨🇭",
        "\U0001fae9",
    ],
)
def test_words_and_emoji_stay_as_they_are(text: str) -> None:
    assert sanitise(text) == text
    assert is_safe(text)


def test_newline_and_tab_stay_and_a_windows_line_end_is_one_newline() -> None:
    assert sanitise("a\r\nb\tc\n") == "a\nb\tc\n"


def test_a_line_shows_its_newlines_and_has_spaces_for_tabs() -> None:
    assert sanitise_line("a\r\nb\tc\nd") == "a␊b c␊d"


@given(st.text(st.characters(codec=None)))
def test_sanitised_text_is_safe_and_stays_as_it_is(text: str) -> None:
    assert is_safe(sanitise(text))
    assert sanitise_line(sanitise_line(text)) == sanitise_line(text)


def test_json_is_escaped_and_says_the_same() -> None:
    value = [
        "\x7f\x9b31m",
        "user\u202etxt.exe",
        "\U000e0041",
        "a\u200db",
        "👩🏽‍🚀 ❤️",
        "Größe",
        "\ud800",
    ]
    shown = escaped_json(json.dumps(value, ensure_ascii=False))
    escaped = r'"\u007f\u009b31m", "user\u202etxt.exe", "\udb40\udc41", "a\u200db"'
    assert shown == f'[{escaped}, "👩🏽‍🚀 ❤️", "Größe", "\\ud800"]'
    assert json.loads(shown) == value


def test_what_is_no_json_is_visible_too() -> None:
    assert escaped_json("\x1b[31m\r\n\tred\x00") == "\\u001b[31m \n\tred\\u0000"


@given(st.recursive(st.text(st.characters(codec=None)), st.lists, max_leaves=5))
def test_any_json_stays_what_it_is_and_becomes_visible(value: object) -> None:
    for spaces in (None, 1):
        text = json.dumps(value, ensure_ascii=False, indent=spaces)
        shown = escaped_json(text)
        assert json.loads(shown) == value
        assert is_safe(shown)


@pytest.mark.parametrize(
    ("text", "formed"),
    [
        ("", ""),
        ("plain", "plain"),
        ("é 🙂", "é 🙂"),
        ("\ud83d\ude42", "🙂"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("x\ud83d", "x\ufffd"),
    ],
    ids=["empty", "ascii", "any", "halves side by side", "lone high", "lone low", "at the end"],
)
def test_half_characters_are_joined_or_marked(text: str, formed: str) -> None:
    assert well_formed(text) == formed
    assert well_formed(text).encode("utf-8").decode("utf-8") == formed


@pytest.mark.parametrize("what", [None, 3, b"bytes", ["text"]])
def test_what_is_no_text_is_refused_by_its_type(what: Any) -> None:
    with pytest.raises(TypeError, match=f"expected str, got {type(what).__name__}"):
        well_formed(what)


class Text(str):
    """As frameworks give it; what its methods say is not what it holds."""

    def __str__(self) -> str:
        return "something else"

    def isascii(self) -> bool:
        return True


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "formed"),
    [(Text("é"), "é"), (Text("a\ud800"), "a\ufffd"), (Colour.RED, "red"), (Text(""), "")],
)
def test_subclass_of_a_text_is_the_plain_text_that_it_holds(given: str, formed: str) -> None:
    made = well_formed(given)
    assert (made, type(made)) == (formed, str)


def test_what_only_says_that_it_is_a_text_is_refused() -> None:
    """A proxy tells `isinstance` what it stands for; an encoder takes it for what it is."""
    with pytest.raises(TypeError, match="expected str, got NonCallableMagicMock"):
        well_formed(NonCallableMagicMock(spec=str))
