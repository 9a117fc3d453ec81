"""What groups of renderers get: texts, messages, and several in one frame (feature `batch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cbor2
import msgspec
import pytest

from arp.protocol.codec import ENCODINGS, Encoding, agent_decoder, encode_json, recode
from arp.protocol.components import Component
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    InputEcho,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
)
from arp.session.recording.recorded import OUTPUT_TEXT, REASONING_TEXT, Text, recorded_text
from arp.view.frames import (
    MAX_FRAME_BYTES,
    PIECE_BYTES,
    FrameGroup,
    addressed,
    in_pieces,
    pack,
    text_frames,
)
from arp.view.profile import DRAFT, Profile
from tests.session.conversation import FULL, TEXT, text

EVERYBODY = FrameGroup(FULL, "json")
COMMIT = Commit(session_id="s", seq=4, turn_id="t1")

DECODE: dict[Encoding, Callable[[bytes], Any]] = {
    "json": msgspec.json.decode,
    "msgpack": msgspec.msgpack.decode,
    "cbor": cbor2.loads,
}


def frames(count: int, encoding: Encoding, text: str = "x") -> list[bytes]:
    return [recode(encode_json({"n": n, "t": text}), encoding) for n in range(count)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("count", [2, 15, 16, 23, 24, 63, 64])
def test_frames_become_one_array_up_to_sixty_four_messages(encoding: Encoding, count: int) -> None:
    """Each encoding changes the form of its array head on the way there."""
    packed = pack(frames(count, encoding), encoding)
    assert len(packed) == 1
    assert DECODE[encoding](packed[0]) == [{"n": n, "t": "x"} for n in range(count)]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_more_than_sixty_four_messages_go_into_several_arrays(encoding: Encoding) -> None:
    """No peer need take a longer array than we would."""
    packed = [DECODE[encoding](frame) for frame in pack(frames(150, encoding), encoding)]
    assert [len(array) for array in packed] == [64, 64, 22]
    assert [message["n"] for array in packed for message in array] == list(range(150))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_message_stays_what_it_is(encoding: Encoding) -> None:
    """Also the last one that is left over."""
    alone = frames(1, encoding)
    assert pack(alone, encoding) == alone
    left = pack(frames(65, encoding), encoding)
    assert DECODE[encoding](left[-1]) == {"n": 64, "t": "x"}


def test_frame_is_closed_when_it_has_grown() -> None:
    """A frame is bounded in bytes too; a single larger message still goes whole."""
    long = "x" * (100 << 10)
    packed = pack(frames(5, "json", long), "json")
    assert [len(msgspec.json.decode(frame)) for frame in packed[:2]] == [2, 2]
    assert all(len(frame) <= MAX_FRAME_BYTES for frame in packed)
    huge = frames(2, "json", "x" * (300 << 10))
    assert pack(huge, "json") == huge


def test_nothing_is_packed_into_nothing() -> None:
    """No empty array is sent."""
    assert pack([], "json") == []


# -- text ------------------------------------------------------------------------------------------


def told(frames: list[bytes], encoding: Encoding = "json") -> list[AgentMessage]:
    return [message for frame in frames for message in agent_decoder(encoding).decode(frame)]


def spoken(text: str, kind: str = OUTPUT_TEXT, part: str | None = None, before: str = "-") -> Text:
    """A text behind another in its part, or the first of it."""
    out = recorded_text(4, kind, "s", "t1", text)
    out.part, out.characters = part, len(before) + len(text)
    return out


def delta(words: str, **more: Any) -> Delta:
    return Delta(session_id="s", seq=4, turn_id="t1", payload=DeltaPayload(words, **more))


def test_text_is_one_delta() -> None:
    assert told(text_frames(spoken('a "b"'), EVERYBODY)) == [delta('a "b"')]


def test_thinking_goes_only_to_who_asked_for_it() -> None:
    """protocol.md 2.1. Spec: S24."""
    one = spoken("hm", kind=REASONING_TEXT)
    assert told(text_frames(one, EVERYBODY)) == [delta("hm", kind="thinking")]
    assert text_frames(one, FrameGroup(TEXT, "json")) == []


@pytest.mark.parametrize(("known", "target"), [("t1/1", "t1/1"), ("t1/2", None), (None, None)])
def test_part_that_came_by_a_snapshot_is_named(known: str | None, target: str | None) -> None:
    """There it is a component like any other, not the turn's open part."""
    one = spoken("a", part="t1/1")
    assert told(text_frames(one, FrameGroup(FULL, "json", known))) == [delta("a", target=target)]


def test_text_that_opens_a_part_does_not_continue_one_of_the_same_name() -> None:
    """After `replace: true` the numbers of text parts begin again."""
    one = spoken("a", part="t1/1", before="")
    assert told(text_frames(one, FrameGroup(FULL, "json", "t1/1"))) == [delta("a")]


@pytest.mark.parametrize("target", ["t1/1", None])
def test_text_beyond_the_size_that_a_group_takes_comes_in_pieces(target: str | None) -> None:
    words = "a".join("0123456789" for _ in range(200))
    profile = msgspec.structs.replace(FULL, limits=Limits(max_message_bytes=1_024))
    frames = text_frames(spoken(words, part="t1/1"), FrameGroup(profile, "json", target))
    assert max(map(len, frames)) <= 1_024
    pieces = told(frames)
    assert [one.payload.target for one in pieces if isinstance(one, Delta)] == [target] * len(
        frames
    )
    assert "".join(one.payload.delta for one in pieces if isinstance(one, Delta)) == words


def test_text_is_recoded_for_other_encodings() -> None:
    frames = text_frames(spoken("ä"), FrameGroup(FULL, "msgpack"))
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


def test_progress_and_details_of_tools_go_to_who_asked_for_them() -> None:
    """Feature `tool-detail`."""
    progress = ToolProgress(session_id="s", payload=ToolProgressPayload("c", "half"))
    whole = ToolEndPayload("q", True, "c", result="r", result_ref="/r", duration_ms=5)
    end = ToolEnd(session_id="s", payload=whole)
    bare = ToolEnd(session_id="s", payload=ToolEndPayload("q", True, "c"))
    assert addressed(progress, EVERYBODY) == [progress]
    assert addressed(end, EVERYBODY) == [end]
    assert addressed(progress, FrameGroup(TEXT, "json")) == []
    assert addressed(end, FrameGroup(TEXT, "json")) == [bare]


# -- what one renderer gets at once ----------------------------------------------------------------


def large() -> Render:
    components = [text(f"c{number}", "x" * 10_000) for number in range(50)]
    return Render(session_id="s", components=components)


def test_large_messages_go_in_several_pieces() -> None:
    frames = in_pieces([large(), COMMIT], EVERYBODY)
    assert max(map(len, frames)) <= PIECE_BYTES
    *renders, commit = told(frames)
    components = [message.components for message in renders if isinstance(message, Render)]
    shown = [one.id for some in components for one in some]
    assert shown == [f"c{number}" for number in range(50)]
    assert commit == COMMIT


def test_pieces_are_no_larger_than_the_renderer_takes() -> None:
    profile = msgspec.structs.replace(FULL, limits=Limits(max_message_bytes=20_000))
    assert max(map(len, in_pieces([large()], FrameGroup(profile, "json")))) <= 20_000


def test_messages_share_a_frame_where_the_renderer_takes_arrays() -> None:
    group = FrameGroup(FULL, "json", batch=True)
    (frame,) = in_pieces([COMMIT, COMMIT], group)
    assert told([frame]) == [COMMIT, COMMIT]
    assert in_pieces([], group) == []


def test_delta_of_the_known_part_is_named_among_the_pieces() -> None:
    group = FrameGroup(FULL, "json", "t1/1")
    assert told(in_pieces([delta("a")], group, "t1/1")) == [delta("a", target="t1/1")]
    other = delta("b", target="t2/1")
    assert told(in_pieces([other], group, "t1/1")) == [other]
