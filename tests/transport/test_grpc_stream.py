"""The outbox of a gRPC call: order, what overtakes, what waits, the end."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from arp.live.outbox import LOW_WATER_BYTES
from arp.protocol.framing.envelope import seal
from arp.transport.grpc_stream import STATUSES, GrpcOutbox, end_call
from tests.transport.listener import Listener


class Call:
    """A call whose flow control a test opens and closes."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.trailing: Any = None
        self.aborted: Any = None

    async def write(self, data: bytes) -> None:
        await self.is_open.wait()
        self.written.append(data)

    def set_trailing_metadata(self, metadata: Any) -> None:
        self.trailing = metadata

    async def abort(self, code: grpc.StatusCode, details: str, metadata: Any) -> None:
        self.aborted = (code, details, metadata)


def outbox_of(call: Any) -> GrpcOutbox:
    return GrpcOutbox(call, "session")


async def test_frames_leave_in_order_and_a_pong_before_those_that_wait() -> None:
    call = Call()
    outbox = outbox_of(call)
    call.is_open.clear()
    writing = asyncio.ensure_future(outbox.run())
    outbox.send([b"a", b"b"])
    await asyncio.sleep(0)
    outbox.send([b"c"])
    outbox.send_first(b"old")
    outbox.send_first(b"pong")
    assert outbox.waiting() == [b"pong", b"b", b"c"]
    assert outbox.buffered == 7
    call.is_open.set()
    outbox.close(1012, "restarting")
    outbox.send([b"too late"])
    await writing
    assert call.written == [seal(frame) for frame in (b"a", b"pong", b"b", b"c")]
    assert outbox.buffered == 0
    assert outbox.closed == (1012, "restarting")


async def test_a_write_that_waits_is_seen_and_its_end_is_told() -> None:
    call, listener = Call(), Listener()
    outbox = outbox_of(call)
    outbox.viewer = listener.viewer
    call.is_open.clear()
    writing = asyncio.ensure_future(outbox.run())
    outbox.send([b"x" * LOW_WATER_BYTES, b"y"])
    await asyncio.sleep(0)
    assert outbox.writes_since is not None
    assert outbox.buffered == LOW_WATER_BYTES + 1
    assert listener.told == 0
    call.is_open.set()
    outbox.close(1000, "")
    await writing
    assert outbox.writes_since is None
    assert listener.told == 2


@pytest.mark.parametrize("code", sorted(STATUSES))
async def test_every_close_code_has_its_status_and_stands_in_the_metadata(code: int) -> None:
    call: Any = Call()
    await end_call(call, code, "why")
    metadata = (("arp-close-code", str(code)),)
    if STATUSES[code] is grpc.StatusCode.OK:
        assert (call.trailing, call.aborted) == (metadata, None)
    else:
        assert call.aborted == (STATUSES[code], "why", metadata)
