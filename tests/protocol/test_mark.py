"""What is no output stands where it happened, whatever becomes of the output.

Source: docs/protocol.md 2.3.
"""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import ErrorPayload, InvalidPatch
from arp.protocol.mark import Mark, OutputAnchor
from arp.protocol.messages import (
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    ToolStart,
    ToolStartPayload,
)
from arp.protocol.patch import Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import Marks, Node, Tree

S: dict[str, Any] = {"session_id": "s", "turn_id": "t"}


def said(text: str) -> Delta:
    return Delta(payload=DeltaPayload(text), **S)


def thought(text: str, behind: OutputAnchor | None = None) -> Delta:
    return Delta(payload=DeltaPayload(text, kind="thinking"), behind=behind, **S)


def tool(name: str, behind: OutputAnchor | None = None) -> ToolStart:
    return ToolStart(payload=ToolStartPayload(name, "{}", name), behind=behind, **S)


def asked(behind: OutputAnchor | None = None) -> InputEcho:
    return InputEcho(input_type="text", data={"text": "go"}, behind=behind, **S)


def failed(behind: OutputAnchor | None = None) -> ErrorMessage:
    return ErrorMessage(payload=ErrorPayload("slow", 16), behind=behind, **S)


def one(name: str) -> Component:
    return Component(name, "text", {"content": name})


def shows(*names: str) -> Render:
    return Render(components=[one(name) for name in names], **S)


def patches(*ops: PatchOp) -> Patch:
    return Patch(ops=list(ops), **S)


def story(*messages: object) -> list[str]:
    """Return a turn in the order in which it is to be read; components by their ids."""
    screen = Screen()
    for message in messages:
        screen.apply(message)
        if isinstance(message, Render | Patch):
            screen.apply(Commit(**S))
    return read(screen)


def read(screen: Screen) -> list[str]:
    output = screen.output("t")
    return [
        piece.text
        or (
            output[piece.number].id if piece.kind == "component" else f"{piece.kind} {piece.number}"
        )
        for piece in screen.story("t")
    ]


def test_turn_that_is_not_there_has_no_story() -> None:
    assert Screen().story("t") == []


def test_what_comes_without_a_place_stands_behind_all_that_shows() -> None:
    told = (asked(), thought("hm "), said("Let me "), tool("a"), said("look."), shows("x"))
    after = (tool("b"), thought("so "), said("Done"), failed(), asked(), said("."))
    assert story(*told, *after) == [
        *("input 0", "thinking 0", "Let me ", "tool 0", "look.", "x"),
        *("tool 1", "Done", "error 0", "input 1", "."),
    ]


def test_what_names_a_place_stands_there_also_before_that_is_shown() -> None:
    """As in a snapshot: the output comes last, in one render."""
    told = (
        asked(),
        thought("hm ", OutputAnchor()),
        tool("a", OutputAnchor("x")),
        tool("b", OutputAnchor("t/1", 4)),
        failed(OutputAnchor("t/1")),
    )
    part = Component("t/1", "text", {"content": "one two", "format": "markdown"})
    render = Render(components=[one("x"), part, one("y")], **S)
    assert story(*told, render) == [
        *("input 0", "thinking 0", "x", "tool 0", "one ", "tool 1", "two", "error 0", "y")
    ]


def test_characters_are_those_of_unicode() -> None:
    told = (said("🙂é"), tool("a"), said("e"), tool("b", OutputAnchor("t/1", 1)))
    assert story(*told) == ["🙂", "tool 1", "é", "tool 0", "e"]


@pytest.mark.parametrize(
    ("behind", "there"),
    [
        (OutputAnchor("nobody"), ["tool 0", "one", "x"]),
        (OutputAnchor(""), ["tool 0", "one", "x"]),
        (OutputAnchor("t/1", 99), ["one", "tool 0", "x"]),
        (OutputAnchor("t/1", -1), ["tool 0", "one", "x"]),
        (OutputAnchor("x", 1), ["one", "x", "tool 0"]),
    ],
)
def test_strange_place_is_some_place(behind: OutputAnchor, there: list[str]) -> None:
    assert story(said("one"), shows("x"), tool("a", behind)) == there


@pytest.mark.parametrize(
    ("op", "there"),
    [
        (Remove("x"), ["one", "tool 0", "y", "tool 1"]),
        (Remove("y"), ["one", "x", "tool 0", "tool 1"]),
        (Replace("x", one("z")), ["one", "z", "tool 0", "y", "tool 1"]),
        (Replace("x", one("x")), ["one", "x", "tool 0", "y", "tool 1"]),
        (Reorder("x", "y"), ["one", "y", "tool 1", "x", "tool 0"]),
        (Insert(one("z"), after="x"), ["one", "x", "tool 0", "z", "y", "tool 1"]),
        (Update("x", "props.content", "new"), ["one", "x", "tool 0", "y", "tool 1"]),
    ],
    ids=["remove", "remove last", "rename", "replace", "reorder", "insert", "update"],
)
def test_place_follows_the_component(op: PatchOp, there: list[str]) -> None:
    assert story(said("one"), shows("x"), tool("a"), shows("y"), tool("b"), patches(op)) == there


def test_text_that_goes_on_after_a_removal_stands_behind_what_stood_there() -> None:
    told = (said("one "), shows("x"), tool("a"), patches(Remove("x")), said("two"))
    assert story(*told) == ["one ", "tool 0", "two"]


def test_what_stood_behind_the_first_component_stands_first_when_that_goes() -> None:
    told = (
        shows("x"),
        tool("a"),
        shows("y"),
        tool("b"),
        patches(Remove("x")),
        patches(Remove("y")),
    )
    assert story(*told) == ["tool 0", "tool 1"]
    assert story(*told, shows("x")) == ["tool 0", "tool 1", "x"]


def test_replaced_tree_leaves_everything_first() -> None:
    told = (said("one"), tool("a"), shows("x"), tool("b"))
    screen = Screen()
    for message in (*told[:2], told[2], Commit(**S), told[3]):
        screen.apply(message)
    screen.apply(Render(components=[one("y")], replace=True, **S))
    screen.apply(Commit(**S))
    assert read(screen) == ["tool 0", "tool 1", "y"]


def test_refused_commit_leaves_every_place_as_it_was() -> None:
    screen = Screen()
    for message in (shows("x"), Commit(**S), tool("a"), shows("y"), Commit(**S), tool("b")):
        screen.apply(message)
    for refused in (Remove("y"), Remove("x"), Replace("x", one("z"))):
        screen.apply(patches(refused, Remove("nobody")))
        assert isinstance(screen.apply(Commit(**S)), InvalidPatch)
        assert read(screen) == ["x", "tool 0", "y", "tool 1"]
    screen.apply(patches(Remove("y")))
    screen.apply(Commit(**S))
    assert read(screen) == ["x", "tool 0", "tool 1"]


def test_component_that_is_taken_away_and_put_back_in_one_commit_has_moved() -> None:
    """So a renderer that has it degraded is told a reorder."""
    screen = Screen()
    told = (said("one"), shows("x"), Commit(**S), tool("a"), shows("y"), Commit(**S))
    for message in (*told, patches(Remove("x")), shows("x"), Commit(**S)):
        screen.apply(message)
    assert read(screen) == ["one", "y", "x", "tool 0"]


def test_neighbours_that_go_in_one_commit_hand_on_to_what_stays() -> None:
    told = (said("one"), shows("x"), tool("a"), shows("y"), tool("b"))
    gone = ["one", "tool 0", "tool 1"]
    assert story(*told, patches(Remove("x"), Remove("y"))) == gone
    assert story(*told, patches(Remove("y"), Remove("x"))) == gone
    assert story(*told, patches(Replace("y", one("z")), Remove("z"), Remove("x"))) == gone


def test_marks_that_are_dropped_follow_no_component_any_more() -> None:
    """Others at the same place do; one before all output has nothing to follow."""
    marks = Marks()
    first, second = Mark("tool", 0, OutputAnchor("a")), Mark("tool", 1, OutputAnchor("a"))
    alone, before_all = Mark("tool", 2, OutputAnchor("b")), Mark("input", 0, OutputAnchor())
    for mark in (first, second, alone, before_all):
        marks.add(mark)
    marks.drop([first, alone, before_all])
    tree = Tree()
    tree.upsert(Component("c", "text", {"content": "x"}))
    for gone in ("a", "b"):
        marks.note_removed(Node(Component(gone, "text", {"content": "x"}), "", None, 1), "c")
    marks.apply_removals(tree.nodes)
    assert [mark.behind.component for mark in (first, second, alone)] == ["a", "c", "b"]
