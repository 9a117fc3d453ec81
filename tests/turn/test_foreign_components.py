"""Components of other programs are shown as far as a commit carries them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.components import Component
from arp.turn.foreign_components import FittingComponent, fitting_component

MOST = 20_000


def test_component_that_fits_is_shown_as_it_is() -> None:
    text = Component("a", "text", {"content": "x"})
    assert fitting_component(text, MOST) == FittingComponent(text)
    given = {"type": "text", "props": {"content": "x"}}
    assert fitting_component(given, MOST) == FittingComponent(msgspec.structs.replace(text, id=""))


@pytest.mark.parametrize("given", [3, "x", None, {"type": "text"}, {"type": "none", "props": {}}])
def test_what_is_no_component_is_left_out(given: Any) -> None:
    component, warning = fitting_component(given, MOST)
    assert component is None
    assert warning.startswith("the value is not a component: ")


def test_large_table_has_its_first_rows() -> None:
    props = {"headers": ["a"], "rows": [["x" * 100]] * 500, "highlight": [499]}
    for title in ("Words", None):
        given = {"type": "table", "props": {**props, **({"title": title} if title else {})}}
        component, warning = fitting_component(given, MOST)
        assert component is not None
        rows = component.props["rows"]
        assert len(msgspec.json.encode(component)) <= MOST // 2
        assert 80 < len(rows) < 100
        note = f"the first {len(rows)} of 500 rows"
        assert component.props["title"] == (f"Words ({note})" if title else note)
        assert "highlight" not in component.props
        assert warning.endswith(f"is too large: it shows {note}")


def test_what_is_too_large_is_left_out() -> None:
    for props in ({"content": "x" * MOST}, {"headers": ["x" * MOST], "rows": [["x"]]}):
        kind = "text" if "content" in props else "table"
        component, warning = fitting_component({"type": kind, "props": props}, MOST)
        assert component is None
        assert warning.startswith(f"a {kind} of 20,0")
        assert warning.endswith("bytes is not shown; at most 10,000 are")
