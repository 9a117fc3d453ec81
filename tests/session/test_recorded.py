"""One fact on its way: what the ledger keeps of it, and what shows it."""

from __future__ import annotations

from typing import Any

from arp.ledger.fact import decode
from arp.ledger.fact_writer import FactWriter
from arp.protocol.codec import Encoding, agent_decoder
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
)
from arp.session.recording.recorded import OUTPUT_TEXT, REASONING_TEXT, Text, recorded_text
from arp.view.frames import FrameGroup
from tests.session.conversation import AT, FULL

WRITER = FactWriter("arp", "s", "main")
EVERYBODY = FrameGroup(FULL, "json")
COMMIT = Commit(session_id="s", seq=4, turn_id="t1")


def told(frames: list[bytes] | None, encoding: Encoding = "json") -> list[AgentMessage]:
    assert frames is not None
    return [message for frame in frames for message in agent_decoder(encoding).decode(frame)]


def spoken(text: str, kind: str = OUTPUT_TEXT) -> Text:
    return recorded_text(4, kind, "s", "t1", text)


def delta(words: str, **more: Any) -> Delta:
    return Delta(session_id="s", seq=4, turn_id="t1", payload=DeltaPayload(words, **more))


# -- text ------------------------------------------------------------------------------------------


def test_text_is_one_fact_and_one_message() -> None:
    one = spoken('a "b"')
    fact = decode(WRITER.text(AT, one))
    assert (fact.type, fact.sequence, fact.payload) == ("model.delta", 4, {"text": 'a "b"'})
    assert one.messages == [delta('a "b"')]


def test_half_a_surrogate_pair_stops_no_log() -> None:
    """Models stream such now and then; what stands for it is written and shown alike."""
    one = spoken("a\ud800b")
    assert one.text == "a?b"
    assert decode(WRITER.text(AT, one)).payload == {"text": "a?b"}
    assert one.messages == [delta("a?b")]


def test_halves_of_a_pair_side_by_side_are_no_text_either() -> None:
    assert spoken("\ud83d\ude00").text == "??"


def test_thinking_is_a_fact_of_its_own_kind() -> None:
    one = spoken("hm", kind=REASONING_TEXT)
    assert decode(WRITER.text(AT, one)).type == "reasoning.delta"
    assert one.messages == [delta("hm", kind="thinking")]
