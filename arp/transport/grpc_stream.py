"""gRPC: one call is one connection, one envelope is one frame.

Theory of operation. A write completes when the flow control of the connection accepts the message.
Until then the frames are in the outbox, so a slow reader is detected there, as with every
transport. A close code becomes the status of the call, and the trailing metadata contain the code
itself. If the client cancels the call or its deadline passes, the call ends like a broken socket:
the renderer has disconnected, and its turns keep running.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from arp.live.outbox import Conversation
from arp.net.grpc_library import grpc
from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.envelope import CLOSE_CODE_KEY, Dialect, seal, unseal
from arp.transport.queue_outbox import QueueOutbox

logger = logging.getLogger(__name__)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

FLUSH_S = 1.0
"""Time in seconds to send the queued frames before the call ends."""

LOOKS = 4
"""Number of checks of a blocked write within the time that it may take."""

STATUSES = {
    1000: grpc.StatusCode.OK,
    1001: grpc.StatusCode.OK,
    1002: grpc.StatusCode.INVALID_ARGUMENT,
    1003: grpc.StatusCode.INVALID_ARGUMENT,
    1008: grpc.StatusCode.PERMISSION_DENIED,
    1009: grpc.StatusCode.RESOURCE_EXHAUSTED,
    1011: grpc.StatusCode.INTERNAL,
    1012: grpc.StatusCode.UNAVAILABLE,
    1013: grpc.StatusCode.UNAVAILABLE,
}
"""Status of a call for each WebSocket close code."""


async def end_call(context: Context, code: int, reason: str) -> None:
    """End a call with the status of a close code.

    Raises:
        grpc.aio.AbortError: The status is not `OK`. The library expects this exception.
    """
    metadata = ((CLOSE_CODE_KEY, str(code)),)
    status = STATUSES.get(code, grpc.StatusCode.INTERNAL)
    if status is grpc.StatusCode.OK:
        context.set_trailing_metadata(metadata)  # with `OK` no reason is sent
        return
    await context.abort(status, reason, metadata)


class GrpcOutbox(QueueOutbox):
    """Queue of the frames of one call, with the task that writes them."""

    def __init__(self, context: Context, dialect: Dialect) -> None:
        super().__init__()
        self.writes_since: float | None = None
        """Loop time at which the running write began; `None` if no write runs."""
        self._context = context
        self._dialect: Dialect = dialect

    async def run(self) -> None:
        """Write frames until the outbox is closed and empty."""
        write, dialect, clock = self._context.write, self._dialect, asyncio.get_running_loop().time
        while (frame := await self.dequeue()) is not None:
            self.writes_since = clock()
            await write(seal(frame, dialect))
            self.writes_since = None
            self.record_sent(frame)


class GrpcConnection:
    """Agent side of one call."""

    def __init__(self, context: Context, dialect: Dialect, stall_s: float) -> None:
        self.outbox = GrpcOutbox(context, dialect)
        self._context = context
        self._dialect: Dialect = dialect
        self._stall_s = stall_s

    async def talk(self, make_peer: Callable[[GrpcOutbox], Conversation]) -> None:
        """Serve the call until either side ends it.

        Raises:
            grpc.aio.AbortError: See `end_call`.
        """
        outbox = self.outbox
        peer = make_peer(outbox)
        outbox.viewer = peer.viewer
        # Tells the client that the call was admitted, even if no frame is sent for a while.
        await self._context.send_initial_metadata(())
        peer.start()
        create = asyncio.get_running_loop().create_task
        writing, watching = create(outbox.run()), create(self._watch())
        reading = create(self._read(peer))
        tasks = (reading, writing, watching)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            outbox.close(1000, "the call ended")
            await asyncio.wait((writing,), timeout=FLUSH_S)
        finally:
            peer.closed()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert outbox.closed is not None
        await end_call(self._context, *outbox.closed)

    async def _read(self, peer: Conversation) -> None:
        while True:
            data = await self._context.read()
            if data is grpc.aio.EOF:
                return
            try:
                dialect, frame = unseal(data)
            except InvalidMessage as error:
                self.outbox.close(1003, error.message)
                return
            if dialect != self._dialect:
                reason = f"a frame of the {dialect} dialect; this call uses {self._dialect}"
                self.outbox.close(1003, reason)
                return
            await peer.receive(frame)

    async def _watch(self) -> None:
        """Close the outbox and return if the client reads nothing for `stall_s`."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._stall_s / LOOKS)
            since = self.outbox.writes_since
            if since is not None and clock() - since >= self._stall_s:
                logger.info("a call ends: its client read nothing for %g s", clock() - since)
                self.outbox.close(1013, "too slow")
                return
