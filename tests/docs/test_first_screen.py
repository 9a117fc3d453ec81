"""Each page begins with what one can do with it, and shows an example in the first screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS

FIRST_SCREEN_LINES = 25
"""Of a page in an editor or a browser, before the reader scrolls."""


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_a_page_begins_with_a_title_a_paragraph_and_an_example(page: Path) -> None:
    first = page.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]
    assert first[0].startswith("# ")
    assert first[1] == ""
    assert not first[2].startswith(("#", "|", "-", "```"))
    assert any(line.startswith("```") for line in first)
