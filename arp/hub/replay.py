"""Sends a renderer that comes back what it missed, from the log, at its own pace.

Theory of operation. The reader takes facts behind the renderer's cursor, in chunks, and sends what
shows them: no more than its outbox takes, and no more commits than it may have unacknowledged.
When it has come to what is delivered, the renderer becomes current in the same step of the loop, so
that nothing falls in between. Where the log alone does not say what this renderer would have got,
it gets a snapshot.
"""

from __future__ import annotations

import logging

from arp.ledger.fact import Fact, decode
from arp.live.delivery import COMMITS, SessionDelivery, Viewer
from arp.live.settings import HubSettings
from arp.live.tasks import ServerTask, start_task
from arp.protocol.messages import Resume
from arp.store.errors import FactUnreadable, StoreError
from arp.store.store import Store
from arp.view.replay import replayed

logger = logging.getLogger(__name__)

CHUNK = 500
"""Facts read at once."""

PIECE_BYTES = 256 << 10
"""Of facts that are told at once: all that waits for a renderer which takes nothing."""


class Replayer:
    """Runs the readers."""

    def __init__(self, store: Store, settings: HubSettings) -> None:
        self._store = store
        self._settings = settings
        self._most_commits = settings.limits.max_pending_commits
        self._tasks: set[ServerTask[None]] = set()

    def start(self, viewer: Viewer, resume: Resume) -> None:
        """Begin to send a renderer what lies behind the cursor at which it resumes."""
        task = start_task(self._replay(viewer, resume), "arp-replay")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End every reader."""
        for task in self._tasks:
            task.stop()

    async def _replay(self, viewer: Viewer, resume: Resume) -> None:
        delivery, after, limit = viewer.delivery, resume.seq, CHUNK
        try:
            while delivery is not None and _is_there(viewer, delivery, resume):
                if not viewer.keeps_up(self._settings.high_water_bytes, self._most_commits):
                    await viewer.until_drained()
                elif after < delivery.cursor.seq:
                    last = await self._send_chunk(delivery, viewer, after, limit)
                    if last is None:
                        if _is_there(viewer, delivery, resume):
                            delivery.resync(viewer)
                        return
                    limit, after = min(CHUNK, 2 * (last - after)), last
                else:
                    delivery.join_now(viewer)
                    return
        except StoreError:
            logger.exception("replaying for renderer %s failed", viewer.id)
            viewer.outbox.close(1011, "the ledger cannot be read")

    async def _send_chunk(
        self, delivery: SessionDelivery, viewer: Viewer, after: int, limit: int
    ) -> int | None:
        """Send what shows the next facts; of large facts only as many as go into one piece.

        Returns:
            The sequence of the last fact that was sent; `None` if the renderer needs a snapshot.
        """
        resume = viewer.resume
        limit = min(limit, delivery.cursor.seq - after)
        try:
            chunk = await self._store.read(delivery.session_id, after, limit)
        except FactUnreadable as error:
            logger.error("%s", error)
            return None
        if not chunk:
            return None
        facts = [decode(body) for _, body in _first_of(chunk)]
        facts = _with_commits(facts, viewer.room(self._most_commits))
        made = replayed(facts, viewer.group)
        if made is None:
            return None
        if made.frames and _is_there(viewer, delivery, resume):
            viewer.outbox.send(made.frames)
            viewer.count(made.commits)
        return facts[-1].sequence


def _first_of(chunk: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the facts at the beginning that have `PIECE_BYTES` together, and one at least."""
    size = 0
    for place, (_, body) in enumerate(chunk):
        size += len(body)
        if size > PIECE_BYTES:
            return chunk[: place or 1]
    return chunk


def _with_commits(facts: list[Fact], room: int | None) -> list[Fact]:
    """Return the facts at the beginning that show so many commits at most, and one at least."""
    if room is None:
        return facts
    places = [place for place, fact in enumerate(facts, 1) if fact.type in COMMITS]
    return facts if len(places) <= room else facts[: places[max(1, room) - 1]]


def _is_there(viewer: Viewer, delivery: SessionDelivery, resume: Resume | None) -> bool:
    """Return whether the renderer still is where this reader was started for it."""
    return viewer.delivery is delivery and viewer.resume is resume
