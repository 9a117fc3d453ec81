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
