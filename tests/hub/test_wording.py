"""Text of an agent reaches every encoding; what is none is the author's mistake."""

from __future__ import annotations

from typing import Any

import pytest

from arp.record.wording import well_formed


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
