"""Tells a renderer that comes back what it missed, from the log, at its own pace.

Theory of operation. The reader takes facts behind the renderer's place, in chunks, and sends what
shows them. When it has come to what is delivered, the renderer becomes current in the same step of
the loop, so that nothing falls in between. A patch that this renderer needs translated cannot be
told from the log alone, since the log has changes and not states: it gets a snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import msgspec

from arp.hub.live import LiveSession
from arp.hub.settings import HubSettings
from arp.hub.tasks import ServerTask, start_task
from arp.hub.viewer import Viewer
from arp.ledger.fact import decode
from arp.protocol.messages import AgentMessage, Delta, InputEcho, Patch, Render, Resume
from arp.protocol.patch import Append, Insert, Replace
from arp.session.recovery import messages_of
from arp.store.errors import FactUnreadable, StoreError
from arp.store.store import Store
from arp.view.frames import FrameGroup, addressed, encoded, pack
from arp.view.profile import DRAFT, Profile, is_native, shown_as

logger = logging.getLogger(__name__)

CHUNK = 500
"""Facts read at once."""

PIECE_BYTES = 256 << 10
"""Of facts that are told at once: all that waits for a renderer which takes nothing."""

DRAIN_S = 0.05
"""How often a reader looks whether its renderer can take more."""


class NeedsSnapshot(Exception):
    """The log alone does not tell this renderer."""


class Replayer:
    """Runs the readers."""

    def __init__(self, store: Store, settings: HubSettings) -> None:
        self._store = store
        self._settings = settings
        self._tasks: set[ServerTask[None]] = set()

    def start(self, viewer: Viewer, resume: Resume) -> None:
        """Begins to tell a renderer what lies behind the place at which it resumes."""
        task = start_task(self._replay(viewer, resume), "arp-replay")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Ends every reader."""
        for task in self._tasks:
            task.stop()

    async def _replay(self, viewer: Viewer, resume: Resume) -> None:
        live, after, limit = viewer.live, resume.seq, CHUNK
        try:
            while live is not None and _is_there(viewer, live, resume):
                if viewer.outbox.buffered > self._settings.high_water_bytes:
                    await asyncio.sleep(DRAIN_S)
                elif after < live.delivery.cursor.seq:
                    last = await self._send_chunk(live, viewer, after, limit)
                    limit, after = min(CHUNK, 2 * (last - after)), last
                else:
                    live.delivery.join_now(viewer)
                    return
        except NeedsSnapshot:
            if live is not None and _is_there(viewer, live, resume):
                live.delivery.resync(viewer)
        except StoreError:
            logger.exception("replaying for renderer %s failed", viewer.id)
            viewer.outbox.close(1011, "the ledger cannot be read")

    async def _send_chunk(self, live: LiveSession, viewer: Viewer, after: int, limit: int) -> int:
        """Sends what shows the next facts; of large facts only as many as go into one piece.

        Returns:
            The sequence of the last fact that was told.
        """
        resume = viewer.resume
        limit = min(limit, live.delivery.cursor.seq - after)
        try:
            chunk = await self._store.read(live.session.head.session_id, after, limit)
        except FactUnreadable as error:
            logger.error("%s", error)
            raise NeedsSnapshot from None
        if not chunk:
            raise NeedsSnapshot
        chunk = _first_of(chunk)
        group, most = viewer.group, viewer.profile.limits.max_message_bytes
        frames: list[bytes] = []
        for message in _told(chunk, group):
            parts = encoded(message, group)
            if len(parts) > 1 and not frames and isinstance(message, Delta):
                # It may have some of this text already: its place is that of the last piece.
                raise NeedsSnapshot
            frames += parts
        if frames and _is_there(viewer, live, resume):
            viewer.outbox.send(pack(frames, viewer.encoding, most) if group.batch else frames)
        return chunk[-1][0]


def _first_of(chunk: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Gives the facts at the beginning that have `PIECE_BYTES` together, and one at least."""
    size = 0
    for place, (_, body) in enumerate(chunk):
        size += len(body)
        if size > PIECE_BYTES:
            return chunk[: place or 1]
    return chunk


def _told(chunk: list[tuple[int, bytes]], group: FrameGroup) -> Iterator[AgentMessage]:
    """Gives the messages that show facts, as they were first told to such a group."""
    for _, body in chunk:
        fact = decode(body)
        if fact.type == "artifact.changed" and "anew" in fact.payload:
            raise NeedsSnapshot  # it may show the turn that the id was of before
        for told in messages_of(fact):
            yield from addressed(_as_it_was(told, group.profile), group)


def _is_there(viewer: Viewer, live: LiveSession, resume: Resume | None) -> bool:
    """Tells whether the renderer still is where this reader was started for it."""
    return viewer.live is live and viewer.resume is resume


def _as_it_was(message: AgentMessage, profile: Profile) -> AgentMessage:
    """Gives a message as this profile takes it; raises `NeedsSnapshot` if that needs a state."""
    if isinstance(message, Render):
        shown = [
            piece for component in message.components for piece in shown_as(component, profile)
        ]
        return msgspec.structs.replace(message, components=shown)
    if isinstance(message, InputEcho) and message.edited and not profile.takes("branches"):
        raise NeedsSnapshot
    if isinstance(message, Patch) and not _takes_patches(message, profile):
        raise NeedsSnapshot
    return message


def _takes_patches(message: Patch, profile: Profile) -> bool:
    if (
        not set(DRAFT.versions) <= set(profile.versions)
        or profile.limits.max_table_rows is not None
        or profile.limits.max_message_bytes is not None
    ):
        return False
    for op in message.ops:
        if isinstance(op, Append) and not profile.takes("patch-append"):
            return False
        if isinstance(op, Insert | Replace) and not is_native(op.component, profile):
            return False
    return True
