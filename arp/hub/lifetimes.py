"""The life of a session in memory: how it comes in, and each way in which it leaves.

Theory of operation. A session is loaded from the store at its first use (`Directory`), recovered,
and stays in memory until one of these:

- It is *evicted*: it is idle, or its slot is needed. Its state is stored soon after, and it is
  loaded again when it is needed.
- It is *dropped*: it was made for a renderer and never used. It is also removed from the store.
- It is *deleted* at its owner's request: its agents end, then facts and files are removed.
- It *fails*: its memory may be ahead of the ledger. Its renderers are disconnected and read the
  ledger again; after an internal fault it is loaded at once.
- It *moves*: another process has become its owner (`SharedStore`). Its agent is stopped, its open
  questions stay open, and its renderers are disconnected and connect again.

All of them go through `_remove`, after which nothing of the session is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import Struct

from arp.access.principal import Key, Principal, keys_of
from arp.hub.directory import Directory
from arp.hub.removal import CACHE_KEY, ExternalRecord, Remainder, Removal, Removals, SessionKeeper
from arp.hub.runner import CarryOut, Runner
from arp.live.cache import Cache, StoredModel
from arp.live.listing import Listing
from arp.live.live_session import LiveSession
from arp.live.quotas import FileQuota
from arp.live.settings import HubSettings
from arp.live.writer import Writer
from arp.protocol.errors import ArpError, InternalError, SessionNotFound, error_payload
from arp.protocol.messages import ErrorMessage
from arp.record.end_cause import EndCause
from arp.session.recovery import recover
from arp.session.session import Head
from arp.store.blobs import Blobs
from arp.store.errors import SessionMoved, StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Store

logger = logging.getLogger(__name__)

FRESH_S = 1.0
"""Seconds after its last use in which a session is not evicted to make room for another one.

The caller that opened it may be about to use it."""

AGENTS_END_S = 10.0
"""Seconds that the agents of a deleted session get to end before its facts are removed."""

_REASONS = {
    1000: "the session was deleted",
    1011: "internal error",
    1012: "another process serves the session now",
    1013: "the ledger cannot be written",
}
"""Close reason that renderers receive, by close code (protocol.md 5)."""


class LifetimeParts(Struct, frozen=True):
    """Parts of a hub that know something about the sessions in memory."""

    store: Store
    blobs: Blobs
    directory: Directory
    runner: Runner
    writer: Writer
    listing: Listing
    file_quota: FileQuota
    caches: Sequence[Cache]
    keepers: Callable[[], Sequence[SessionKeeper]]
    """Returns the keepers of session data outside of the ledger."""


class Lifetimes:
    """Brings sessions into memory and removes them from it."""

    def __init__(self, parts: LifetimeParts, settings: HubSettings, carry_out: CarryOut) -> None:
        """Create the lifetimes of a hub without sessions.

        Args:
            parts: Parts of the hub.
            settings: Limits of the hub.
            carry_out: Runs the effects of a recovery.
        """
        self._parts = parts
        self._settings = settings
        self._carry_out = carry_out
        self._directory, self._sessions = parts.directory, parts.directory.sessions
        self.removals = Removals(parts.store, parts.keepers, self._finish_deletion)
        """Deletions of sessions that are under way."""
        self.repairs: dict[str, tuple[int, int]] = {}
        """Recovery facts of sessions in memory, by session id: (sequence before them, last one)."""
        self._reload_errors: dict[str, ArpError] = {}
        """Error that ends the running turn of a session at its reload, by session id."""
        self._last_fault_at: dict[str, int] = {}
        """Newest stored sequence of a session at its last fault, by session id."""
        self._reloads: set[asyncio.Task[None]] = set()

    # -- coming in -------------------------------------------------------------------------------

    async def open(
        self, session_id: str | None, principal: Principal, workflow: str, *, provisional: bool
    ) -> tuple[LiveSession, bool]:
        """Open a session, and return whether it is new; evict others first if there is no room."""
        directory = self._directory
        if session_id not in self._sessions:
            full = directory.quota.full(keys_of(principal))
            if full is not None or len(self._sessions) >= self._settings.max_sessions:
                self._make_room(full)
        live, is_new = await directory.open(
            session_id, principal, workflow, provisional=provisional
        )
        # Opening may record facts, and no input may follow that would cause a write.
        if live.session.has_recorded:
            live.mark()
        return live, is_new

    def recover(self, live: LiveSession, row: SessionMeta) -> None:
        """Recover a session that was just loaded: close its interrupted turn, start its queue.

        If its stored state was unusable, that is recorded first.
        """
        self._parts.listing.rows[live.id] = row
        if live.session.sealed is not None:
            return
        before = live.session.sequence
        states, runner = self._directory.states, self._parts.runner
        reason = states.repaired(live.id)
        if reason is not None and self._settings.takes_input:
            _record_repair(live, states.name, before, reason)
        effects = recover(live.session, self._reload_errors.pop(live.id, None))
        live.keep_deadlines()
        runner.services.keep_surface_timers(live)
        if live.session.sequence > before:
            self.repairs[live.id] = (before, live.session.sequence)
        if effects or live.session.has_recorded:
            self._carry_out(live, effects)

    async def note_model(self, stored: StoredModel) -> None:
        """Record in a session that one of its read models was stored or rebuilt.

        Nothing is recorded in a session that is not in memory, since it may belong to another
        process. `Models` replaces an unusable model once the session is in memory.
        """
        if not self._settings.takes_input:
            return
        live = self._sessions.get(stored.session_id)
        if live is None or live.gone.done() or live.session.sealed is not None:
            return
        if stored.repaired is not None:
            _record_repair(live, stored.name, stored.sequence, stored.repaired)
        else:
            payload = {"readModel": stored.name, "throughSequence": stored.sequence}
            live.session.record("snapshot.updated", {**payload, "bytes": stored.size})
        live.mark()

    # -- leaving ---------------------------------------------------------------------------------

    def _remove(
        self,
        live: LiveSession,
        why: ArpError | None = None,
        close_code: int | None = None,
        cause: EndCause = EndCause.SESSION_LEFT,
    ) -> None:
        """Remove a session from memory and stop its agent.

        Args:
            live: The session.
            why: Error for callers that still wait for the session.
            close_code: Code with which the connections of its renderers are closed; `None` leaves
                them open.
            cause: Why its agent is stopped.
        """
        if self._directory.remove(live, why):
            self._parts.listing.rows.pop(live.id, None)
        self._parts.runner.forget(live, cause)
        self.repairs.pop(live.id, None)
        if close_code is not None:
            for viewer in live.viewers.values():
                viewer.outbox.close(close_code, _REASONS[close_code])

    async def evict_idle(self) -> None:
        """Evict idle sessions periodically."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._settings.idle_s / 4)
            self.evict(loop.time() - self._settings.idle_s)

    def evict(self, before: float) -> int:
        """Evict idle sessions that were last used before a time.

        Args:
            before: Time on the clock of the event loop.

        Returns:
            Number of evicted sessions. They are loaded again when they are needed.
        """
        idle = self._directory.idle(before)
        self._evict_all(idle)
        return len(idle)

    def _make_room(self, key: Key | None) -> None:
        """Evict a tenth of the sessions at once, because finding idle ones scans all of them.

        Args:
            key: User or address to evict sessions of; `None` means all sessions.
        """
        # A session that was opened a moment ago looks idle, but its caller holds it. Without
        # `FRESH_S` a burst of new sessions would evict each other.
        idle = self._directory.idle(asyncio.get_running_loop().time() - FRESH_S)
        if key is not None:
            idle = [live for live in idle if key in live.shares]
        idle.sort(key=lambda live: live.used_at)
        self._evict_all(idle[: max(1, self._settings.max_sessions // 10)])

    def _evict_all(self, sessions: Sequence[LiveSession]) -> None:
        """Remove sessions from memory, and store their states and models soon after."""
        for live in sessions:
            self._remove(live)
            for cache in self._parts.caches:
                cache.rest(live.id, live)

    def drop_provisional(self, live: LiveSession) -> None:
        """Drop a provisional session, which is not stored, because its last renderer left."""
        self._remove(live)
        self._directory.quota.unmade(live.shares)

    async def drop_unused(self, live: LiveSession) -> None:
        """Drop a session that was made for a renderer and never used, also from the ledger.

        A session without stored facts does not count against the quota. If another process has
        become the owner of the session, its facts stay in the ledger.
        """
        self._remove(live, SessionNotFound("the session was never used", detail=live.id))
        if not live.was_gathered:
            self._directory.quota.unmade(live.shares)
            return
        head = live.session.head

        async def drop() -> str | None:
            """Drop the session in a removal: callers that need it wait for the end."""
            if not await self._directory.is_still_owner(live):
                return None
            # An agent may have left something in its runtime, so the full deletion is needed.
            if live.cache or live.session.turn_count:
                return await self._delete_facts(head, None)
            await self._delete_stored(head)
            return None

        try:
            name = await self._directory.removed(live.id, drop())
            if name is not None:
                await self.removals.remove_elsewhere(name)
        except StoreError as error:
            logger.warning("unused session %s is not removed from the ledger: %s", live.id, error)

    async def delete(self, head: Head) -> list[Remainder]:
        """Delete a session: its facts, its files and what agent runtimes keep for it.

        Returns:
            What remains because a runtime could not remove it.

        Raises:
            StoreError: The ledger cannot be written.

        Cancel: Safe; see `Directory.removed`.
        """
        deleting = self._delete_facts(head, self._close_deleted(head))
        name = await self._directory.removed(head.session_id, deleting)
        return await self.removals.remove_elsewhere(name)

    def _close_deleted(self, head: Head) -> LiveSession | None:
        """Remove a deleted session from memory and return it; `None` if it was not in memory."""
        live = self._sessions.get(head.session_id)
        # After a deletion another session may have the same id. Its epoch differs.
        if live is None or live.session.epoch != head.epoch:
            return None
        self._remove(live, SessionNotFound("the session was deleted", detail=live.id), 1000)
        return live

    async def _delete_facts(self, head: Head, live: LiveSession | None) -> str:
        """Delete facts and files of a session; return the name of the deletion's note.

        Before that, wait for the end of the session's agents, at most `AGENTS_END_S` seconds.
        """
        name = await self.removals.begin(head)
        # A renderer may have loaded it again while `begin` waited for the store.
        live = self._close_deleted(head) or live
        known: Sequence[ExternalRecord] = ()
        if live is not None:
            await self._parts.runner.ended(live, AGENTS_END_S)
            known = live.cache.get(CACHE_KEY, ())
        # A write that began earlier may still hold facts of this session. Removing the session
        # before that write ends would bring it back.
        await self._parts.writer.room()
        await self.removals.remove_facts(name, known)
        return name

    async def _finish_deletion(self, removal: Removal) -> None:
        """Finish a deletion that an earlier process began.

        Another session may have the same id by now; it is left alone.
        """
        head = Head(removal.session_id, removal.epoch, removal.owner, "", "", "")
        meta = await self._parts.store.session(head.session_id)
        if meta is None or meta.epoch == head.epoch:
            self._close_deleted(head)
            await self._delete_stored(head)

    async def _delete_stored(self, head: Head) -> None:
        """Delete the facts and files of a session, and everything that caches them."""
        parts = self._parts
        await parts.writer.room()
        await parts.directory.take_from_owner(head.session_id)
        async with parts.blobs.removal(head.session_id):
            await parts.store.delete(head.session_id)
        parts.file_quota.recount(head.owner)
        for cache in parts.caches:
            cache.forget(head.session_id)
        parts.runner.forget_debug(head.session_id)
        self._last_fault_at.pop(head.session_id, None)
        parts.listing.changed(head.owner, head.session_id)

    def fail(self, sessions: Sequence[LiveSession], error: ArpError) -> None:
        """Remove sessions from memory that are ahead of the ledger.

        They are loaded from the store when they are needed. A session with an internal fault is
        loaded at once, and its running turn ends with the error: without this the turn would
        appear to run until the next request for the session.
        """
        for live in sessions:
            if isinstance(error, SessionMoved):
                # No error message, because the renderers only have to connect again. No reload,
                # because it would take the session back from its new owner.
                self._remove(live, error, 1012, EndCause.SESSION_MOVED)
                continue
            for viewer in live.viewers.values():
                viewer.tell(ErrorMessage(payload=error_payload(error)))
            self._remove(live, error, 1013 if isinstance(error, StoreError) else 1011)
            stored = live.stored
            # A fault that returns before anything new was stored would repeat for ever: the
            # session would be loaded and fail again. It is loaded at once only the first time.
            if not isinstance(error, StoreError) and self._last_fault_at.get(live.id) != stored:
                self._last_fault_at[live.id] = stored
                self._reload_errors[live.id] = error
                task = asyncio.get_running_loop().create_task(self._reload(live.id))
                self._reloads.add(task)
                task.add_done_callback(self._reloads.discard)

    def fault(self, live: LiveSession) -> None:
        """Remove a session from memory after an internal error left it in an unknown state."""
        if not live.gone.done():
            self.fail([live], InternalError("Internal error. The server's log has it."))

    async def _reload(self, session_id: str) -> None:
        """Load a session again after a fault."""
        try:
            await self._directory.load(session_id)
        except ArpError as error:
            logger.error("session %s cannot be loaded again: %s", session_id, error)


def _record_repair(live: LiveSession, name: str, sequence: int, reason: str) -> None:
    """Record that a stored model was unusable and is rebuilt from the facts."""
    payload = {"readModel": name, "throughSequence": sequence, "reason": reason}
    live.session.record("snapshot.repaired", payload)
