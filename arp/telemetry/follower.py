"""Follows the log of every session in memory, after its commits.

Theory of operation. Once in `ROUND_S` the follower looks how far each log is durable, and reads
what is new from the store. Nothing waits for it, and no write knows of it: it costs the hub one
number a session a round. A session that it sees for the first time is read from a little before its
end, so that a turn which a crash cut off is sent with what began before; what was over before this
process began, or was sent already, is not sent.
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
"""How often logs are looked at."""

LOOK_BACK = 5000
"""Facts before a session's end that may hold the beginning of a turn that still runs."""

MOST_EVICTED = 50_000
"""Evicted sessions of which it is remembered how far they were sent."""


class SpanSink(Protocol):
    """Where what is measured goes."""

    def take(self, measured: Iterable[Measured]) -> None:
        """Take spans and figures; never waits."""

    def is_sampled(self, trace: Trace) -> bool:
        """Return whether the spans of a turn are kept."""

    def close(self) -> None:
        """Send what is left. May wait."""


class _FactHead(Struct):
    type: str
    turn_id: str | None = msgspec.field(name="turnId", default=None)


_head_decoder = msgspec.json.Decoder(_FactHead)


class _Followed:
    """A session, and how far it is folded and sent."""

    __slots__ = ("epoch", "fold", "sent", "sequence")

    def __init__(self, live: LiveSession, sent: int, stored: int) -> None:
        head = live.session.head
        self.epoch = head.epoch
        self.fold = SpanFold(head.session_id, head.epoch, head.workflow)
        self.sent = sent
        """What facts up to this one gave was sent before."""
        self.sequence = max(0, min(sent or stored, stored) - LOOK_BACK)
        """Of the newest fact that was folded."""


class Follower:
    """Sends what happens in a hub to a sink.

    Args:
        hub: A started one.
        sink: Receives what is measured, in the loop's thread.
        began_ns: What was over before this is not sent; since 1970, UTC.
    """

    def __init__(self, hub: Hub, sink: SpanSink, began_ns: int) -> None:
        self._hub = hub
        self._sink = sink
        hub.runner.services.spans.is_sampled = sink.is_sampled
        self._began_ns = began_ns // 1000 * 1000  # facts have microseconds
        self._followed: dict[str, _Followed] = {}
        self._left: dict[tuple[str, str], int] = {}
        """By session and epoch: a session that is deleted and made anew is another."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="arp-telemetry")

    async def aclose(self) -> None:
        """Send what is durable by now, and close the sink; the store must still be open."""
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
                # Telemetry must not end for what one round met; the next goes on.
                logger.exception("telemetry missed a round")

    async def round(self) -> None:
        """Send what became durable since the last round."""
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
                        followed.sequence = sequence  # first: what fails is not tried again
                        self._sink.take(self._measured(followed, sequence, body))
                    await asyncio.sleep(0)
        except StoreError as error:
            logger.warning("session %s is not followed further: %s", session_id, error)
            followed.sequence = max(followed.sequence, self._stored(session_id))

    def _stored(self, session_id: str) -> int:
        live = self._hub.sessions.get(session_id)
        return live.stored if live is not None else 0

    def _measured(self, followed: _Followed, sequence: int, body: bytes) -> Iterator[Measured]:
        """Return the spans that end with a fact and were not sent yet; most facts end none."""
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
