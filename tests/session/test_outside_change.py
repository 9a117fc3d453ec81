"""A program changes what shows, while no turn does."""

from __future__ import annotations

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import InvalidPatch, SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.protocol.patch import Append, Update
from arp.session.asking import ask_question
from arp.session.input.outside_change import change_shown
from arp.session.session import Session
from arp.session.turn_end import end_turn
from arp.surface.change import RenderChange
from tests.session.conversation import AT, begun, confirm, facts, kinds, text

TABLE = Component("t", "table", {"headers": ["n"], "rows": [[1]]})


def shows(session: Session, component_id: str, surface: str = "main") -> dict[str, Json]:
    tree = session.tree(surface)
    assert tree is not None
    return tree.component(component_id).props


def over(*components: Component, surface: str = "main") -> Session:
    """Return a session whose turn has shown components and is over."""
    session = begun()
    session.commit("t1", surface, [RenderChange(list(components))])
    end_turn(session, "t1", "completed")
    session.drain(AT)
    return session


def test_components_of_a_turn_that_is_over_change_in_one_commit() -> None:
    session = over(text("a", "0 %"), TABLE)
    ops: list[Update | Append] = [
        Update("a", "props.content", "40 %"),
        Append("t", "props.rows", [[2], [3]]),
    ]
    change_shown(session, "main", ops)
    (fact,) = facts(session)
    assert (fact.type, fact.turn_id) == ("artifact.changed", None)
    assert shows(session, "a")["content"] == "40 %"
    assert shows(session, "t")["rows"] == [[1], [2], [3]]
    assert session.screen.turns["t1"].status == "completed"
    assert list(session.screen.turns) == ["t1"]


def test_component_of_a_turn_that_runs_and_of_another_surface_changes_too() -> None:
    session = begun()
    session.commit("t1", "details", [RenderChange([text("a")])])
    change_shown(session, "details", [Update("a", "props.content", "y")])
    assert shows(session, "a", "details")["content"] == "y"
    assert session.running == "t1"


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (Update("nobody", "props.content", "y"), r"ops\[1\] update: no component 'nobody'"),
        (Update("a", "props.contnt", "y"), 'did you mean "content"'),
        (Append("a", "props.content", "y"), "extends arrays only; set the whole text with update"),
        (Append("a", "props.content", [1]), r"ops\[1\] append"),
        (Update("q", "props.title", "y"), "a question is open in 'q'; only its turn changes it"),
        (Update("g", "props.children", []), "a question is open in 'g'"),
    ],
)
def test_change_that_is_refused_changes_nothing(op: Update | Append, message: str) -> None:
    session = begun()
    inner = {"id": "q", "type": "confirm", "props": {"title": "Sure?"}}
    group = Component("g", "group", {"children": [inner]})
    session.commit("t1", "main", [RenderChange([text("a"), group])])
    ask_question(session, "t1", confirm())
    session.drain(AT)
    before = session.screen.canonical()
    with pytest.raises(InvalidPatch, match=message):
        change_shown(session, "main", [Update("a", "props.content", "new"), op])
    assert session.screen.canonical() == before
    assert kinds(session) == []


def test_question_of_another_surface_hinders_nothing() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([text("a")])])
    ask_question(session, "t1", confirm("a"), "details")
    change_shown(session, "main", [Update("a", "props.content", "y")])
    assert shows(session, "a")["content"] == "y"


def test_surface_that_is_closed_says_so() -> None:
    with pytest.raises(SurfaceDestroyed, match="surface 'details' is closed, or was never there"):
        change_shown(over(text("a")), "details", [Update("a", "props.content", "y")])


def test_secret_in_a_change_is_hidden() -> None:
    session = over(text("a"))
    change_shown(session, "main", [Update("a", "props.content", "key AKIAIOSFODNN7EXAMPLE")])
    assert "AKIAIOSFODNN7EXAMPLE" not in str(shows(session, "a"))
