"""One fact on its way: what the ledger keeps of it, and what renderers are told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.ledger.fact import decode
from arp.ledger.fact_writer import FactWriter
from arp.protocol.codec import Encoding, agent_decoder
from arp.protocol.component import Component
from arp.protocol.delta_writer import DeltaWriter
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    InputEcho,
    Render,
    TurnMessage,
)
from arp.session.recorded import SAYING, THINKING, RecordedFact, Text
from arp.view.frames import FrameGroup, addressed
from arp.view.profile import DRAFT, Profile
from tests.session.conversation import AT, FULL, TEXT, text

WRITER = FactWriter("arp", "s", "main")
EVERYBODY = FrameGroup(FULL, "json")
COMMIT = Commit(session_id="s", seq=4, turn_id="t1")


def emission(*messages: AgentMessage) -> RecordedFact:
    return RecordedFact(4, "run.status", {"n": 1}, {"status": "idle"}, list(messages))


def told(frames: list[bytes] | None, encoding: Encoding = "json") -> list[AgentMessage]:
    assert frames is not None
    return [message for frame in frames for message in agent_decoder(encoding).decode(frame)]


def spoken(*chunks: str, kind: str = SAYING, part: str | None = None) -> Text:
    out = Text(4, kind, "t1", DeltaWriter("s"))
    out.chunks += chunks
    out.close("".join(chunks))
    out.part = part
    return out


def delta(words: str, **more: Any) -> Delta:
    return Delta(session_id="s", seq=4, turn_id="t1", payload=DeltaPayload(words, **more))


# -- facts of which there are few ------------------------------------------------------------------


def test_emission_becomes_the_fact_with_its_place_and_ids() -> None:
    fact = decode(emission().fact(WRITER, AT))
    assert (fact.sequence, fact.type, fact.payload) == (4, "run.status", {"n": 1})
    assert (fact.status, fact.timestamp) == ("idle", AT)


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
def test_frames_are_the_messages_in_order_in_every_encoding(encoding: Encoding) -> None:
    render = Render(session_id="s", seq=4, turn_id="t1", components=[text("a")])
    frames = emission(render, COMMIT).frames(FrameGroup(FULL, encoding))
    assert told(frames, encoding) == [render, COMMIT]


def test_profile_that_takes_other_messages_gets_those() -> None:
    """`None` among them: the renderer needs a snapshot instead."""
    one = emission(COMMIT)
    other = TurnMessage(session_id="s", turn_id="t1", status="running")
    one.translated = {TEXT: [other, COMMIT], DRAFT: None}
    assert told(one.frames(FrameGroup(TEXT, "json"))) == [other, COMMIT]
    assert one.frames(FrameGroup(DRAFT, "json")) is None
    assert told(one.frames(EVERYBODY)) == [COMMIT]


# -- text ------------------------------------------------------------------------------------------


def test_neighbouring_text_is_one_fact_and_one_frame() -> None:
    one = spoken("a ", '"b"')
    fact = decode(one.fact(WRITER, AT))
    assert (fact.type, fact.sequence, fact.payload) == ("model.delta", 4, {"text": 'a "b"'})
    assert one.messages == [delta('a "b"')]
    assert told(one.frames(EVERYBODY)) == one.messages


def test_half_a_surrogate_pair_stops_no_log() -> None:
    """Models stream such now and then; what stands for it is written and shown alike."""
    one = spoken("a", "\ud800", "b")
    assert one.text == "a?b"
    assert decode(one.fact(WRITER, AT)).payload == {"text": "a?b"}
    assert told(one.frames(EVERYBODY)) == [delta("a?b")]


def test_halves_of_a_pair_in_two_chunks_are_no_text_either() -> None:
    assert spoken("\ud83d", "\ude00").text == "??"


def test_thinking_goes_only_to_who_asked_for_it() -> None:
    """protocol.md 2.1."""
    one = spoken("hm", kind=THINKING)
    assert decode(one.fact(WRITER, AT)).type == "reasoning.delta"
    assert one.messages == [delta("hm", kind="thinking")]
    assert told(one.frames(EVERYBODY)) == [delta("hm", kind="thinking")]
    assert one.frames(FrameGroup(TEXT, "json")) == []


@pytest.mark.parametrize(("known", "target"), [("t1/1", "t1/1"), ("t1/2", None), (None, None)])
def test_part_that_came_by_a_snapshot_is_named(known: str | None, target: str | None) -> None:
    """There it is a component like any other, not the turn's open part."""
    one = spoken("a", part="t1/1")
    assert told(one.frames(FrameGroup(FULL, "json", known))) == [delta("a", target=target)]


@pytest.mark.parametrize("target", ["t1/1", None])
def test_text_beyond_the_size_that_a_group_takes_comes_in_pieces(target: str | None) -> None:
    words = "a".join("0123456789" for _ in range(200))
    profile = msgspec.structs.replace(FULL, limits=Limits(max_message_bytes=1_024))
    frames = spoken(words, part="t1/1").frames(FrameGroup(profile, "json", target))
    assert max(map(len, frames)) <= 1_024
    pieces = told(frames)
    assert [one.payload.target for one in pieces if isinstance(one, Delta)] == [target] * len(
        frames
    )
    assert "".join(one.payload.delta for one in pieces if isinstance(one, Delta)) == words


def test_text_is_recoded_for_other_encodings() -> None:
    frames = spoken("ä").frames(FrameGroup(FULL, "msgpack"))
    assert told(frames, "msgpack") == [delta("ä")]


# -- what a group takes -------------------------------------------------------------------------

ECHO = InputEcho(session_id="s", turn_id="t1", input_type="text", data={"text": "hi"})
THOUGHT = Delta(session_id="s", turn_id="t1", payload=DeltaPayload("hm", kind="thinking"))


@pytest.mark.parametrize(
    ("message", "profile", "gets"),
    [
        (THOUGHT, FULL, True),
        (THOUGHT, TEXT, False),
        (ECHO, TEXT, True),
        (ECHO, DRAFT, False),
        (COMMIT, DRAFT, True),
    ],
)
def test_message_goes_to_who_takes_it(message: Any, profile: Profile, gets: bool) -> None:
    """Who knows only the draft is not told inputs."""
    assert addressed(message, FrameGroup(profile, "json")) == ([message] if gets else [])


@pytest.mark.parametrize(
    ("part", "known", "target"),
    [("t1/1", "t1/1", "t1/1"), ("t1/1", "t1/2", None), (None, None, None), (None, "t1/1", None)],
)
def test_delta_names_the_part_that_the_group_knows_by_id(
    part: str | None, known: str | None, target: str | None
) -> None:
    (out,) = addressed(delta("a"), FrameGroup(FULL, "json", known), part)
    assert out == delta("a", target=target)


def test_render_for_the_draft_has_one_component_and_a_tool() -> None:
    """The draft's `render` has one; only the first of several replaces what was there."""
    whole = Render(session_id="s", seq=4, components=[text("a"), text("b")], replace=True)
    first, second = addressed(whole, FrameGroup(DRAFT, "json"))
    assert first == msgspec.structs.replace(
        whole, components=[text("a")], tool_name="", replace=True
    )
    assert second == msgspec.structs.replace(
        whole, components=[text("b")], tool_name="", replace=False
    )
    assert addressed(whole, EVERYBODY) == [whole]


def test_render_for_the_draft_keeps_its_tool() -> None:
    named = Render(session_id="s", components=[Component("a", "text", {})], tool_name="q")
    assert addressed(named, FrameGroup(DRAFT, "json")) == [named]


def test_render_of_nothing_is_told_to_the_draft_too() -> None:
    """It may empty a surface."""
    nothing = Render(session_id="s", components=[], replace=True)
    assert addressed(nothing, FrameGroup(DRAFT, "json")) == [nothing]
