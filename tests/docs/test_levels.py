"""No page claims a level of the draft that this version does not have (protocol.md 7)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arp.protocol.capabilities import LEVELS
from arp.transport.websocket import SUBPROTOCOLS
from tests.docs.pages import PAGES, text_of

_CLAIM = re.compile(r"The page and the terminal of this version are (\w+)\.")


def test_standard_is_claimed_with_the_object_dialect_alone() -> None:
    """The draft asks for its object model there."""
    has_objects = any(name.startswith("arp.v1.") for name in SUBPROTOCOLS)
    assert _CLAIM.findall(text_of("protocol.md")) == ["Standard" if has_objects else "Basic"]
    assert set(LEVELS["basic"]) <= set(LEVELS["standard"])


OTHERS = [page for page in PAGES if page.name != "protocol.md"]


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_no_other_page_claims_a_level(page: Path) -> None:
    claims = re.findall(r"\b(?:is|are) (?:Standard|Full)\b", page.read_text(encoding="utf-8"))
    assert claims == []
