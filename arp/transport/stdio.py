"""Standard input and output: one line is one frame; end of file closes.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import BinaryIO

from arp.hub.peer import Peer
from arp.transport.queue_outbox import QueueOutbox

MAX_LINE_BYTES = 8 << 20
"""Longer lines are cut into pieces, each of which the connection refuses."""


async def serve_stdio(
    stdin: BinaryIO, stdout: BinaryIO, make_peer: Callable[[QueueOutbox], Peer]
) -> None:
    """Talks to the one renderer at the other end of the pipes, until it closes them."""
    outbox = QueueOutbox()
    peer = make_peer(outbox)
    outbox.viewer = peer.viewer
    peer.start()
    writing = asyncio.ensure_future(_write(stdout, outbox))
    try:
        while line := await asyncio.to_thread(stdin.readline, MAX_LINE_BYTES):
            if line.strip():
                await peer.receive(line.strip())
            if writing.done():
                break
    finally:
        peer.closed()
        outbox.close(1000, "end of input")
        with contextlib.suppress(BrokenPipeError):
            await writing


async def _write(stdout: BinaryIO, outbox: QueueOutbox) -> None:
    """Writes frames; what waits while one write is under way goes out with the next."""
    while (frame := await outbox.take()) is not None:
        await asyncio.to_thread(_write_whole, stdout.fileno(), frame + b"\n")
        outbox.sent(frame)


def _write_whole(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
