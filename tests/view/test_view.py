"""What the renderers of one profile get of a session, commit by commit."""

from __future__ import annotations

import pytest

from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding, agent_decoder
from arp.protocol.components import Component
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    Patch,
    Render,
    RendererCapabilities,
    SessionReady,
)
from arp.protocol.patch import Append, Remove, Reorder, Update
from arp.protocol.tree import Tree
from arp.session.recording.recorded import Batch, RecordedFact
from arp.session.session import Session
from arp.session.turn_end import end_turn
from arp.session.turn_queue import edit_queued
from arp.surface.change import PatchChange, RenderChange
from arp.view.frames import FrameGroup
from arp.view.profile import DRAFT, profile_of
from arp.view.shown_roots import ShownRoot, ShownRoots
from arp.view.view import View
from tests.session.branched import Talk
from tests.session.conversation import AT, FULL, TEXT, begun, new, text, user, watched

SMALL = profile_of(
    RendererCapabilities(dict(VERSIONS), ["patch-append"], RendererLimits(max_message_bytes=1_000))
)


def newest(session: Session) -> RecordedFact:
    fact = session.drain(AT).recorded[-1]
    assert isinstance(fact, RecordedFact)
    return fact


def group(*children: str) -> Component:
    inside = [{"id": name, "type": "text", "props": {"content": name}} for name in children]
    return Component("g", "group", {"children": inside})


def decoded(frames: list[bytes] | None, encoding: Encoding = "json") -> list[AgentMessage]:
    assert frames is not None
    return [message for frame in frames for message in agent_decoder(encoding).decode(frame)]


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
def test_frames_are_the_messages_in_order_in_every_encoding(encoding: Encoding) -> None:
    session = begun()
    view = watched(session, FULL)
    session.commit("t1", "main", [RenderChange([text("a")])])
    fact = newest(session)
    assert view.messages(fact) is fact.messages
    assert decoded(view.frames(fact, FrameGroup(FULL, encoding)), encoding) == [
        Render(session_id="s", seq=fact.sequence, turn_id="t1", components=[text("a")]),
        Commit(session_id="s", seq=fact.sequence, turn_id="t1"),
    ]


def batch_of(session: Session) -> Batch:
    batch = session.drain(AT)
    assert isinstance(batch, Batch)
    return batch


@pytest.mark.parametrize(("is_joined", "count"), [(False, 4), (True, 1)])
def test_batch_is_its_texts_and_commits_in_order(is_joined: bool, count: int) -> None:
    """In one frame for renderers with the feature `batch` (protocol.md 2)."""
    session = begun()
    view = watched(session, FULL)
    session.say("t1", "before")
    session.commit("t1", "main", [RenderChange([text("a")])])
    session.say("t1", "after")
    batch = batch_of(session)
    frames = view.batch_frames(batch, FrameGroup(FULL, "json", batch=is_joined))
    assert frames is not None
    assert len(frames) == count
    first, render, commit, last = decoded(frames)
    assert (type(render), type(commit)) == (Render, Commit)
    told = [one.payload.delta for one in (first, last) if isinstance(one, Delta)]
    assert told == ["before", "after"]


def test_commit_is_translated_for_those_who_need_it() -> None:
    session = begun()
    full, lesser = watched(session, FULL), watched(session, TEXT)
    session.commit("t1", "main", [RenderChange([Component("k", "code-block", {"code": "x=1"})])])
    fact = newest(session)
    assert full.messages(fact) is fact.messages
    render, commit = lesser.messages(fact) or []
    assert isinstance(render, Render)
    assert [shown.type for shown in render.components] == ["text"]
    assert commit == Commit(session_id="s", seq=fact.sequence, turn_id="t1")


def test_translated_commit_is_not_changed_by_what_comes_after() -> None:
    session = begun()
    view = watched(session, DRAFT)
    table = Component("t", "table", {"headers": ["h"], "rows": [["1"]]})
    session.commit("t1", "main", [RenderChange([table])])
    session.drain(AT)
    session.commit("t1", "main", [PatchChange([Append("t", "props.rows", [["2"]])])])
    fact = newest(session)
    session.commit("t1", "main", [PatchChange([Append("t", "props.rows", [["3"]])])])
    told, _ = view.messages(fact) or []
    assert isinstance(told, Patch)
    assert told.ops == [Update("t", "props.rows", [["1"], ["2"]])]


def test_commit_that_cannot_be_told_is_a_snapshot_for_that_profile() -> None:
    session = begun()
    view = watched(session, TEXT)
    session.commit("t1", "main", [RenderChange([text("b"), group("a")])])
    end_turn(session, "t1", "completed")
    user(session, "again")
    session.commit("t2", "main", [PatchChange([Reorder("g", None)])])
    batch = batch_of(session)
    fact = batch.recorded[-1]
    assert isinstance(fact, RecordedFact)
    assert view.messages(fact) is None
    assert view.frames(fact, FrameGroup(TEXT, "json")) is None
    assert view.batch_frames(batch, FrameGroup(TEXT, "json")) is None


def test_messages_of_a_profile_are_on_their_fact_and_go_with_it() -> None:
    session = begun()
    view = watched(session, TEXT)
    code = Component("k", "code-block", {"code": "x=1"})
    session.commit("t1", "main", [RenderChange([code])])
    fact = newest(session)
    assert fact.translated is not None
    assert list(fact.translated) == [view]
    assert view.messages(fact) is fact.translated[view]
    session.commit("t1", "main", [RenderChange([text("b")])])
    assert newest(session).translated is None


# -- what stood there before -----------------------------------------------------------------------


def test_pieces_that_stood_before_the_view_came_are_removed() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([group("a", "b")])])
    view = watched(session, TEXT)
    session.commit("t1", "main", [PatchChange([Remove("g")])])
    patch, _ = view.messages(newest(session)) or []
    assert isinstance(patch, Patch)
    assert patch.ops == [Remove("a"), Remove("b")]


def test_pieces_that_a_commit_changed_are_known_to_the_next() -> None:
    session = begun()
    view = watched(session, TEXT)
    session.commit("t1", "side", [RenderChange([group("a", "b")])])
    session.commit("t1", "side", [PatchChange([Remove("a")])])
    session.drain(AT)
    session.commit("t1", "side", [PatchChange([Remove("g")])])
    patch, _ = view.messages(newest(session)) or []
    assert isinstance(patch, Patch)
    assert patch.ops == [Remove("b")]


def test_component_that_was_cut_is_rendered_again_when_it_fits() -> None:
    """An operation on what was cut would leave the rest of it cut."""
    session = begun()
    children = [
        {"id": "long", "type": "text", "props": {"content": "x" * 900}},
        {"id": "short", "type": "text", "props": {"content": "y"}},
    ]
    session.commit("t1", "main", [RenderChange([Component("g", "group", {"children": children})])])
    view = watched(session, SMALL)
    session.commit("t1", "main", [PatchChange([Remove("long")])])
    render, _ = view.messages(newest(session)) or []
    assert isinstance(render, Render)
    assert [shown.id for shown in render.components] == ["g"]
    session.commit("t1", "main", [PatchChange([Update("short", "props.content", "z")])])
    fact = newest(session)
    assert view.messages(fact) is fact.messages


def test_what_is_known_of_another_screen_is_forgotten() -> None:
    session, other = begun(), begun()
    session.commit("t1", "main", [RenderChange([group("a")])])
    other.commit("t1", "main", [RenderChange([group("b")])])
    view = View(TEXT, session.screen)
    other.watchers.append(view)
    view.show_on(other.screen)
    other.commit("t1", "main", [PatchChange([Remove("g")])])
    patch, _ = view.messages(newest(other)) or []
    assert isinstance(patch, Patch)
    assert patch.ops == [Remove("b")]


def test_what_left_the_memory_is_not_remembered_here_either() -> None:
    session = new()
    view = watched(session, TEXT)
    for number in range(1, 261):
        user(session, "hi")
        children = [{"id": f"a{number}", "type": "text", "props": {"content": "x"}}]
        shown = Component(f"g{number}", "group", {"children": children})
        session.commit(f"t{number}", "main", [RenderChange([shown])])
        end_turn(session, f"t{number}", "completed")
    nodes = len(session.screen.main.nodes)
    assert nodes < 110
    assert len(view._shown["main"]._roots) <= 2 * nodes


def test_id_that_left_and_came_back_is_another_component() -> None:
    """What stood under it before is gone from the screens too."""
    tree = Tree()
    tree.begin(1)
    tree.upsert(group("a"))
    tree.keep()
    shown = ShownRoots(TEXT, tree)
    assert shown.before("g", tree) == ShownRoot(1, ["a"], False)
    for name in ("g", "a"):
        del tree.nodes[name]
    tree.outputs.clear()
    assert shown.before("g", tree) is None
    tree.begin(2)
    tree.upsert(group("a"))
    tree.keep()
    assert shown.before("g", tree) is None


def test_input_that_was_edited_is_a_snapshot_for_who_knows_no_branches() -> None:
    """It replaces one that the renderer shows."""
    session = begun()
    full, draft = watched(session, FULL), watched(session, DRAFT)
    told = {"input_type": "text", "data": {"text": "other"}}
    user(session, "next")
    session.drain(AT)
    edit_queued(session, "t2", told)
    fact = newest(session)
    assert fact.is_edit
    assert full.messages(fact) is None
    assert draft.messages(fact) is fact.messages


# -- one that comes, or was behind -----------------------------------------------------------------

EVERYBODY = FrameGroup(FULL, "json")


def test_renderer_is_ready_where_nothing_has_to_be_shown() -> None:
    session = begun()
    view = watched(session, FULL)
    assert decoded(view.ready(session, EVERYBODY, "replay")) == [
        SessionReady(session_id="s", epoch="e", seq=session.sequence, resume="replay", workflow="")
    ]


def test_snapshot_shows_all_and_shares_the_turns_that_are_over() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([text("a")])])
    end_turn(session, "t1", "completed")
    user(session, "again")
    session.commit("t2", "main", [RenderChange([text("b")])])
    view = watched(session, FULL)
    frames, shared = view.snapshot(session, EVERYBODY)
    again, same = view.snapshot(session, EVERYBODY)
    assert frames == again
    assert same is shared
    messages = decoded(frames)
    assert isinstance(messages[0], SessionReady)
    assert messages[-1] == Commit(session_id="s", seq=session.sequence)
    shown = [message for message in messages if isinstance(message, Render)]
    assert [one.id for message in shown for one in message.components] == ["a", "b"]
    held = [message for message in decoded(list(shared)) if isinstance(message, Render)]
    assert [one.id for message in held for one in message.components] == ["a"]


def test_catch_up_shows_what_changed_since_a_cursor() -> None:
    session = begun()
    view = watched(session, FULL)
    session.commit("t1", "main", [RenderChange([text("a")])])
    cursor = session.cursor
    session.commit("t1", "main", [RenderChange([text("b")])])
    messages = decoded(view.catch_up(session, EVERYBODY, cursor))
    shown = [message for message in messages if isinstance(message, Render)]
    assert [one.id for message in shown for one in message.components] == ["b"]
    assert messages[-1] == Commit(session_id="s", seq=session.sequence)


def test_catch_up_that_cannot_tell_all_is_a_snapshot() -> None:
    session = begun()
    view = watched(session, FULL)
    session.commit("t1", "main", [RenderChange([text("a"), text("b")])])
    cursor = session.cursor
    session.commit("t1", "main", [PatchChange([Reorder("b", None)])])
    assert view.catch_up(session, EVERYBODY, cursor) is None


def test_renderer_that_was_on_another_branch_needs_a_snapshot() -> None:
    """One of the draft cannot take one, and gets what it can take."""
    talk = Talk()
    talk.say("a", "b")
    view, draft = watched(talk.session, FULL), watched(talk.session, DRAFT)
    behind = talk.session.cursor
    talk.edit("t2", "B")
    talk.answer()
    assert view.catch_up(talk.session, FrameGroup(FULL, "json"), behind) is None
    told = decoded(draft.catch_up(talk.session, FrameGroup(DRAFT, "json"), behind))
    (shown,) = [one for one in told if isinstance(one, Render)]
    assert (shown.turn_id, shown.components[0].props["content"]) == ("t3", "answer t3")
    now = decoded(view.catch_up(talk.session, FrameGroup(FULL, "json"), talk.session.cursor))
    assert [one for one in now if isinstance(one, Render | Delta)] == []
