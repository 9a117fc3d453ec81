"""A turn is told in the order in which it happened, also to one that joins when it is over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.mark import OutputAnchor
from arp.protocol.messages import (
    Commit,
    Delta,
    DeltaPayload,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import PatchOp, Update
from arp_terminal.log.entries import Entry
from arp_terminal.log.transcript import Transcript

T: dict[str, Any] = {"session_id": "s", "turn_id": "t1"}
ASKED = InputEcho(input_type="text", data={"text": "go"}, **T)
MORE = InputEcho(input_type="text", data={"text": "more"}, **T)
CARD = Component("x", "text", {"content": "x"})


def delta(text: str, kind: str | None = None, behind: OutputAnchor | None = None) -> Delta:
    return Delta(payload=DeltaPayload(text, kind=kind), behind=behind, **T)


def tool(name: str, behind: OutputAnchor | None = None) -> list[Any]:
    start = ToolStart(payload=ToolStartPayload(name, "{}", name), behind=behind, **T)
    return [start, ToolEnd(payload=ToolEndPayload(name, True, name), **T)]


def part(name: str, text: str) -> Component:
    return Component(name, "text", {"content": text, "format": "markdown"})


LIVE = [
    ASKED,
    delta("hm", "thinking"),
    delta("Let me look"),
    *tool("a"),
    delta(", then."),
    Render(components=[CARD], **T),
    Commit(**T),
    *tool("b"),
    MORE,
    delta("Done."),
    Commit(final=True, **T),
]

LATER = [
    ASKED,
    delta("hm", "thinking"),
    *tool("a", OutputAnchor("t1/1", 11)),
    *tool("b", OutputAnchor("x")),
    InputEcho(input_type="text", data={"text": "more"}, behind=OutputAnchor("x"), **T),
    TurnMessage(status="completed", **T),
    Render(components=[part("t1/1", "Let me look, then."), CARD, part("t1/2", "Done.")], **T),
    Commit(final=True, **T),
]
"""The same turn as a snapshot tells it."""

TOLD = [
    *(("input", 0), ("thought", 0), ("text", "t1/1"), ("tool", 0), ("text", "t1/1")),
    *(("component", "x"), ("tool", 1), ("input", 1), ("text", "t1/2")),
]


def told(transcript: Transcript) -> list[tuple[str, str | int]]:
    return [(entry.kind, entry.ref) for entry in transcript.entries() if entry.kind != "end"]


def test_turn_that_is_heard_is_told_as_it_happens() -> None:
    screen = Screen()
    transcript = Transcript(screen)
    for message in LIVE:
        screen.apply(message)
        transcript.receive(message)
    assert told(transcript) == TOLD


@pytest.mark.parametrize("ahead", range(1, len(LIVE)))
def test_order_is_the_same_however_far_the_screen_is_ahead_of_what_was_heard(ahead: int) -> None:
    screen, printed = Screen(), []
    transcript = Transcript(screen, hold=False)
    for place in range(len(LIVE) + ahead):
        if place < len(LIVE):
            screen.apply(LIVE[place])
        if place >= ahead:
            transcript.receive(LIVE[place - ahead])
        printed += take_printed(transcript)
    assert [(entry.kind, entry.ref) for entry in printed] == TOLD


def test_answer_stands_where_it_was_given_though_the_screen_is_ahead() -> None:
    question = Component("q", "confirm", {"title": "Sure?"})
    closing: list[PatchOp] = [
        Update("q", "props.state", "answered"),
        Update("q", "props.answer", True),
    ]
    echo = InputEcho(input_type="action", data={"action": "confirm"}, source_component="q", **T)
    before: list[object] = [ASKED, delta("Well."), Render(components=[question], **T), Commit(**T)]
    after: list[object] = [
        Patch(ops=closing, **T),
        Commit(**T),
        echo,
        delta("Done."),
        Commit(final=True, **T),
    ]
    screen = Screen()
    transcript = Transcript(screen, hold=False)
    for message in before:
        screen.apply(message)
        transcript.receive(message)
    printed = take_printed(transcript)
    for message in after:
        screen.apply(message)
    for message in after:
        transcript.receive(message)
        printed += take_printed(transcript)
    assert [entry.kind for entry in printed] == ["input", "text", "component", "answer", "text"]


def take_printed(transcript: Transcript) -> list[Entry]:
    """Prints what is settled, as a pipe does."""
    entries = list(itertools.takewhile(lambda entry: entry.is_fixed, transcript.entries()))
    for entry in entries:
        transcript.printed(entry)
    return entries


def test_turn_that_a_snapshot_tells_is_in_the_same_order() -> None:
    screen = Screen()
    for message in LATER:
        screen.apply(message)
    transcript = Transcript(Screen())
    transcript.adopt(screen)
    assert told(transcript) == TOLD


def test_snapshot_tells_only_what_was_not_told_before() -> None:
    """A connection was lost in the middle: what is on the paper stays, the rest comes behind it."""
    before, screen = Screen(), Screen()
    transcript = Transcript(before)
    for message in LIVE[:4]:
        before.apply(message)
        transcript.receive(message)
    printed = transcript.entries()[:3]
    for entry in printed:
        transcript.printed(entry)
    for message in LATER:
        screen.apply(message)
    transcript.adopt(screen)
    assert [(entry.kind, entry.ref) for entry in printed] == TOLD[:3]
    assert told(transcript) == TOLD[3:]
