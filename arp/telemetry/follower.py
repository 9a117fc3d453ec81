"""Follows the logs of all sessions that are in memory, after their commits.

Theory of operation. Every `ROUND_S` seconds the follower checks how far each log is durable, and
reads the new facts from the store. Nothing waits for the follower, and writes do not know about it:
it costs the hub one comparison per session and round. When the follower first sees a session, it
starts `LOOK_BACK` facts before the end, so that a turn that a crash interrupted is sent with its
beginning. A span that ended before the hub began to start, or that was already sent, is not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Protocol

import msgspec
from msgspec import Struct

from arp.hub.hub import Hub
from arp.ledger.fact import decode
from arp.ledger.tracing import Trace
from arp.live.live_session import LiveSession
from arp.store.errors import StoreError
from arp.store.store import pages
from arp.telemetry.fold import TYPES, Measured, SpanFold, nanoseconds

logger = logging.getLogger(__name__)

ROUND_S = 1.0
"""Seconds between two rounds."""

LOOK_BACK = 5000
"""Number of facts at the end of a session that are searched for the start of a running turn."""

MOST_EVICTED = 50_000
"""Largest number of evicted sessions with a remembered position."""


class SpanSink(Protocol):
    """Receiver of spans and figures."""

    def receive(self, measured: Iterable[Measured]) -> None:
        """Receive spans and figures; this never waits."""

    def is_sampled(self, trace: Trace) -> bool:
        """Return whether the spans of a turn are kept."""

    def close(self) -> None:
        """Send the rest; this may wait."""


class _FactHead(Struct):
    type: str
    turn_id: str | None = msgspec.field(name="turnId", default=None)


_head_decoder = msgspec.json.Decoder(_FactHead)


class _Followed:
    """A followed session, with the positions of its newest folded fact and its newest sent one."""

    __slots__ = ("epoch", "fold", "sent", "sequence")

    def __init__(self, live: LiveSession, sent: int, stored: int) -> None:
        head = live.session.head
        self.epoch = head.epoch
        self.fold = SpanFold(head.session_id, head.epoch, head.workflow)
        self.sent = sent
        """Sequence number of the newest fact sent before an eviction; 0 if there is none."""
        self.sequence = max(0, min(sent or stored, stored) - LOOK_BACK)
        """Sequence number of the newest folded fact."""


class Follower:
    """Sends spans and figures of all sessions of a hub to a sink.

    Args:
        hub: Hub that has started.
        sink: Receiver of the spans and figures; it is called in the thread of the event loop.
        began_ns: Time when the hub began to start, in nanoseconds since 1970, UTC. Spans that ended
            earlier are not sent.
    """

    def __init__(self, hub: Hub, sink: SpanSink, began_ns: int) -> None:
        self._hub = hub
        self._sink = sink
        hub.runner.services.spans.is_sampled = sink.is_sampled
        self._began_ns = began_ns // 1000 * 1000  # times of facts have microseconds
        self._followed: dict[str, _Followed] = {}
        self._left: dict[tuple[str, str], int] = {}
        """Newest sent fact of evicted sessions, by session id and epoch: a session that was deleted
        and created again has another epoch."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="arp-telemetry")

    async def aclose(self) -> None:
        """Send everything that is durable, and close the sink; the store must still be open."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.round()
        await asyncio.to_thread(self._sink.close)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.round()
            except Exception:
                # An error in one round must not end telemetry; the next round continues.
                logger.exception("telemetry missed a round")

    async def round(self) -> None:
        """Send the facts that became durable since the last round."""
        for session_id, live in list(self._hub.sessions.items()):
            stored, epoch = live.stored, live.session.epoch
            followed = self._followed.get(session_id)
            if stored and (followed is None or followed.epoch != epoch):
                sent = self._left.pop((session_id, epoch), 0)
                followed = self._followed[session_id] = _Followed(live, sent, stored)
            if followed is not None and followed.sequence < stored:
                await self._read(session_id, followed)
        for session_id in [name for name in self._followed if name not in self._hub.sessions]:
            followed = self._followed.pop(session_id)
            await self._read(session_id, followed)
            self._left[session_id, followed.epoch] = followed.sequence
            if len(self._left) > MOST_EVICTED:
                del self._left[next(iter(self._left))]

    async def _read(self, session_id: str, followed: _Followed) -> None:
        try:
            async with aclosing(pages(self._hub.store, session_id, followed.sequence)) as found:
                async for page in found:
                    for sequence, body in page:
                        # Set first: a fact that fails would otherwise fail in each round.
                        followed.sequence = sequence
                        self._sink.receive(self._measured(followed, sequence, body))
                    await asyncio.sleep(0)
        except StoreError as error:
            logger.warning("session %s is not followed further: %s", session_id, error)
            # Skip what is stored: reading it again would fail in each round.
            followed.sequence = max(followed.sequence, self._stored(session_id))

    def _stored(self, session_id: str) -> int:
        live = self._hub.sessions.get(session_id)
        return live.stored if live is not None else 0

    def _measured(self, followed: _Followed, sequence: int, body: bytes) -> Iterator[Measured]:
        """Yield the spans and figures of a fact that were not sent yet; most facts have none."""
        head = _head_decoder.decode(body)
        if head.type not in TYPES:
            return
        if head.type == "model.delta" and not followed.fold.wants_text(head.turn_id):
            return
        fact = decode(body)
        is_new = sequence > followed.sent and (nanoseconds(fact.timestamp) or 0) >= self._began_ns
        for one in followed.fold.fold(fact):
            if is_new:
                yield one
