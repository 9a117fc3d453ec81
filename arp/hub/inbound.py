"""Parsing of incoming frames and redaction of their secrets; a thread does this for large frames.

Theory of operation. To parse and redact a message of the largest size may take a hundred times as
long as to process one text of that size, so the loop must not do it. One thread, which all
connections share, parses the large frames. Until the result is back, the connection reads nothing
more: its messages keep their order, and a peer that sends more has to wait. The redactor reuses the
results of the thread while the session applies the message, so that nothing is searched twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from arp.protocol.connection.agent_connection import AgentConnection, AgentEvent
from arp.protocol.json_value import Json
from arp.protocol.messages import Input
from arp.redact.redactor import RedactionResult, Redactor

T = TypeVar("T")

LARGE_BYTES = 16 << 10
"""Size from which a thread parses a frame; a smaller one costs the loop a few milliseconds."""


class ParsedFrame(Struct, Generic[T], frozen=True):
    """Parsed large frame."""

    value: T
    cleaned: list[RedactionResult]
    """Values of the frame that are already redacted."""


class Inbound:
    """Parser of large frames and bodies of all connections, in one thread."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._thread = ThreadPoolExecutor(1, "arp-frames")
        self._is_closed = False

    async def read(
        self, work: Callable[[], T], kept: Callable[[T], Iterable[Json]]
    ) -> ParsedFrame[T]:
        """Run work in the thread and redact its result.

        Args:
            work: Parses something large. It shares no state with the loop meanwhile.
            kept: Returns the values of the result that will become facts.

        Raises:
            Exception: Any exception of `work`.

        Cancel: Safe; the result is dropped.
        """
        if self._is_closed:
            return self._read(work, kept)
        reading = partial(self._read, work, kept)
        return await asyncio.get_running_loop().run_in_executor(self._thread, reading)

    async def events(
        self, connection: AgentConnection, frame: bytes | str
    ) -> ParsedFrame[list[AgentEvent]]:
        """Parse a large frame of a renderer; see `read`."""
        return await self.read(partial(connection.receive, frame), _data_of_inputs)

    def _read(self, work: Callable[[], T], kept: Callable[[T], Iterable[Json]]) -> ParsedFrame[T]:
        value = work()
        cleaned = [one for data in kept(value) for one in self.redactor.look_through(data)]
        return ParsedFrame(value, cleaned)

    def close(self) -> None:
        """End the thread after its current work; later calls of `read` work in the caller."""
        self._is_closed = True
        self._thread.shutdown(wait=False)


def _data_of_inputs(events: list[AgentEvent]) -> Iterable[Json]:
    return (event.data for event in events if isinstance(event, Input))
