"""Text of somebody else's code reaches every encoding; what is none is their mistake."""

from __future__ import annotations

import enum
from typing import Any
from unittest.mock import NonCallableMagicMock

import pytest

from arp.protocol.plain_text import well_formed


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
