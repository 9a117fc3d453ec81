"""All that shows, or all that changed since a place, for one profile (protocol.md 2.3 and 2.4).

That a screen made so equals one that never left is proven by random programs in `tests/session`;
here is what is told, message by message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import encode_json
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import ErrorPayload
from arp.protocol.limits import RendererLimits
from arp.protocol.mark import OutputAnchor
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Permission,
    Render,
    RendererCapabilities,
    SessionReady,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import PatchOp, Remove, Reorder, Replace, Update
from arp.session.recording.recorded import Cursor, SessionName
from arp.view.profile import DRAFT, Profile, profile_of
from arp.view.snapshot import LONG_PART, catch_up, snapshot, snapshot_turns, version_of


def profile(*components: str, features: Sequence[str] = ("thinking",)) -> Profile:
    return profile_of(RendererCapabilities(list(components), list(features)))


FULL = profile(*VERSIONS)
TEXT = profile("text", features=())
NAME = SessionName("s", "e", 20)


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def group(component_id: str, *children: str) -> Component:
    inside = [{"id": c, "type": "text", "props": {"content": c}} for c in children]
    return Component(component_id, "group", {"children": inside})


def said(words: str, turn: str = "t1", **more: Any) -> Delta:
    return Delta(session_id="s", turn_id=turn, payload=DeltaPayload(words, **more))


def show(*components: Component, turn: str = "t1", **more: Any) -> Render:
    return Render(session_id="s", turn_id=turn, components=list(components), **more)


def patch(*ops: PatchOp, turn: str = "t1", **more: Any) -> Patch:
    return Patch(session_id="s", turn_id=turn, ops=list(ops), **more)


def commit(turn: str | None = "t1", **more: Any) -> Commit:
    return Commit(session_id="s", turn_id=turn, **more)


def tool(call: str, turn: str = "t1", behind: OutputAnchor | None = None) -> ToolStart:
    payload = ToolStartPayload("q", "{}", call)
    return ToolStart(session_id="s", turn_id=turn, payload=payload, behind=behind)


def done(call: str, turn: str = "t1") -> ToolEnd:
    return ToolEnd(session_id="s", turn_id=turn, payload=ToolEndPayload("q", True, call))


def status(word: Any, turn: str = "t1", position: int | None = None) -> TurnMessage:
    return TurnMessage(session_id="s", turn_id=turn, status=word, position=position)


def echo(words: str, turn: str = "t1", behind: OutputAnchor | None = None) -> InputEcho:
    return InputEcho(
        session_id="s",
        turn_id=turn,
        input_type="text",
        data={"text": words},
        id="i",
        behind=behind,
    )


def failed(turn: str = "t1", behind: OutputAnchor | None = None) -> ErrorMessage:
    payload = ErrorPayload("no", 18)
    return ErrorMessage(payload=payload, session_id="s", turn_id=turn, behind=behind)


def screen(*messages: AgentMessage | tuple[int, AgentMessage]) -> Screen:
    """A screen to which messages came; a number before one is its place, else 1."""
    out = Screen()
    for one in messages:
        seq, message = one if isinstance(one, tuple) else (1, one)
        if isinstance(message, InputEcho):
            message = msgspec.structs.replace(message, seq=seq)
        assert out.apply(message, seq) is None
    return out


READY = SessionReady(session_id="s", epoch="e", seq=20, resume="snapshot")

END = commit(None, seq=20)
"""The last `commit` of all, which carries the place."""


# -- snapshot --------------------------------------------------------------------------------------


def test_snapshot_of_nothing_is_a_place() -> None:
    assert snapshot(Screen(), NAME, FULL) == [READY, END]


def test_snapshot_holds_each_turn_in_compact_form() -> None:
    """protocol.md 2.3: each turn's `input`, its tools, one `render` of its output, a `commit`."""
    shown = screen(
        echo("hi"),
        status("queued", position=1),
        status("completed"),
        said("hm", kind="thinking"),
        tool("c1"),
        done("c1"),
        tool("c2"),
        said("one "),
        said("two"),
        show(text("a")),
        commit(final=True, usage={"tokens": 3}),
        failed(),
    )
    part = Component("t1/1", "text", {"content": "one two", "format": "markdown"})
    assert snapshot(shown, NAME, FULL) == [
        READY,
        echo("hi"),
        said("hm", kind="thinking"),
        tool("c1"),
        done("c1"),
        tool("c2"),
        failed(behind=OutputAnchor("a")),
        status("completed"),
        show(part, text("a")),
        commit(final=True, usage={"tokens": 3}),
        END,
    ]


def test_only_the_last_commit_of_a_snapshot_has_a_place() -> None:
    """So a renderer that loses the connection in the middle stands where it stood before.

    Spec: S19.
    """
    shown = screen((3, echo("hi")), (4, said("a")), (5, said("b", "t2")), (6, failed("t2")))
    *before, last = snapshot(shown, NAME, FULL)[1:]
    assert [getattr(message, "seq", None) for message in before] == [None] * len(before)
    assert isinstance(last, Commit)
    assert last.seq == 20


def test_turn_that_has_shown_nothing_has_no_render() -> None:
    assert snapshot(screen(status("running")), NAME, FULL) == [
        READY,
        status("running"),
        commit(),
        END,
    ]


def test_turn_of_which_no_status_is_known_tells_none() -> None:
    told = snapshot(screen(said("a")), NAME, FULL)
    assert not any(isinstance(message, TurnMessage) for message in told)


def test_snapshot_holds_other_surfaces_whole() -> None:
    """Those with nothing on them are left out."""
    shown = screen(
        show(text("a"), text("b"), surface="side", turn=""),
        show(text("c"), surface="empty", turn=""),
        commit(None),
        patch(Remove("c"), surface="empty", turn=""),
        commit(None),
    )
    side = Render(session_id="s", surface="side", components=[text("a"), text("b")], replace=True)
    assert snapshot(shown, NAME, FULL) == [READY, side, END]


def test_snapshot_holds_every_turn_that_the_screen_keeps() -> None:
    """Which those are is the session's to say; older turns are paged over HTTP."""
    shown = screen(*(said("x", f"t{n}") for n in range(1, 70)))
    turns = [m.turn_id for m in snapshot(shown, NAME, FULL) if isinstance(m, Render)]
    assert turns == [f"t{n}" for n in range(1, 70)]


def test_snapshot_tells_a_profile_what_it_shows() -> None:
    """Thinking goes only to renderers with the feature; components are degraded."""
    shown = screen(said("hm", kind="thinking"), show(group("g", "a", "b")), commit())
    told = snapshot(shown, NAME, TEXT)
    assert not any(isinstance(message, Delta) for message in told)
    (render,) = [message for message in told if isinstance(message, Render)]
    assert [shown.id for shown in render.components] == ["a", "b"]


def test_place_behind_a_layout_is_named_by_what_stands_there_for_it() -> None:
    """A renderer without `group` shows the children; the last of them is what it knows."""
    shown = screen(echo("hi"), show(group("g", "a", "b")), commit(), tool("c"))
    places = [
        message.behind
        for wanted in (FULL, TEXT)
        for message in snapshot(shown, NAME, wanted)
        if isinstance(message, ToolStart)
    ]
    assert places == [OutputAnchor("g"), OutputAnchor("b")]


# -- catching up -----------------------------------------------------------------------------------


def test_nothing_new_is_a_place_alone() -> None:
    shown = screen(said("a"), show(text("b")), commit(final=True), echo("hi"), tool("c"))
    assert catch_up(shown, NAME, FULL, Cursor(5)) == [END]


def test_catch_up_tells_what_came_after_the_place() -> None:
    shown = screen(
        echo("hi"),
        tool("old"),
        tool("c1"),
        failed(),
        said("hm", kind="thinking"),
        show(text("a"), text("b")),
        commit(),
        (7, done("c1")),
        (8, tool("c2")),
        (9, patch(Update("b", "props.content", "y"))),
        (9, commit()),
        (10, show(text("c"))),
        (10, commit()),
        (11, failed()),
        (12, echo("yes")),
        (13, status("running")),
    )
    assert catch_up(shown, NAME, FULL, Cursor(5)) == [
        done("c1"),
        tool("c2", behind=OutputAnchor("b")),
        failed(behind=OutputAnchor("c")),
        echo("yes", behind=OutputAnchor("c")),
        status("running"),
        show(text("b", "y"), text("c")),
        END,
    ]


def test_what_came_at_the_place_itself_is_not_told_again() -> None:
    came: list[Any] = [
        echo("hi"),
        tool("c1"),
        done("c1"),
        failed(),
        said("hm", kind="thinking"),
        show(text("a")),
        commit(),
    ]
    at_the_place = [(5, message) for message in came]
    ended = screen(*at_the_place, (5, commit(final=True)))
    assert catch_up(ended, NAME, FULL, Cursor(5)) == [END]
    more = screen(*at_the_place, (7, status("waiting")))
    assert catch_up(more, NAME, FULL, Cursor(5)) == [status("waiting"), END]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (FULL, [echo("hi"), said("hm", kind="thinking")]),
        (TEXT, [echo("hi")]),
        (DRAFT, []),
    ],
)
def test_catch_up_tells_a_profile_what_it_takes(wanted: Profile, told: list[Any]) -> None:
    """Who knows only the draft is not told inputs."""
    shown = screen((6, echo("hi")), (7, said("hm", kind="thinking")))
    assert catch_up(shown, NAME, wanted, Cursor(5)) == [*told, END]


def test_open_part_goes_on_where_it_was_left() -> None:
    shown = screen((3, said("one ")), (7, said("two")))
    place = Cursor(5, "t1/1", 4, "t1")
    assert catch_up(shown, NAME, FULL, place) == [said("two"), END]


def test_open_part_that_did_not_grow_is_not_told() -> None:
    part = Cursor(5, "t1/1", 4, "t1")
    still = screen((3, said("one ")), (7, said("x", "t2")))
    told = catch_up(still, NAME, FULL, part) or []
    assert [message.turn_id for message in told if isinstance(message, Render)] == ["t2"]
    touched = screen((7, said("one ")))
    assert catch_up(touched, NAME, FULL, part) == [END]


def test_new_part_is_told_as_what_it_is() -> None:
    shown = screen((3, said("a")), (6, show(text("c"))), (6, commit()), (7, said("b")))
    part = Component("t1/2", "text", {"content": "b", "format": "markdown"})
    told = catch_up(shown, NAME, FULL, Cursor(5, "t1/1", 1, "t1"))
    assert told == [show(text("c"), part), END]


def test_thinking_that_did_not_go_on_is_not_told() -> None:
    shown = screen((3, said("one", kind="thinking")), (4, failed()), (7, status("running")))
    assert catch_up(shown, NAME, FULL, Cursor(5)) == [status("running"), END]


def test_thinking_goes_on_where_it_was_left() -> None:
    """Of another turn than the one that ran there, all of it is told."""
    shown = screen((3, said("one ", kind="thinking")), (7, said("two", kind="thinking")))
    place = Cursor(5, None, 0, "t1", 4)
    assert catch_up(shown, NAME, FULL, place) == [said("two", kind="thinking"), END]
    other = Cursor(5, None, 0, "t0", 4)
    assert catch_up(shown, NAME, FULL, other) == [said("one two", kind="thinking"), END]


def test_all_components_take_effect_at_one_commit() -> None:
    """Of turns that ended, each has its final commit; the last of them carries the place."""
    shown = screen(
        (6, show(text("a"))),
        (7, commit(final=True, usage={"n": 1})),
        (8, said("b", "t2")),
        (9, commit("t2", final=True, usage={"n": 2})),
    )
    part = Component("t2/1", "text", {"content": "b", "format": "markdown"})
    assert catch_up(shown, NAME, FULL, Cursor(5)) == [
        show(text("a")),
        show(part, turn="t2"),
        commit(final=True, usage={"n": 1}),
        commit("t2", final=True, usage={"n": 2}, seq=20),
    ]


def test_what_went_away_is_removed() -> None:
    """What came and went meanwhile, or went with a root, is not."""
    shown = screen(
        show(text("a"), group("g", "in")),
        commit(),
        (6, show(text("between"))),
        (6, commit()),
        (7, patch(Remove("a"), Remove("between"), Remove("g"))),
        (7, commit()),
    )
    removal = Patch(session_id="s", ops=[Remove("a"), Remove("g")])
    assert catch_up(shown, NAME, FULL, Cursor(5)) == [removal, END]
    assert catch_up(shown, NAME, FULL, Cursor(7)) == [END]


def surfaces(*later: AgentMessage) -> Screen:
    begin = show(text("a"), group("g", "in"), surface="side", turn="")
    return screen(begin, commit(None), *((7, message) for message in later))


@pytest.mark.parametrize(
    ("ops", "left"),
    [
        ([Update("in", "props.content", "in!")], ["a", "g"]),
        ([Remove("a")], ["g"]),
        ([Reorder("g", None)], ["g", "a"]),
        ([Remove("a"), Remove("g")], []),
    ],
)
def test_other_surface_that_changed_is_told_whole(ops: list[PatchOp], left: list[str]) -> None:
    shown = surfaces(patch(*ops, surface="side", turn=""), commit(None))
    told = catch_up(shown, NAME, FULL, Cursor(5))
    assert told is not None
    render, end = told
    assert isinstance(render, Render)
    assert (render.surface, render.replace, end) == ("side", True, END)
    assert [component.id for component in render.components] == left
    assert catch_up(shown, NAME, FULL, Cursor(7)) == [END]


# -- what a catch-up cannot tell -------------------------------------------------------------------


def main(*ops: PatchOp) -> Screen:
    begin = show(text("a"), text("b"), group("g", "in"))
    return screen(begin, commit(), (7, patch(*ops)), (7, commit()))


@pytest.mark.parametrize(
    ("ops", "wanted"),
    [
        ([Reorder("b", None)], FULL),
        ([Replace("a", text("n"))], FULL),
        ([Replace("g", text("g"))], TEXT),
        ([Remove("g")], TEXT),
        ([Update("in", "props.content", "y")], TEXT),
    ],
)
def test_new_order_needs_a_snapshot(ops: list[PatchOp], wanted: Profile) -> None:
    """So does a layout that changed, for a renderer that shows its parts alone."""
    assert catch_up(main(*ops), NAME, wanted, Cursor(5)) is None
    assert catch_up(main(*ops), NAME, wanted, Cursor(7)) == [END]


@pytest.mark.parametrize(
    "ops", [[Replace("g", text("g"))], [Remove("g")], [Update("in", "props.content", "y")]]
)
def test_layout_that_changed_is_told_to_who_knows_a_group(ops: list[PatchOp]) -> None:
    assert catch_up(main(*ops), NAME, FULL, Cursor(5)) is not None


def test_layout_that_came_meanwhile_is_told_in_parts() -> None:
    shown = screen(said("a"), (7, show(group("g", "c", "d"))), (7, commit()))
    told = catch_up(shown, NAME, TEXT, Cursor(5))
    assert told == [show(text("c", "c"), text("d", "d")), END]


def test_who_knows_only_the_draft_gets_what_can_be_told() -> None:
    """It takes no snapshot."""
    told = catch_up(
        main(Reorder("b", None), Update("a", "props.content", "y")), NAME, DRAFT, Cursor(5)
    )
    assert told == [show(text("b"), text("a", "y")), END]


# -- renderers that take small messages ------------------------------------------------------------

SMALL = profile_of(RendererCapabilities(["text"], [], RendererLimits(max_message_bytes=1024)))
SPOKEN = "said " * 200


def test_large_text_part_is_begun_and_told_by_deltas_behind_its_turn() -> None:
    """protocol.md 2.2: what was said goes into messages of any size, so none of it is cut."""
    shown = screen(said(SPOKEN), commit(final=True))
    told = snapshot(shown, NAME, SMALL)
    part = Component("t1/1", "text", {"content": "", "format": "markdown"})
    assert told[1:] == [
        show(part),
        commit(final=True),
        said(SPOKEN, target="t1/1"),
        commit(None, seq=20),
    ]


def test_text_part_that_is_very_long_goes_by_deltas_to_everybody() -> None:
    """So that a snapshot can be sent in small pieces."""
    for length, is_begun in ((LONG_PART, False), (LONG_PART + 1, True)):
        told = snapshot(screen(said("x" * length), commit(final=True)), NAME, FULL)
        deltas = [one.payload.delta for one in told if isinstance(one, Delta)]
        assert deltas == (["x" * length] if is_begun else [])


def test_version_of_turns_is_the_same_only_while_a_snapshot_tells_them_alike() -> None:
    """Each of these changes what a snapshot says, so it changes the version."""
    begun: list[tuple[int, AgentMessage]] = [
        (1, said("a")),
        (2, show(text("x"), group("g", "in"))),
        (2, commit()),
        (3, tool("c")),
    ]
    shown = screen(*begun)
    turns = list(shown.turns.values())
    version, before = version_of(shown, turns), encode_json(snapshot(shown, NAME, FULL))
    shown.apply(echo("elsewhere", "t2"), 4)
    assert version_of(shown, turns) == version
    for number, message in enumerate(
        [
            said("b"),
            said("hm", kind="thinking"),
            done("c"),
            patch(Update("in", "props.content", "y")),
            patch(Remove("x")),
            patch(Replace("g", text("g"))),
            commit(final=True),
        ]
    ):
        for one in [message] if not isinstance(message, Patch) else [message, commit()]:
            shown.apply(one, 5 + number)
        assert encode_json(snapshot(shown, NAME, FULL)) != before
        assert version_of(shown, turns) != version
        version, before = version_of(shown, turns), encode_json(snapshot(shown, NAME, FULL))


def test_turns_that_are_over_stand_before_the_first_that_is_not() -> None:
    shown = screen(
        *(said("x", turn) for turn in ("t1", "t2", "t3")),
        commit("t1", final=True),
        commit("t3", final=True),
    )
    settled, others = snapshot_turns(shown)
    assert [[turn.id for turn in some] for some in (settled, others)] == [["t1"], ["t2", "t3"]]


def test_large_text_part_that_came_meanwhile_follows_its_commit_by_deltas() -> None:
    """As in a snapshot: the part has to be there before its text."""
    shown = screen((5, said(SPOKEN)), (6, show(text("a"))), (7, commit(final=True)))
    part = Component("t1/1", "text", {"content": "", "format": "markdown"})
    assert catch_up(shown, NAME, SMALL, Cursor(4)) == [
        show(part, text("a")),
        commit(None),
        said(SPOKEN, target="t1/1"),
        commit(final=True, seq=20),
    ]


def test_very_long_text_part_goes_whole_to_who_knows_only_the_draft() -> None:
    """It knows no part by its id."""
    shown = screen((5, said("x" * (LONG_PART + 1))))
    render, end = catch_up(shown, NAME, DRAFT, Cursor(4)) or []
    assert isinstance(render, Render)
    assert len(render.components[0].props["content"]) == LONG_PART + 1
    assert end == END


def test_input_that_was_edited_since_needs_a_snapshot() -> None:
    """A renderer may show what stood there before; one that came later does not."""
    edited = msgspec.structs.replace(echo("new"), edited=True, seq=5)
    made = screen(echo("old"), (5, edited), (6, status("queued")))
    assert catch_up(made, NAME, FULL, Cursor(4)) is None
    assert catch_up(made, NAME, FULL, Cursor(5)) is not None
    assert catch_up(made, NAME, DRAFT, Cursor(4)) is not None


def test_snapshot_says_how_far_a_tool_is_and_what_it_asks_permission_for() -> None:
    progress = ToolProgressPayload("c", "half", 1, 2)
    permission = Permission("q", "shell", "c", "main", ["once"])
    waiting = TurnMessage(session_id="s", turn_id="t1", status="waiting", permission=permission)
    made = screen(tool("c"), ToolProgress(session_id="s", turn_id="t1", payload=progress), waiting)
    told = snapshot(made, NAME, FULL)
    assert [one.payload for one in told if isinstance(one, ToolProgress)] == [progress]
    asked, now = (one for one in told if isinstance(one, TurnMessage))
    assert (asked.status, asked.permission) == ("waiting", permission)
    assert (now.status, now.permission) == ("waiting", None)
