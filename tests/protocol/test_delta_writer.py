"""Deltas that are written by hand are the bytes that the general way would give."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import agent_decoder
from arp.protocol.delta_writer import DeltaWriter
from arp.protocol.messages import Delta, DeltaPayload


@given(
    session_id=st.text(min_size=1),
    text=st.text(),
    target=st.sampled_from([None, "t1/1"]),
    kind=st.sampled_from([None, "thinking"]),
)
def test_delta_is_what_the_codec_would_write(
    session_id: str, text: str, target: str | None, kind: str | None
) -> None:
    as_json = msgspec.json.encode(text).decode()
    frame = DeltaWriter(session_id).delta(7, "t1", as_json, target, kind)
    message = Delta(
        session_id=session_id, seq=7, turn_id="t1", payload=DeltaPayload(text, target, kind)
    )
    assert frame == msgspec.json.encode(message)
    assert agent_decoder("json").decode(frame) == [message]


def test_each_delta_of_a_session_says_what_is_its_own() -> None:
    """What is the same in all of them is made once."""
    writer = DeltaWriter("s")
    frames = [writer.delta(7, "t1", '"a"', "t1/1"), writer.delta(8, "t2", '"b"')]
    first, second = [agent_decoder("json").decode(frame)[0] for frame in frames]
    payload = DeltaPayload("a", "t1/1")
    assert first == Delta(session_id="s", seq=7, turn_id="t1", payload=payload)
    assert second == Delta(session_id="s", seq=8, turn_id="t2", payload=DeltaPayload("b"))
