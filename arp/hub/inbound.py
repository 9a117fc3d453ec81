"""What clients send, read and looked through for secrets; what is large, in a thread.

Theory of operation. Reading a message of the largest size and taking the secrets out of it may take
a hundred times as long as a text of that size: the loop must not do it. A large frame goes to one
thread, which all connections share, and its connection reads no further until it comes back: so the
messages of a connection keep their order, and a peer that sends more has to wait. What the thread
found out about secrets is at hand while the session takes the message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from arp.protocol.agent_connection import AgentConnection, AgentEvent
from arp.protocol.json_value import Json
from arp.protocol.messages import Input
from arp.redact.redactor import Cleaned, Redactor

T = TypeVar("T")

LARGE_BYTES = 16 << 10
"""From here on a thread reads a frame. The worst of this size costs the loop a few milliseconds."""


class Read(Struct, Generic[T], frozen=True):
    """What a large frame meant."""

    value: T
    cleaned: list[Cleaned]
    """What was looked through for secrets already."""


class Inbound:
    """Reads large frames and bodies of all connections, in one thread."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._thread = ThreadPoolExecutor(1, "arp-frames")
        self._is_closed = False

    async def read(self, work: Callable[[], T], kept: Callable[[T], Iterable[Json]]) -> Read[T]:
        """Do work in the thread, behind what others gave it, and look for secrets in its result.

        Cancel: Safe; what comes of the work is dropped.

        Args:
            work: Reads something large. It shares nothing with the loop meanwhile.
            kept: Which values in the result are to become facts.

        Raises:
            Exception: What `work` raises.
        """
        if self._is_closed:
            return self._read(work, kept)
        reading = partial(self._read, work, kept)
        return await asyncio.get_running_loop().run_in_executor(self._thread, reading)

    async def events(
        self, connection: AgentConnection, frame: bytes | str
    ) -> Read[list[AgentEvent]]:
        """Read a large frame of a renderer, as `read` does."""
        return await self.read(partial(connection.receive, frame), _data_of_inputs)

    def _read(self, work: Callable[[], T], kept: Callable[[T], Iterable[Json]]) -> Read[T]:
        value = work()
        cleaned = [one for data in kept(value) for one in self.redactor.look_through(data)]
        return Read(value, cleaned)

    def close(self) -> None:
        """Let the thread end behind what is under way; what still comes is read on the spot."""
        self._is_closed = True
        self._thread.shutdown(wait=False)


def _data_of_inputs(events: list[AgentEvent]) -> Iterable[Json]:
    return (event.data for event in events if isinstance(event, Input))
