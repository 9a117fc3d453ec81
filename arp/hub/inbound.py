"""What renderers send, read and looked through for secrets; what is large, in a thread.

Theory of operation. Reading a message of the largest size and taking the secrets out of it may take
a hundred times as long as a text of that size: the loop must not do it. A large frame goes to one
thread, which all connections share, and its connection reads no further until it comes back: so the
messages of a connection keep their order, and a peer that sends more has to wait. What the thread
found out about secrets is at hand while the session takes the message.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct

from arp.ledger.redaction import Cleaned, Redactor
from arp.protocol.agent_connection import AgentConnection, AgentEvent
from arp.protocol.messages import Input

LARGE_BYTES = 16 << 10
"""From here on a thread reads a frame. The worst of this size costs the loop a few milliseconds."""


class Read(Struct, frozen=True):
    """What a large frame meant."""

    events: list[AgentEvent]
    cleaned: list[Cleaned]
    """What was looked through for secrets already."""


class Inbound:
    """Reads frames of all connections."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._thread = ThreadPoolExecutor(1, "arp-frames")
        self._is_closed = False

    async def read(self, connection: AgentConnection, frame: bytes | str) -> Read:
        """Reads a frame in the thread, which reads large ones of others before.

        Cancel: Safe; what comes of the frame is dropped.
        """
        if self._is_closed:
            return self._read(connection, frame)
        work = partial(self._read, connection, frame)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _read(self, connection: AgentConnection, frame: bytes | str) -> Read:
        events = connection.receive(frame)
        cleaned = [
            one
            for event in events
            if isinstance(event, Input)
            for one in self.redactor.look_through(event.data)
        ]
        return Read(events, cleaned)

    def close(self) -> None:
        """Lets the thread end behind what is under way; what still comes is read on the spot."""
        self._is_closed = True
        self._thread.shutdown(wait=False)
