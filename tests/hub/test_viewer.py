"""One renderer: whom it shares frames with, how far it may fall behind, what brings it back."""

from __future__ import annotations

import json
from typing import Any

import cbor2
import msgspec
import pytest

from arp.live.delivery import Viewer
from arp.live.outbox import LOW_WATER_BYTES
from arp.protocol.codec import Encoding
from arp.protocol.messages import InputAck, RendererCapabilities
from arp.view.profile import DRAFT, profile_of
from tests.hub.rig import Box, Renderer, running, settled

HIGH_WATER = 1000


def viewer(encoding: Encoding = "json") -> tuple[Viewer, Box]:
    box = Box()
    return Viewer("v", box, encoding), box


def test_new_viewer_is_a_draft_client_on_no_session() -> None:
    """protocol.md 2.2: who says no hello is taken to support everything that was offered."""
    one, _ = viewer()
    assert (one.profile, one.delivery, one.state) == (DRAFT, None, "new")
    assert (one.group.encoding, one.group.part, one.group.batch) == ("json", None, False)


def test_viewers_of_one_kind_are_one_group() -> None:
    first, second = viewer()[0], viewer()[0]
    first.profile = profile_of(RendererCapabilities(["text"], ["batch"]))
    second.profile = profile_of(RendererCapabilities(["text"], ["batch"]))
    assert first.group == second.group
    assert first.group.batch
    second.part = "t1/1"
    assert first.group != second.group


@pytest.mark.parametrize(
    ("encoding", "decode"),
    [("json", json.loads), ("msgpack", msgspec.msgpack.decode), ("cbor", cbor2.loads)],
)
def test_message_to_one_goes_out_in_its_encoding(encoding: Encoding, decode: Any) -> None:
    one, box = viewer(encoding)
    one.tell(InputAck(id="i1", session_id="s"))
    assert [decode(frame) for frame in box.frames] == [
        {"v": 1, "type": "ack", "id": "i1", "session_id": "s"}
    ]


def test_viewer_keeps_up_until_more_waits_than_the_high_water_mark() -> None:
    one, box = viewer()
    box.buffered = HIGH_WATER
    assert one.keeps_up(HIGH_WATER, 2)
    box.buffered = HIGH_WATER + 1
    assert not one.keeps_up(HIGH_WATER, 2)


def test_viewer_that_acknowledges_keeps_up_below_the_bound_of_commits() -> None:
    """protocol.md 2.4: `max_pending_commits` unacknowledged hold it back."""
    one, _ = viewer()
    one.unacknowledged = []
    one.count([3, 5])
    assert not one.keeps_up(HIGH_WATER, 2)
    one.acknowledge(4)
    assert one.unacknowledged == [5]
    assert one.keeps_up(HIGH_WATER, 2)
    one.acknowledge(9)
    assert one.unacknowledged == []


def test_commits_of_one_that_does_not_acknowledge_are_not_counted() -> None:
    one, _ = viewer()
    one.count([3, 5, 7])
    one.acknowledge(3)
    assert one.unacknowledged is None
    assert one.keeps_up(HIGH_WATER, 2)


def test_low_water_lies_below_the_high_water_mark() -> None:
    """Else a renderer would fall behind again with the frame that brings it back."""
    assert LOW_WATER_BYTES == 32 << 10 < 256 << 10


@pytest.mark.parametrize("state", ["new", "joining", "current", "paced", "returning"])
async def test_drained_buffer_matters_only_to_one_that_is_behind(state: Any) -> None:
    async with running() as hub:
        renderer = await Renderer(hub).join()
        renderer.viewer.state = state
        renderer.viewer.drained()
        now = renderer.viewer.state
        told = len(renderer.box.frames)
        await settled(hub)
        more = len(renderer.box.frames) - told
    assert (now, more) == (state, 0)


def test_drained_viewer_without_a_session_is_harmless() -> None:
    one, box = viewer()
    one.state = "behind"
    one.drained()
    assert (one.state, box.frames) == ("behind", [])
