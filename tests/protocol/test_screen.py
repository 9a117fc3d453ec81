"""What a renderer shows, kept from the messages alone (protocol.md 2.1)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.connection.screen import MAX_PENDING_BYTES, Screen, is_text_part
from arp.protocol.errors import ErrorPayload, InvalidPatch, ResourceLimit
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Permission,
    Render,
    SurfaceInfo,
    SurfaceMessage,
    ToolEnd,
    ToolEndPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import Insert, PatchOp, Remove, Update


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def delta(words: str, seq: int | None = None, turn: str | None = "t1", **more: Any) -> Delta:
    return Delta(session_id="s", seq=seq, turn_id=turn, payload=DeltaPayload(words, **more))


def render(*components: Component, turn: str | None = "t1", **more: Any) -> Render:
    return Render(session_id="s", turn_id=turn, components=list(components), **more)


def patch(*ops: PatchOp, turn: str | None = "t1", **more: Any) -> Patch:
    return Patch(session_id="s", turn_id=turn, ops=list(ops), **more)


def commit(turn: str | None = "t1", **more: Any) -> Commit:
    return Commit(session_id="s", turn_id=turn, **more)


def shown(*messages: AgentMessage) -> Screen:
    screen = Screen()
    for message in messages:
        assert screen.apply(message) is None
    return screen


def output(screen: Screen, turn: str = "t1") -> list[Any]:
    """The output of a turn: text parts as strings, components by id."""
    return [
        part.props["content"] if is_text_part(part, turn) else part.id
        for part in screen.output(turn)
    ]


# -- text ------------------------------------------------------------------------------------------


def test_delta_goes_to_the_open_text_part() -> None:
    """Spec: S22."""
    screen = shown(delta("one "), delta("two"))
    assert output(screen) == ["one two"]
    assert screen.text("t1") == "one two"
    assert screen.output("t1") == [
        Component("t1/1", "text", {"content": "one two", "format": "markdown"})
    ]


def test_delta_behind_a_component_opens_a_new_part() -> None:
    """Text and components keep the order in which the agent produced them. Spec: S22."""
    screen = shown(delta("a"), render(text("c")), commit(), delta("b"), delta("c"))
    assert output(screen) == ["a", "c", "bc"]
    assert screen.turns["t1"].parts == 2


def test_part_that_is_last_again_goes_on() -> None:
    screen = shown(
        delta("a"), render(text("c")), commit(), patch(Remove("c")), commit(), delta("b")
    )
    assert output(screen) == ["ab"]


def test_parts_of_every_renderer_have_the_same_ids() -> None:
    """One that joined by a snapshot counts on from what stands there. Spec: S22."""
    live = shown(delta("a"), render(text("c")), commit(), delta("b"), render(text("d")), commit())
    joined = shown(render(*live.output("t1")), commit())
    for screen in (live, joined):
        screen.apply(delta("e"))
        assert [part.id for part in screen.output("t1")] == ["t1/1", "c", "t1/2", "d", "t1/3"]


def test_part_does_not_take_an_id_that_is_there_already() -> None:
    """Spec: S22."""
    screen = shown(render(text("t1/1"), text("c")), commit("t2"), delta("a"))
    assert [part.id for part in screen.output("t1")] == ["t1/1", "c", "t1/2"]
    elsewhere = shown(render(text("t1/1"), turn="t2"), commit("t2"), delta("a"))
    assert [part.id for part in elsewhere.output("t1")] == ["t1/2"]


def test_delta_with_a_target_extends_that_component() -> None:
    """Spec: S23."""
    screen = shown(
        render(
            text("a", "one"),
            Component("m", "markdown", {"content": ""}),
            Component("k", "code-block", {"language": "python"}),
            Component("x", "x-acme-dial", {}),
        ),
        commit(),
        delta(" two", target="a"),
        delta("*m*", target="m"),
        delta("pass", target="k"),
        delta("dial", target="x"),
    )
    props = {part.id: part.props for part in screen.output("t1")}
    assert props["a"] == {"content": "one two"}
    assert props["m"] == {"content": "*m*"}
    assert props["k"] == {"language": "python", "code": "pass"}
    assert props["x"] == {"content": "dial"}


@pytest.mark.parametrize("target", ["nobody", "table", "odd"])
def test_delta_that_has_nowhere_to_go_is_passed_over(target: str) -> None:
    """Spec: S23."""
    screen = shown(
        render(Component("table", "table", {}), Component("odd", "text", {"content": 5})),
        commit(),
        delta("x", target=target),
    )
    assert [part.props for part in screen.output("t1")] == [{}, {"content": 5}]


def test_thinking_is_kept_beside_the_output() -> None:
    """Spec: S24."""
    screen = shown(delta("hm ", 3, kind="thinking"), delta("so", 4, kind="thinking"), delta("a", 5))
    turn = screen.turns["t1"]
    assert (turn.thinking, turn.thought, turn.seq) == ("hm so", 4, 4)
    assert output(screen) == ["a"]


def test_delta_without_a_turn_has_a_place_too() -> None:
    assert output(shown(delta("a", turn=None), delta("b", turn=None)), "") == ["ab"]


def test_delta_of_another_surface_stays_there() -> None:
    message = Delta(session_id="s", turn_id="t1", surface="side", payload=DeltaPayload("a"))
    screen = shown(message, message)
    assert [part.props["content"] for part in screen.output("t1", "side")] == ["aa"]
    assert output(screen) == []


@pytest.mark.parametrize(
    ("component", "is_part"),
    [
        (text("t1/1"), True),
        (text("t1/12"), True),
        (text("t1/0"), False),
        (text("t1/x"), False),
        (text("t1/²"), False),
        (text("t1/" + "9" * 5000), False),
        (text("t2/1"), False),
        (text("g/tab/0"), False),
        (text("a"), False),
        (Component("t1/1", "table", {}), False),
        (Component("t1/1", "text", {"content": 5}), False),
    ],
)
def test_text_part_is_known_by_its_id(component: Component, is_part: bool) -> None:
    assert is_text_part(component, "t1") == is_part


# -- commits ---------------------------------------------------------------------------------------


def test_render_and_patch_show_at_their_commit() -> None:
    """Spec: S1, S27."""
    screen = shown(render(text("a")), patch(Update("a", "props.content", "new")))
    assert output(screen) == []
    screen.apply(commit())
    assert screen.output("t1") == [text("a", "new")]


def test_component_takes_the_place_of_the_one_with_its_id_wherever_it_is() -> None:
    """In a group, and in the output of another turn; else it comes last. Spec: S25."""
    group = Component(
        "g", "group", {"children": [{"id": "a", "type": "text", "props": {"content": "a"}}]}
    )
    screen = shown(render(group), render(text("b")), commit())
    for message in (render(text("a", "new"), text("b", "too"), text("c"), turn="t2"), commit("t2")):
        screen.apply(message)
    inside, after = screen.output("t1")
    assert inside.props["children"][0]["props"] == {"content": "new"}
    assert after == text("b", "too")
    assert output(screen, "t2") == ["c"]


def test_commit_that_does_not_fit_shows_nothing_of_itself() -> None:
    """A commit applies whole or not at all, on every surface that it touches. Spec: S1, P1."""
    screen = shown(render(text("a")), commit())
    for message in (
        render(text("b")),
        render(text("s"), surface="side"),
        patch(Insert(text("a"))),
    ):
        screen.apply(message)
    refused = screen.apply(commit())
    assert isinstance(refused, InvalidPatch)
    assert output(screen) == ["a"]
    assert set(screen.surfaces) == {"main"}
    assert screen.apply(commit()) is None


def test_commit_that_nests_too_deep_is_refused() -> None:
    children = [{"id": "z", "type": "text", "props": {}}]
    for name in "cba":
        children = [{"id": name, "type": "group", "props": {"children": children}}]
    screen = shown(render(Component("g", "group", {"children": children})))
    assert isinstance(screen.apply(commit()), ResourceLimit)


def test_pending_changes_are_dropped_with_the_connection() -> None:
    screen = shown(render(text("a")))
    screen.drop_pending()
    screen.apply(commit())
    assert output(screen) == []


def test_commit_of_the_next_connection_is_whole_again() -> None:
    screen = Screen()
    screen.spoil_pending()
    screen.drop_pending()
    screen.apply(render(text("b")))
    screen.apply(commit())
    assert output(screen) == ["b"]


def test_what_waits_for_its_commit_is_bounded() -> None:
    """A peer that never commits does not fill the memory; what it commits is counted anew."""
    screen = shown(render(text("a")))
    assert screen.weigh_pending(MAX_PENDING_BYTES) is None
    screen.apply(commit())
    assert screen.weigh_pending(5) is None
    screen.apply(render(text("b")))
    assert screen.weigh_pending(MAX_PENDING_BYTES) is None
    screen.apply(render(text("c")))
    refused = screen.weigh_pending(1)
    assert isinstance(refused, ResourceLimit)
    assert refused.message == ("more than 67108864 bytes came without a commit; they are not shown")
    screen.apply(render(text("d")))
    assert screen.weigh_pending(1) is None
    screen.apply(commit())
    assert output(screen) == ["a"]


def test_commit_of_which_something_is_missing_shows_nothing() -> None:
    """A renderer never sees part of a commit."""
    screen = shown(render(text("a")))
    screen.spoil_pending()
    for message in (patch(Update("a", "props.content", "y")), commit(final=True)):
        assert screen.apply(message) is None
    assert output(screen) == []
    assert screen.turns["t1"].final
    shows_again = shown(render(text("b")), commit())
    assert output(shows_again) == ["b"]


def test_replace_sets_the_whole_surface() -> None:
    """Spec: S26."""
    screen = shown(
        render(text("a")), delta("x"), commit(), render(text("b"), replace=True), commit()
    )
    assert output(screen) == ["b"]
    side = shown(
        render(text("a"), surface="side"),
        commit(),
        render(text("b"), surface="side", turn="t2", replace=True),
        commit(),
    )
    assert [part.id for part in side.output("t9", "side")] == ["b"]


def test_surface_that_there_is_not_shows_nothing() -> None:
    assert Screen().output("t1", "nowhere") == []


def test_commit_without_a_turn_changes_components_alone() -> None:
    screen = shown(render(text("a")), commit(), patch(Remove("a"), turn=None), commit(None))
    assert output(screen) == []
    assert list(screen.turns) == ["t1"]


def test_final_commit_ends_the_output() -> None:
    screen = shown(commit(seq=3), commit(final=True, usage={"tokens": 1}, seq=7), commit(seq=9))
    turn = screen.turns["t1"]
    assert (turn.final, turn.usage, turn.seq) == (True, {"tokens": 1}, 7)


def test_places_come_from_the_messages_or_from_the_log() -> None:
    """Not every message of a fact carries its place; the agent side knows it."""
    screen = Screen()
    screen.apply(TurnMessage(session_id="s", turn_id="t1", status="queued", position=1), 5)
    screen.apply(delta("x", 6), 99)
    screen.apply(render(text("a")), 7)
    screen.apply(commit(), 7)
    assert screen.turns["t1"].seq == 5
    assert screen.surfaces["main"].nodes["t1/1"].seq == 6
    assert screen.surfaces["main"].nodes["a"].born == 7


# -- the conversation ------------------------------------------------------------------------------


def test_tools_start_and_end() -> None:
    screen = shown(
        ToolStart(session_id="s", seq=2, turn_id="t1", payload=ToolStartPayload("q", "{}", "c1")),
        ToolStart(session_id="s", seq=3, turn_id="t1", payload=ToolStartPayload("q", "[]", "c2")),
        ToolEnd(
            session_id="s",
            seq=4,
            turn_id="t1",
            payload=ToolEndPayload("q", ok=False, call_id="c2", error="no"),
        ),
    )
    first, second = screen.turns["t1"].tools
    assert (first.ok, first.seq, first.ended) == (None, 2, 0)
    assert (second.ok, second.error, second.seq, second.ended) == (False, "no", 3, 4)


def test_tool_of_a_peer_without_call_ids_is_found_by_its_name() -> None:
    screen = shown(
        ToolStart(session_id="s", turn_id="t1", payload=ToolStartPayload("p", "{}")),
        ToolStart(session_id="s", turn_id="t1", payload=ToolStartPayload("q", "{}")),
        ToolEnd(session_id="s", turn_id="t1", payload=ToolEndPayload("q", ok=True)),
        ToolEnd(session_id="s", turn_id="t1", payload=ToolEndPayload("nobody", ok=True)),
    )
    assert [run.ok for run in screen.turns["t1"].tools] == [None, True]


def test_inputs_statuses_and_errors_stand_in_their_turn() -> None:
    said = InputEcho(session_id="s", turn_id="t1", input_type="text", data={"text": "hi"})
    failed = ErrorMessage(payload=ErrorPayload("no", 18), turn_id="t1", seq=4)
    queued = TurnMessage(session_id="s", turn_id="t1", status="queued", position=2)
    running = TurnMessage(session_id="s", turn_id="t1", status="running")
    turn = shown(said, queued, failed).turns["t1"]
    assert (turn.inputs, turn.status, turn.position) == ([said], "queued", 2)
    assert turn.errors == [failed.payload]
    assert [(mark.kind, mark.seq) for mark in turn.marks] == [("input", 0), ("error", 4)]
    after = shown(queued, running).turns["t1"]
    assert (after.status, after.position) == ("running", None)


def test_of_errors_without_a_turn_the_newest_hundred_are_kept() -> None:
    screen = shown(*(ErrorMessage(payload=ErrorPayload(str(n), 19)) for n in range(105)))
    assert [error.error for error in screen.errors] == [str(n) for n in range(5, 105)]
    assert screen.turns == {}


def test_message_that_shows_nothing_is_passed_over() -> None:
    screen = shown(AgentHello(capabilities=AgentCapabilities([])))
    assert screen.canonical() == {"turns": {}, "surfaces": {}}


def test_canonical_form_holds_all_that_shows() -> None:
    screen = shown(
        InputEcho(session_id="s", turn_id="t1", input_type="text", data={"text": "hi"}),
        TurnMessage(session_id="s", turn_id="t1", status="running"),
        ToolStart(session_id="s", turn_id="t1", payload=ToolStartPayload("q", "{}", "c")),
        delta("hm", kind="thinking"),
        delta("one "),
        render(text("a", "A")),
        commit(),
        ErrorMessage(payload=ErrorPayload("no", 18), turn_id="t1"),
        render(text("s"), surface="side"),
        render(text("gone"), surface="empty"),
        commit(),
        patch(Remove("gone"), surface="empty"),
        commit(final=True),
    )
    assert screen.canonical() == {
        "turns": {
            "t1": {
                "status": "running",
                "inputs": [["text", {"text": "hi"}]],
                "tools": [["q", "{}", None, None]],
                "thinking": "hm",
                "errors": [[18, "no"]],
                "final": True,
                "output": ["one ", {"id": "a", "type": "text", "props": {"content": "A"}}],
                "story": ["input 0", "tool 0", "thinking 0", "one ", "component 1", "error 0"],
            }
        },
        "surfaces": {"side": [{"id": "s", "type": "text", "props": {"content": "x"}}]},
    }


def test_an_input_that_is_edited_takes_the_place_of_what_began_the_turn() -> None:
    def echo(text: str, edited: bool = False) -> InputEcho:
        return InputEcho(
            session_id="s", turn_id="t1", input_type="text", data={"text": text}, edited=edited
        )

    screen = shown(echo("a", edited=True), echo("b"), echo("c", edited=True))
    assert [one.data["text"] for one in screen.turns["t1"].inputs] == ["c", "b"]


def test_permission_that_a_turn_waits_for_is_kept_by_its_component() -> None:
    asked = Permission("c1", "rm")
    screen = shown(TurnMessage(session_id="s", turn_id="t1", status="waiting", permission=asked))
    assert screen.turns["t1"].permissions == {"c1": asked}


def test_surface_main_is_neither_described_nor_closed() -> None:
    """It is always there, whatever an agent side says of it."""
    screen = shown(render(text("a")), commit())
    before = screen.canonical()
    for closed in (None, "agent"):
        info = SurfaceInfo(title="Other", role="popup")
        screen.apply(SurfaceMessage(session_id="s", surface="main", payload=info, closed=closed))
    assert screen.canonical() == before
