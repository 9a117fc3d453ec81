"""What the log says to a group of renderers, as they got it when it was new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from arp.ledger.fact import Fact, decode
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import agent_decoder
from arp.protocol.components import Component
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import AgentMessage, Render, RendererCapabilities
from arp.protocol.patch import Append, Insert, PatchOp, Update
from arp.session.recording.recorded import RecordedFact
from arp.session.session import Session
from arp.session.turn_end import end_turn
from arp.session.turn_queue import edit_queued
from arp.surface.change import PatchChange, RenderChange
from arp.view.frames import FrameGroup
from arp.view.profile import Profile, profile_of
from arp.view.replay import replayed
from tests.session.conversation import AT, FULL, TEXT, begun, facts, new, text, user, watched

FEW_ROWS = profile_of(
    RendererCapabilities(dict(VERSIONS), ["patch-append"], RendererLimits(max_table_rows=2))
)
NO_APPEND = profile_of(RendererCapabilities(dict(VERSIONS)))
SMALL = msgspec.structs.replace(FULL, limits=RendererLimits(max_message_bytes=1_000))


def frames_of(found: Iterable[Fact], group: FrameGroup) -> list[bytes] | None:
    made = replayed(found, group)
    return None if made is None else made.frames


def decoded(frames: list[bytes] | None) -> list[AgentMessage]:
    assert frames is not None
    return [message for frame in frames for message in agent_decoder("json").decode(frame)]


def shown(session: Session, *ops: PatchOp) -> list[Fact]:
    """Two components, and how one of them was patched."""
    code = Component("k", "code-block", {"code": "x=1"})
    session.commit("t1", "main", [RenderChange([text("a"), code])])
    if ops:
        facts(session)
        session.commit("t1", "main", [PatchChange(list(ops))])
    return facts(session)


def test_facts_are_the_frames_that_were_sent() -> None:
    session = begun()
    view = watched(session, FULL)
    session.commit("t1", "main", [RenderChange([text("a")])])
    session.commit("t1", "main", [PatchChange([Update("a", "props.content", "y")])])
    group = FrameGroup(FULL, "json")
    sent: list[bytes] = []
    batch = session.drain(AT)
    for one in batch.recorded:
        assert isinstance(one, RecordedFact)
        sent += view.frames(one, group) or []
    assert decoded(frames_of(map(decode, batch.facts), group)) == decoded(sent)


def test_commits_are_told_by_their_places() -> None:
    """So that no more go to a renderer than it may have unacknowledged; text is no commit."""
    session = begun()
    session.say("t1", "said")
    session.commit("t1", "main", [RenderChange([text("a"), text("b")])])
    session.commit("t1", "main", [PatchChange([Update("a", "props.content", "y")])])
    made = replayed(facts(session), FrameGroup(FULL, "json"))
    assert made is not None
    assert made.commits == [session.sequence - 1, session.sequence]
    assert len(made.frames) > 4


def test_frames_hold_arrays_where_the_renderer_takes_them() -> None:
    (frame,) = frames_of(shown(begun()), FrameGroup(FULL, "json", batch=True)) or []
    assert len(msgspec.json.decode(frame)) == 2


def test_component_is_degraded_as_it_was() -> None:
    render, _ = decoded(frames_of(shown(begun()), FrameGroup(TEXT, "json")))
    assert isinstance(render, Render)
    assert [one.type for one in render.components] == ["text", "text"]


@pytest.mark.parametrize(
    "op", [Update("a", "props.content", "y"), Append("a", "props.content", "y")]
)
def test_patch_passes_to_who_shows_everything(op: PatchOp) -> None:
    patch, _ = decoded(frames_of(shown(begun(), op), FrameGroup(FULL, "json")))
    assert getattr(patch, "ops", None) == [op]


@pytest.mark.parametrize(
    ("profile", "op"),
    [
        (TEXT, Update("a", "props.content", "y")),
        (FEW_ROWS, Update("a", "props.content", "y")),
        (SMALL, Update("a", "props.content", "y")),
        (NO_APPEND, Append("a", "props.content", "y")),
        (FULL, Insert(Component("x", "x-acme-dial", {}, fallback=text("f")))),
    ],
)
def test_patch_that_needs_the_screen_of_its_time_needs_a_snapshot(
    profile: Profile, op: PatchOp
) -> None:
    assert frames_of(shown(begun(), op), FrameGroup(profile, "json")) is None


def test_input_that_was_edited_needs_a_snapshot_for_who_knows_no_branches() -> None:
    session = begun()
    user(session, "next")
    facts(session)
    told: dict[str, Any] = {"input_type": "text", "data": {"text": "other"}}
    edit_queued(session, "t2", told)
    assert frames_of(facts(session), FrameGroup(FULL, "json")) is None


def test_id_that_was_used_again_needs_a_snapshot() -> None:
    session = new()
    for number in range(1, 60):
        user(session, "hi")
        session.commit(f"t{number}", "main", [RenderChange([text(f"c{number}")])])
        end_turn(session, f"t{number}", "completed")
    facts(session)
    user(session, "again")
    session.commit("t60", "main", [RenderChange([text("c1")])])
    assert frames_of(facts(session), FrameGroup(FULL, "json")) is None


def test_text_in_several_deltas_does_not_begin_a_replay() -> None:
    """The renderer may have some of them: the cursor stands on the last."""
    session = begun()
    session.say("t1", "x" * 3_000)
    said = facts(session)
    group = FrameGroup(SMALL, "json")
    assert frames_of(said, group) is None
    before = shown(session)
    assert len(frames_of([*before, *said], group) or []) > 4
