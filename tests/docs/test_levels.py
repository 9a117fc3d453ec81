"""No page claims a level of the draft that this version does not have (protocol.md 7)."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from arp.cli import connect
from arp.protocol.capabilities import LEVELS
from arp.transport.websocket import SUBPROTOCOLS
from tests.docs.pages import PAGES, ROOT, section

_CLAIM = re.compile(r"The (terminal|page|agent side)\b[^.:]*? is (\w+)\b")


def test_standard_is_claimed_with_the_object_dialect_alone() -> None:
    """The draft asks for its object model there: the terminal speaks it, the page does not."""
    claims = dict(_CLAIM.findall(section("protocol.md", "7. Conformance levels")))
    assert claims == {"terminal": "Standard", "page": "Basic", "agent side": "Full"}
    assert any(name.startswith("arp.v1.") for name in SUBPROTOCOLS)
    (dialect,) = [one for one in connect.params if one.name == "dialect"]
    assert isinstance(dialect.type, click.Choice)
    assert "object" in dialect.type.choices
    page = (ROOT / "web/core/src").rglob("*.ts")
    assert not any('"arp.v1.' in file.read_text(encoding="utf-8") for file in page)
    assert set(LEVELS["basic"]) <= set(LEVELS["standard"])


OTHERS = [page for page in PAGES if page.name != "protocol.md"]


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_no_other_page_claims_a_level(page: Path) -> None:
    claims = re.findall(r"\b(?:is|are) (?:Standard|Full)\b", page.read_text(encoding="utf-8"))
    assert claims == []
