"""Changes are values: equal when they say the same, and not to be changed."""

from __future__ import annotations

import pytest

from arp.protocol.components import Component
from arp.protocol.patch import Remove
from arp.surface.change import PatchChange, RenderChange


def test_changes_are_values() -> None:
    text = Component("a", "text", {"content": "x"})
    assert RenderChange([text]) == RenderChange([text], None, replace=False)
    assert RenderChange([text], "query") != RenderChange([text])
    assert PatchChange([Remove("a")]) == PatchChange([Remove("a")])
    with pytest.raises(AttributeError):
        RenderChange([text]).tool_name = "other"  # type: ignore[misc]  # frozen
