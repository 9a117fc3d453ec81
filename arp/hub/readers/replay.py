"""Replay: sends a reconnecting renderer the missed messages from the log, at its own pace.

Theory of operation. The reader reads facts after the renderer's cursor, in chunks, and sends the
messages that show them: no more bytes than its outbox accepts, and no more commits than may be
unacknowledged. When it reaches the newest delivered fact, it makes the renderer current without an
await in between, so no message is lost. If the log alone does not determine what this renderer
would have received, it gets a snapshot.
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
"""Facts per read of the store."""

PIECE_BYTES = 256 << 10
"""Bytes of facts that are sent at once: the most that waits for a renderer that reads nothing."""


class Replayer:
    """Sends missed messages from the log to renderers that resume; one task for each of them."""

    def __init__(self, store: Store, settings: HubSettings) -> None:
        self._store = store
        self._settings = settings
        self._most_commits = settings.limits.max_pending_commits
        self._tasks: set[ServerTask[None]] = set()

    def start(self, viewer: Viewer, resume: Resume) -> None:
        """Start sending a renderer the messages after its cursor."""
        task = start_task(self._replay(viewer, resume), "arp-replay")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop all replays."""
        for task in self._tasks:
            task.stop()

    async def _replay(self, viewer: Viewer, resume: Resume) -> None:
        """Send chunks until the renderer is current, has left, or needs a snapshot."""
        delivery, after, limit = viewer.delivery, resume.seq, CHUNK
        try:
            while delivery is not None and _is_there(viewer, delivery, resume):
                if not viewer.keeps_up(self._settings.high_water_bytes, self._most_commits):
                    # The store must not be read faster than the renderer takes the frames.
                    await viewer.until_drained()
                elif after < delivery.cursor.seq:
                    last = await self._send_chunk(delivery, viewer, after, limit)
                    if last is None:
                        if _is_there(viewer, delivery, resume):
                            delivery.resync(viewer)
                        return
                    limit, after = min(CHUNK, 2 * (last - after)), last
                else:
                    # No await may come between the check of the cursor and this call: a fact that
                    # is delivered in between would be missed.
                    delivery.join_now(viewer)
                    return
        except StoreError:
            logger.exception("replaying for renderer %s failed", viewer.id)
            viewer.outbox.close(1011, "the ledger cannot be read")

    async def _send_chunk(
        self, delivery: SessionDelivery, viewer: Viewer, after: int, limit: int
    ) -> int | None:
        """Send the messages of the next facts; fewer facts if they are large.

        Returns:
            Sequence of the last fact that was sent; `None` if the renderer needs a snapshot.
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
        facts = [decode(body) for _, body in _leading_piece(chunk)]
        facts = _leading_commits(facts, viewer.room(self._most_commits))
        made = replayed(facts, viewer.group)
        if made is None:
            return None
        # It may have left, or have sent another `hello`, while the store was read.
        if made.frames and _is_there(viewer, delivery, resume):
            viewer.outbox.send(made.frames)
            viewer.count(made.commits)
        return facts[-1].sequence


def _leading_piece(chunk: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the leading facts that fit into `PIECE_BYTES`, but at least one."""
    size = 0
    for index, (_, body) in enumerate(chunk):
        size += len(body)
        if size > PIECE_BYTES:
            return chunk[: index or 1]
    return chunk


def _leading_commits(facts: list[Fact], room: int | None) -> list[Fact]:
    """Return the leading facts that show at most `room` commits, but at least one commit."""
    if room is None:
        return facts
    ends = [end for end, fact in enumerate(facts, 1) if fact.type in COMMITS]
    return facts if len(ends) <= room else facts[: ends[max(1, room) - 1]]


def _is_there(viewer: Viewer, delivery: SessionDelivery, resume: Resume | None) -> bool:
    """Return whether the renderer is still attached as it was when this replay began."""
    return viewer.delivery is delivery and viewer.resume is resume
