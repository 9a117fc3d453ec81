"""The place of a popup in the output of its turn is filled by the popup's own surface alone.

Source: docs/protocol.md, `surface`: without the feature `overlays` the group holds its components.
"""

from __future__ import annotations

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.limits import Limits
from arp.protocol.messages import SurfaceInfo
from arp.protocol.patch import Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.session.session import Head, Session
from arp.session.surfaces import open_surface
from arp.surface.change import PatchChange, RenderChange
from tests.session.conversation import text, user

CHILD = {"id": "x", "type": "text", "props": {"content": "x"}}
FILLED = Component("p", "group", {"children": [CHILD]})
EMPTY = Component("p", "group", {"children": []})
AROUND = Component(
    "g", "group", {"children": [{"id": "p", "type": "group", "props": {"children": [CHILD]}}]}
)


def with_popup() -> Session:
    session = Session(Head("s", "e"), Limits())
    user(session, "go")
    session.commit("t1", "main", [RenderChange([text("a")])])
    popup = SurfaceInfo(role="popup", parent="main")
    open_surface(session, "t1", "p", popup, [RenderChange([text("in")])])
    return session


@pytest.mark.parametrize(
    "op",
    [
        Insert(text("x"), parent="p"),
        Update("p", "props.children", [CHILD]),
        Replace("p", FILLED),
        Replace("a", AROUND),
    ],
)
def test_nothing_is_put_into_the_place_of_a_popup(op: PatchOp) -> None:
    session = with_popup()
    before = session.sequence
    with pytest.raises(InvalidPatch, match="'p' is the place of a popup"):
        session.commit("t1", "main", [PatchChange([op])])
    with pytest.raises(InvalidPatch, match="'p' is the place of a popup"):
        session.commit("t1", "main", [RenderChange([text("b"), FILLED])])
    assert session.sequence == before
    assert [one.id for one in session.screen.main.output("t1")] == ["a", "p"]


@pytest.mark.parametrize(
    ("op", "left"),
    [
        (Reorder("p", None), ["p", "a"]),
        (Remove("p"), ["a"]),
        (Replace("p", EMPTY), ["a", "p"]),
        (Insert(text("x"), parent=None, after="p"), ["a", "p", "x"]),
        (Update("p", "props.gap", "small"), ["a", "p"]),
    ],
)
def test_the_place_itself_is_a_component_as_any_other(op: PatchOp, left: list[str]) -> None:
    session = with_popup()
    session.commit("t1", "main", [PatchChange([op])])
    assert [one.id for one in session.screen.main.output("t1")] == left


def test_other_surfaces_and_components_without_places_are_not_looked_at() -> None:
    session = with_popup()
    session.commit("t1", "side", [RenderChange([FILLED])])
    wrong = Component("w", "split", {"left": 1, "right": 2})
    with pytest.raises(Exception, match="left"):
        session.commit("t1", "main", [RenderChange([wrong])])
