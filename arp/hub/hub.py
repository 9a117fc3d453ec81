"""The interface of the event loop for servers: renderers, inputs, agents and stored sessions.

Theory of operation. A session is loaded from the store at its first use and stays in memory until
it is idle or its slot is needed. An input becomes facts and effects (start a turn, stop it, resolve
a question). The facts are queued for the next write; `carry_out` runs the effects once that write
is durable. If a write fails, the memory of the session is ahead of the ledger, so the session is
removed from memory and restored from the store.

A session leaves memory in one of four ways:

- It is evicted (`evict`, `_make_room`): it is idle; its state is stored.
- It fails (`_write_failed`, `_fault`): its renderers are disconnected.
- It is deleted (`delete`): its agents end, then its facts and files are removed.
- It was made for a renderer and never used (`_delete_unused`): it is deleted, also from the ledger.

Other modules: `live_session` (one session), `directory` (all sessions), `writer` (durability),
`runner` (agents).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from arp.access.principal import Key, Principal, keys_of
from arp.hub.directory import Directory, utc_now
from arp.hub.history import History
from arp.hub.inbound import Inbound
from arp.hub.models import Models
from arp.hub.removal import CACHE_KEY, Elsewhere, Remainder, Removal, Removals
from arp.hub.replay import Replayer
from arp.hub.runner import HubApp, HubCalls, Runner
from arp.hub.transfers import Transfers
from arp.hub.verification import Verifier
from arp.live.cache import Cache, StoredModel, keep_up
from arp.live.delivery import Viewer
from arp.live.files import Arrived, SessionFiles
from arp.live.listing import Listing, rename
from arp.live.live_session import LiveSession, settle
from arp.live.quotas import FileQuota
from arp.live.settings import HubSettings
from arp.live.tasks import Service
from arp.live.writer import Writer
from arp.protocol.errors import (
    ArpError,
    InternalError,
    PermissionDenied,
    RateLimited,
    SessionNotFound,
    UnknownObject,
    error_payload,
)
from arp.protocol.messages import (
    AgentMessage,
    ErrorMessage,
    Input,
    InputAck,
    RendererHello,
    RendererInfo,
    Viewport,
)
from arp.record.recorder import Recorder
from arp.record.scope import FactScope
from arp.session.branches import Survey
from arp.session.branching import asks_to_turn, branch_of, check_turning, turn_back
from arp.session.effects import (
    Acknowledge,
    Effect,
    ResolveQuestion,
    RunTurn,
    StopTurn,
    SurfaceClosed,
)
from arp.session.inputs import SESSION_START, SILENT, UNKNOWN, is_only_greeted, push, receive
from arp.session.late_input import check_in_time
from arp.session.recovery import recover
from arp.session.session import Head, Session
from arp.store.blobs import Blobs
from arp.store.errors import StoreDamaged, StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Store
from arp.turn.author_call import name_unawaited_calls
from arp.view.profile import DRAFT, Profile, typed_answer

logger = logging.getLogger(__name__)

FRESH_S = 1.0
"""Seconds after its last use in which a session is not evicted to make room for another one.

The caller that opened it may be about to use it."""

AGENTS_END_S = 10.0
"""Seconds that the agents of a deleted session get to end before its facts are removed."""

_REASONS = {
    1000: "the session was deleted",
    1011: "internal error",
    1013: "the ledger cannot be written",
}
"""Close reason that renderers receive, by close code (protocol.md 5)."""

Reply: TypeAlias = Callable[[AgentMessage], None]
"""Sends the answer to an input once the facts of that input are durable."""


class Hub:
    """Sessions, their renderers and their agents, over one store."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        app: HubApp,
        settings: HubSettings | None = None,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self.store = store
        self.app = app
        self.now = now
        """Clock of facts; returns RFC 3339."""
        self.settings = settings or HubSettings()
        self.listing = Listing(store)
        """Lists of sessions, as the chat lists show them."""
        self.writer = Writer(store, now, self.listing, self._write_failed, self._service_failed)
        self.blobs = blobs
        """Store of files."""
        self._quota = FileQuota(blobs, store, self.settings.max_stored_bytes_per_user)
        self.transfers = Transfers(
            self.find,
            self.carry_out,
            self.writer,
            lambda: list(self.sessions.values()),
            self.settings.transfer_key,
        )
        """Transfers of surfaces between sessions."""
        calls = HubCalls(self.carry_out, self._fault, self.transfers.give)
        self.runner = Runner(app, self.writer, self.files_of, self.settings, calls)
        self._replayer = Replayer(store, self.settings)
        self.directory = Directory(
            store, self.settings, app.handlers, self._live, self._recover, now
        )
        self.history = History(store, self.directory.states)
        """Turns of sessions, including turns that are no longer in memory."""
        self.inbound = Inbound(self.directory.states.redactor)
        self.sessions: Mapping[str, LiveSession] = self.directory.sessions
        """Sessions in memory, by id."""
        self.models = Models(store, self.sessions, self.settings, self._note_model)
        self._caches: tuple[Cache, ...] = (self.directory.states, self.models)
        """Caches of what the log says: session states and read models."""
        self._cache_service = Service("arp-caches", lambda: keep_up(self._caches))
        self.verifier = Verifier(store)
        self.removals = Removals(store, app.keepers, self._remove_here)
        """Deletions of sessions that are under way."""
        self._reload_errors: dict[str, ArpError] = {}
        """Error that ends the running turn of a session at its reload, by session id."""
        self._last_fault_at: dict[str, int] = {}
        """Newest stored sequence of a session at its last fault, by session id."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.mended: dict[str, tuple[int, int]] = {}
        """Recovery facts of sessions in memory, by session id: (sequence before them, last one)."""
        self.on_broken: Callable[[], None] = lambda: None
        """Called when a service failed for good; the caller that serves the hub has to end."""
        self._evictor = Service("arp-sweeper", self._evict_idle, self._service_failed)

    # -- start and stop --------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the services and load the sessions with open work. The store is open already.

        Loading a session closes the turn that a crash interrupted.

        Raises:
            StoreError: The ledger cannot be read; nothing is served.
        """
        name_unawaited_calls(track=self.app.debug)
        if self.settings.runtime_id is None:
            self.directory.runtime_id = await self.store.runtime_id()
        self.writer.start()
        self._cache_service.start()
        self._evictor.start()
        if self.settings.takes_input:
            await self.removals.start()
        for session_id in await self.store.open_sessions():
            try:
                await self.directory.load(session_id)
            except (StoreDamaged, InternalError) as error:
                # One damaged session must not keep the server from starting.
                logger.error("session %s: %s; the others are served", session_id, error)

    @property
    def trouble(self) -> str:
        """Names of services that have ended; empty if all run."""
        services = (self.writer.service, self._evictor, self._cache_service)
        ended = [one.name for one in services if not one.is_running]
        return f"not running: {', '.join(ended)}" if ended else ""

    def _service_failed(self, why: str) -> None:
        logger.critical("the server cannot go on: %s", why)
        self.on_broken()

    def _live(self, session: Session, stored: int) -> LiveSession:
        """Return a live session for a session that was read from the store.

        Args:
            session: The session.
            stored: Sequence of its newest durable fact.
        """
        mark, replay = self.writer.mark, self._replayer.start
        return LiveSession(session, self.settings, mark, replay, stored)

    def _recover(self, live: LiveSession, row: SessionMeta) -> None:
        """Recover a session that was just loaded: close its interrupted turn, start its queue.

        If its stored state was unusable, that is recorded first.
        """
        self.listing.rows[live.id] = row
        if live.session.log.sealed is not None:
            return
        before = live.session.sequence
        reason = self.directory.states.repaired(live.id)
        if reason is not None and self.settings.takes_input:
            _record_repair(live, self.directory.states.name, before, reason)
        effects = recover(live.session, self._reload_errors.pop(live.id, None))
        live.keep_deadlines()
        self.runner.services.keep_surface_timers(live)
        if live.session.sequence > before:
            self.mended[live.id] = (before, live.session.sequence)
        if effects or live.session.has_recorded:
            self.carry_out(live, effects)

    async def _note_model(self, stored: StoredModel) -> None:
        """Record in a session that one of its read models was stored or rebuilt.

        A session that is not in memory is loaded only to record a rebuilt model.
        """
        if not self.settings.takes_input:
            return
        live = self.sessions.get(stored.session_id)
        if live is None and stored.repaired is not None:
            # A rebuilt model is evidence of damage, so it is recorded even if nothing else
            # needs the session now.
            live = await self.directory.load(stored.session_id)
        if live is None or live.gone.done() or live.session.log.sealed is not None:
            return
        if stored.repaired is not None:
            _record_repair(live, stored.name, stored.sequence, stored.repaired)
        else:
            payload = {"readModel": stored.name, "throughSequence": stored.sequence}
            live.session.record("snapshot.updated", {**payload, "bytes": stored.size})
        live.mark()

    async def aclose(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Finish or park turns, write everything, then close connections and the store.

        Args:
            last: Awaited after the last write, before the store closes.
        """
        await self.runner.park()
        self.runner.close()
        self.transfers.close()
        self.inbound.close()
        # The connections close only after the last write: a renderer that still has to receive
        # durable messages would lose them otherwise.
        for live in self.sessions.values():
            for viewer in live.viewers.values():
                live.after_write(_close_for_restart(viewer))
        await self.directory.settled()
        await self.removals.aclose()
        await self.writer.aclose()
        self._replayer.close()
        await self._cache_service.aclose()
        await self.directory.states.aclose()
        await self.verifier.aclose()
        await self._evictor.aclose()
        if last is not None:
            await last()
        await self.store.aclose()

    async def _evict_idle(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.settings.idle_s / 4)
            self.evict(loop.time() - self.settings.idle_s)

    def evict(self, before: float) -> int:
        """Evict idle sessions that were last used before a time.

        Args:
            before: Time on the clock of the event loop.

        Returns:
            Number of evicted sessions. They are loaded again when they are needed.
        """
        idle = self.directory.idle(before)
        self._evict_all(idle)
        return len(idle)

    def _make_room(self, key: Key | None = None) -> None:
        """Evict a tenth of the sessions at once, because finding idle ones scans all of them.

        Args:
            key: User or address to evict sessions of; `None` means all sessions.
        """
        # A session that was opened a moment ago looks idle, but its caller holds it. Without
        # `FRESH_S` a burst of new sessions would evict each other.
        idle = self.directory.idle(asyncio.get_running_loop().time() - FRESH_S)
        if key is not None:
            idle = [live for live in idle if key in live.shares]
        idle.sort(key=lambda live: live.used_at)
        self._evict_all(idle[: max(1, self.settings.max_sessions // 10)])

    def _evict_all(self, sessions: list[LiveSession]) -> None:
        """Remove sessions from memory, and store their states and models soon after."""
        for live in sessions:
            self._remove_from_memory(live)
            for cache in self._caches:
                cache.rest(live.id, live)

    def _remove_from_memory(self, live: LiveSession, why: ArpError | None = None) -> None:
        """Remove a session from memory and stop its agent; its renderers stay connected."""
        if self.directory.remove(live, why):
            self.listing.rows.pop(live.id, None)
        self.runner.forget(live)
        self.mended.pop(live.id, None)

    # -- sessions --------------------------------------------------------------------------------

    def recorder(self, live: LiveSession) -> Recorder:
        """Return a recorder of facts outside of turns.

        `within(turn_id=…)` adds the facts to a turn.
        """

        def check_here() -> None:
            if live.gone.done():
                raise live.gone.result()

        scope = FactScope(live.session, {}, check_here, live.mark)
        return Recorder(scope, self.files_of(live).outputs)

    def files_of(self, live: LiveSession) -> SessionFiles:
        """Return the file store of a session."""
        grown = partial(self._quota.grown, live.session.head.owner)
        return SessionFiles(partial(self.blobs.of, live.id), self.settings, live.gone, grown)

    def check_takes_input(self) -> None:
        """Check that the hub accepts inputs and is not replaying a recording.

        Raises:
            PermissionDenied: The hub shows a recording.
        """
        if not self.settings.takes_input:
            raise PermissionDenied("this is a recording: it takes no input")

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """Find a session; see `Directory.find`."""
        return await self.directory.find(session_id, principal)

    async def open(
        self,
        session_id: str | None,
        principal: Principal,
        workflow: str,
        *,
        provisional: bool = False,
    ) -> LiveSession:
        """Find or create a session; see `Directory.open`.

        A new session is written soon, unless it is provisional. If memory is full, or the user or
        address is at its limit, the sessions that were idle longest are evicted.
        """
        live, _ = await self._open(session_id, principal, workflow, provisional=provisional)
        return live

    async def _open(
        self,
        session_id: str | None,
        principal: Principal,
        workflow: str,
        *,
        provisional: bool = False,
    ) -> tuple[LiveSession, bool]:
        """Open a session, and return whether it is new; evict others first if there is no room."""
        if session_id not in self.sessions:
            full = self.directory.quota.full(keys_of(principal))
            if full is not None or len(self.sessions) >= self.settings.max_sessions:
                self._make_room(full)
        live, is_new = await self.directory.open(
            session_id, principal, workflow, provisional=provisional
        )
        # Opening may record facts, and no input may follow that would cause a write.
        if live.session.has_recorded:
            live.mark()
        return live, is_new

    async def _delete_unused(self, live: LiveSession) -> None:
        """Delete a session that was made for a renderer and never used, also from the ledger.

        A session without stored facts does not count against the quota.
        """
        self._remove_from_memory(
            live, SessionNotFound("the session was never used", detail=live.id)
        )
        if not live.was_gathered:
            self.directory.quota.unmade(live.shares)
            return
        try:
            # An agent may have left something in its runtime, so the full deletion is needed.
            if live.cache or live.session.turn_count:
                await self._delete(live.session.head)
            else:
                await self.directory.removed(live.id, self._delete_stored(live.session.head))
        except StoreError as error:
            logger.warning("session %s, which nobody used, stays in the ledger: %s", live.id, error)

    async def delete(self, session_id: str, principal: Principal) -> list[Remainder]:
        """Delete a session: its facts, its files and what agent runtimes keep for it.

        Once begun, a deletion is finished, also after a restart. The session need not be in memory.

        Returns:
            What remains because a runtime could not remove it.

        Raises:
            SessionNotFound: See `find`.
            PermissionDenied: The hub shows a recording.
            StoreError: The ledger cannot be written.

        Cancel: Safe; see `Directory.removed`.
        """
        self.check_takes_input()
        return await self._delete(await self.directory.head(session_id, principal))

    async def _delete(self, head: Head) -> list[Remainder]:
        removing = self._remove_facts(head, self._close_deleted(head))
        name = await self.directory.removed(head.session_id, removing)
        return await self.removals.remove_elsewhere(name)

    def _close_deleted(self, head: Head) -> LiveSession | None:
        """Remove a deleted session from memory and return it; `None` if it was not in memory."""
        live = self.sessions.get(head.session_id)
        # After a deletion another session may have the same id. Its epoch differs.
        if live is None or live.session.head.epoch != head.epoch:
            return None
        self._remove_and_close(
            live, SessionNotFound("the session was deleted", detail=live.id), 1000
        )
        return live

    async def _remove_facts(self, head: Head, live: LiveSession | None) -> str:
        """Remove facts and files of a session after its agents have ended."""
        name = await self.removals.begin(head)
        # A renderer may have loaded it again while `begin` waited for the store.
        live = self._close_deleted(head) or live
        known: Sequence[Elsewhere] = ()
        if live is not None:
            await self.runner.ended(live, AGENTS_END_S)
            known = live.cache.get(CACHE_KEY, ())
        # A write that began earlier may still hold facts of this session. Removing the session
        # before that write ends would bring it back.
        await self.writer.room()
        await self.removals.remove_facts(name, known)
        return name

    async def _remove_here(self, removal: Removal) -> None:
        """Finish a deletion that an earlier process began.

        Another session may have the same id by now; it is left alone.
        """
        head = Head(removal.session_id, removal.epoch, removal.owner, "", "", "")
        meta = await self.store.session(head.session_id)
        if meta is None or meta.epoch == head.epoch:
            self._close_deleted(head)
            await self._delete_stored(head)

    async def _delete_stored(self, head: Head) -> None:
        """Delete the facts and files of a session, and everything that caches them."""
        await self.writer.room()
        async with self.blobs.removing(head.session_id):
            await self.store.delete(head.session_id)
        self._quota.recount(head.owner)
        for cache in self._caches:
            cache.forget(head.session_id)
        self.runner.forget_debug(head.session_id)
        self._last_fault_at.pop(head.session_id, None)
        self.listing.changed(head.owner, head.session_id)

    async def rename(
        self, session_id: str, principal: Principal, title: str | None, pinned: bool | None
    ) -> SessionMeta:
        """Set the title or the pin of a session, durably.

        Args:
            session_id: The session.
            principal: The caller.
            title: New title; `None` keeps the current one.
            pinned: New pin; `None` keeps the current one.

        Returns:
            Its row in the list of sessions.

        Raises:
            SessionNotFound: See `find`.
            InvalidMessage: Both are `None`.
            PermissionDenied: The hub shows a recording.
        """
        self.check_takes_input()
        live = await self.find(session_id, principal)
        rename(live.session, title, pinned)
        live.mark()
        await live.written()
        row = self.listing.rows.get(session_id) or await self.store.session(session_id)
        assert row is not None  # its first durable fact made its row
        return row

    def _remove_and_close(self, live: LiveSession, why: ArpError, code: int) -> None:
        """Remove a session from memory and close the connections of its renderers."""
        self._remove_from_memory(live, why)
        reason = _REASONS[code]
        for viewer in live.viewers.values():
            viewer.outbox.close(code, reason)

    async def metas(
        self,
        principal: Principal,
        *,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[SessionMeta]:
        """List the principal's sessions, newest first."""
        return await self.store.sessions(
            owner=principal.name, workflow=workflow, before=before, limit=limit
        )

    async def all_metas(
        self, *, workflow: str | None, before: str | None, limit: int
    ) -> list[SessionMeta]:
        """List the sessions of all users, newest first. Admins only."""
        return await self.store.sessions(workflow=workflow, before=before, limit=limit)

    # -- renderers -------------------------------------------------------------------------------

    async def hello(
        self,
        viewer: Viewer,
        hello: RendererHello,
        principal: Principal,
        workflow: str,
        *,
        provisional: bool = False,
    ) -> None:
        """Attach a renderer to the session that its `hello` names, or to a new one.

        The previous session of the renderer is deleted if it was made for it and never used.

        Raises:
            ArpError: See `open`; the renderer stays on its previous session.
        """
        current, unused = self.of(viewer), self.unused(viewer)
        is_same = current is not None and current.id == hello.session_id
        if is_same:
            self.detach(viewer)
        open_it = partial(
            self._open, hello.session_id, principal, workflow, provisional=provisional
        )
        try:
            live, is_new = await open_it()
        except RateLimited:
            if unused is None or is_same:
                raise
            # The renderer's own unused session may be the one that exceeds the limit.
            self.detach(viewer)
            await self._delete_unused(unused)
            live, is_new = await open_it()
        # Another renderer may have used the old session while the new one was opened.
        if not is_same:
            unused = self.unused(viewer)
            self.detach(viewer)
        self.attach(viewer, live, hello)
        self.transfers.ask_again(live, viewer)
        if is_new or live is unused:
            viewer.made_at = live.session.sequence
        if unused is not None and unused is not live:
            await self._delete_unused(unused)
        if is_new and not provisional and self.app.session_start is not None:
            self._start_greeting(live, principal)

    def _start_greeting(self, live: LiveSession, principal: Principal) -> None:
        """Start the turn in which the app greets the user of a new session."""
        if not self.settings.takes_input:
            return
        _, effects = push(live.session, "", {}, SESSION_START)
        live.began(principal.known_as, 0)
        self.carry_out(live, effects)

    def of(self, viewer: Viewer) -> LiveSession | None:
        """Return the session that a renderer is attached to; `None` if it left memory."""
        delivery = viewer.delivery
        live = self.sessions.get(delivery.session_id) if delivery is not None else None
        # The id may belong to a session that was loaded again. This renderer is not attached to
        # that one.
        return live if live is not None and live.delivery is delivery else None

    def unused(self, viewer: Viewer) -> LiveSession | None:
        """Return the renderer's session if it was made for this renderer and never used.

        Every use of a session and every other renderer that joins it is recorded, so an unchanged
        sequence proves that the session is unused.
        """
        live = self.of(viewer)
        if live is None or live.followers:
            return None
        is_as_made = viewer.made_at == live.session.sequence
        return live if is_as_made or (viewer.made_at and _is_only_greeted(live)) else None

    @staticmethod
    def attach(viewer: Viewer, live: LiveSession, hello: RendererHello) -> None:
        """Attach a renderer to a session that its principal may see."""
        viewer.take_hello(hello)
        live.delivery.attach(viewer)
        sealed = live.session.log.sealed
        if sealed is not None:
            # The session shows its readable facts but cannot be continued; the renderer has to
            # learn why.
            message = ErrorMessage(payload=error_payload(sealed), session_id=live.id)
            live.after_write(partial(viewer.tell, message))

    def detach(self, viewer: Viewer) -> None:
        """Detach a renderer after its connection is closed. Running turns continue."""
        live = self.of(viewer)
        if viewer.delivery is not None:
            viewer.delivery.detach(viewer)
        if live is not None:
            live.touch()
            # Nothing of a provisional session is stored, so without renderers it is useless.
            if live.is_provisional and not live.viewers:
                self._remove_from_memory(live)
                self.directory.quota.unmade(live.shares)

    async def receive(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> None:
        """Apply an input from a renderer; send that renderer an error if the input is invalid."""
        try:
            live = await self._session_for_input(viewer, message, principal, workflow)
            profile = viewer.profile if viewer.said_hello else DRAFT
            sender = _Sender(profile, viewer.info, viewer.shown)
            closed = list(live.session.questions.closed)
            await self._apply_input(live, message, principal, sender, partial(live.answer, viewer))
            # The user who answered knows that this question is closed. Otherwise the user's next
            # input could be refused as a late answer to it.
            if list(live.session.questions.closed) != closed:
                viewer.answered = live.session.sequence
            if message.input_type == "resize" and message.surface == "main":
                size = msgspec.convert(message.data, Viewport)
                viewer.info = msgspec.structs.replace(viewer.info, viewport=size)
        except (ArpError, StoreError) as error:
            session_id = viewer.delivery.session_id if viewer.delivery else message.session_id
            viewer.tell(
                ErrorMessage(payload=error_payload(error, message.id), session_id=session_id)
            )

    async def submit(
        self,
        message: Input,
        principal: Principal,
        workflow: str,
        files: Sequence[Arrived] = (),
        traceparent: str | None = None,
    ) -> AgentMessage:
        """Apply an input that came without a connection (POST) and wait until it is durable.

        Args:
            message: The input.
            principal: Its sender.
            workflow: Agent of the session, if the session is new.
            files: Uploaded files that came with the input; the session keeps them.
            traceparent: Span of the caller, in the format of W3C Trace Context.

        Returns:
            The `ack` of the input, or an `error` that says why it is refused.
        """
        message = msgspec.structs.replace(message, id=message.id or secrets.token_urlsafe(16))
        answer: asyncio.Future[AgentMessage] = asyncio.get_running_loop().create_future()
        try:
            live = await self.open(message.session_id, principal, workflow)
            if files:
                await self._store_files(live, files)
                # It may have left memory while the files were stored.
                live = await self.open(live.id, principal, workflow)
                live.session.input_log.remember_files(file.ref.sha256 for file in files)
            sender = _sender_among(list(live.viewers.values()), live.delivery.cursor.seq)

            def reply(message: AgentMessage) -> None:
                live.after_write(partial(settle, answer, message))

            await self._apply_input(live, message, principal, sender, reply, traceparent)
            return await live.unless_gone(answer)
        except (ArpError, StoreError) as error:
            payload = error_payload(error, message.id)
            return ErrorMessage(payload=payload, session_id=message.session_id)

    async def _store_files(self, live: LiveSession, files: Sequence[Arrived]) -> None:
        """Store uploaded files, within the quota of the session's owner."""
        self.check_takes_input()
        kept = self.files_of(live)
        new = {file.ref.sha256: file.ref.size for file in files}
        # A file that the session already has takes no room.
        for sha256 in new.keys() & live.session.input_log.files:
            del new[sha256]
        async with self._quota.room(live.session.head.owner, sum(new.values())):
            for file in files:
                await kept.upload(file.chunks())

    async def _apply_input(
        self,
        live: LiveSession,
        message: Input,
        principal: Principal,
        sender: _Sender,
        reply: Reply,
        traceparent: str | None = None,
    ) -> None:
        """Apply an input to its session and schedule its effects.

        An input either adds to the shown branch or selects another one. In the second case the
        session continues from the facts of that branch, and every renderer gets a snapshot.
        """
        # A recording accepts focus and resize: a renderer sends them by itself, and they change
        # nothing in the ledger.
        if message.input_type not in SILENT:
            self.check_takes_input()
        serials = live.session.serials
        before = serials.last
        serials.stamp(asyncio.get_running_loop().time())
        profile, info, shown = sender
        if asks_to_turn(live.session, message):
            # Checked twice: here before the log is read, which may take long, and again in
            # `turn_back`, since the session may have changed while the log was read.
            check_turning(live.session, message)
            survey, branch = await self._read_branch(live, message)
            count, waiting = live.session.turn_count, list(live.session.queue)
            effects = turn_back(live.session, message, survey, branch, info, traceparent)
            # What the renderers show belongs to the previous branch.
            live.delivery.resync_all()
            live.keep_deadlines()
            self.runner.services.keep_surface_timers(live)
        else:
            count, waiting = live.session.turn_count, []
            # A busy loop runs timers late. Without this, a late answer would be accepted.
            if live.deadlines:
                live.expire_questions()
            read_typed = partial(typed_answer, profile)
            check = partial(self.runner.check_answer, live)
            check_in_time(live.session, message, read_typed, shown)
            effects = receive(live.session, message, read_typed, info, traceparent, check)
        live.began(principal.known_as, count, waiting)
        live.touch()
        # The serial of this input, which allows the agent to open a popup where the user acted.
        serial = serials.last if serials.last > before else None
        self.carry_out(live, effects, reply, serial)
        if message.input_type in SILENT:
            self.runner.surface_input(live, message)

    async def _read_branch(self, live: LiveSession, message: Input) -> tuple[Survey, Session]:
        """Return the survey and the branch that an input refers to.

        The session may grow while its log is read, so this repeats until the survey covers every
        turn and the branch ends at the newest fact.
        """
        states, session = self.directory.states, live.session
        while True:
            if live.stored < session.sequence:
                await live.written()
            survey = await states.survey(session.head)
            branch = await states.branch(session.head, branch_of(message, survey))
            while branch.sequence < session.sequence:
                await live.written()
                async for _ in states.follow(branch):
                    pass
            if live.gone.done():
                raise live.gone.result()
            if len(survey.branches) == session.turn_count:
                return survey, branch

    async def _session_for_input(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> LiveSession:
        """Return the session that an input is for; a draft client names it in every input."""
        live = self.of(viewer)
        if live is not None and message.session_id in (None, live.id):
            return live
        if live is None and viewer.delivery is not None:
            # The session left memory, so this renderer is attached to nothing and shows what may
            # not be durable. It has to join again before it may send inputs.
            gone = viewer.delivery.session_id
            raise SessionNotFound(f"session {gone!r} left the memory; say hello again", detail=gone)
        said_hello = live is not None and viewer.profile.said_hello
        # A client that has sent `hello` gets a new session only by another `hello`, except from
        # an empty session that was made for it.
        if live is not None and said_hello and not (viewer.session_made and _is_empty(live)):
            raise UnknownObject(
                f"this connection is on session {live.id!r}; say hello to change it",
                detail=message.session_id,
            )
        found, is_new = await self._open(message.session_id, principal, workflow)
        unused = self.unused(viewer)
        self.detach(viewer)
        viewer.change_session(said_hello)
        found.delivery.attach(viewer)
        if is_new:
            viewer.made_at = found.session.sequence
        if unused is not None:
            await self._delete_unused(unused)
        return found

    def carry_out(
        self,
        live: LiveSession,
        effects: Sequence[Effect],
        reply: Reply | None = None,
        serial: int | None = None,
    ) -> None:
        """Schedule effects for the time when everything recorded so far is durable.

        Args:
            live: The session that returned the effects.
            effects: Effects, in order.
            reply: Receives the acknowledgement of the input.
            serial: Serial of the input; `None` if it has none.
        """
        live.mark()
        for effect in effects:
            if not isinstance(effect, Acknowledge):
                live.after_write(partial(self._run_effect, live, effect))
            elif reply is not None:
                ack = InputAck(
                    id=effect.input_id, session_id=live.id, turn_id=effect.turn_id, serial=serial
                )
                reply(ack)

    def _run_effect(
        self, live: LiveSession, effect: RunTurn | StopTurn | ResolveQuestion | SurfaceClosed
    ) -> None:
        """Run an effect; what caused it is durable now."""
        match effect:
            case RunTurn(turn_id):
                self.runner.start(live, turn_id)
            case StopTurn(turn_id):
                self.runner.cancel(live, turn_id)
            case ResolveQuestion():
                self.runner.resolve(live, effect)
            case SurfaceClosed():
                self.runner.surface_closed(live, effect)

    def _write_failed(self, dirty: Sequence[LiveSession], error: ArpError) -> None:
        """Remove sessions from memory that are ahead of the ledger.

        They are loaded from the store when they are needed. A session with an internal fault is
        loaded at once, and its running turn ends with the error: without this the turn would
        appear to run until the next request for the session.
        """
        for live in dirty:
            for viewer in live.viewers.values():
                viewer.tell(ErrorMessage(payload=error_payload(error)))
            self._remove_and_close(live, error, 1013 if isinstance(error, StoreError) else 1011)
            stored = live.stored
            # A fault that returns before anything new was stored would repeat for ever: the
            # session would be loaded and fail again. It is loaded at once only the first time.
            if not isinstance(error, StoreError) and self._last_fault_at.get(live.id) != stored:
                self._last_fault_at[live.id] = stored
                self._reload_errors[live.id] = error
                self.keep(asyncio.get_running_loop().create_task(self._reload(live.id)))

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold a reference to a running task; the event loop holds only a weak one."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fault(self, live: LiveSession) -> None:
        """Remove a session from memory after an internal error left it in an unknown state."""
        if not live.gone.done():
            self._write_failed([live], InternalError("Internal error. The server's log has it."))

    async def _reload(self, session_id: str) -> None:
        """Load a session again after a fault."""
        try:
            await self.directory.load(session_id)
        except ArpError as error:
            logger.error("session %s does not come back: %s", session_id, error)


class _Sender(NamedTuple):
    """Known properties of the renderer that sent an input."""

    profile: Profile
    info: RendererInfo
    shown: int
    """Sequence of the last fact that it shows for certain."""


def _sender_among(viewers: Sequence[Viewer], shown: int) -> _Sender:
    """Return the sender of an input without a connection: what all attached renderers share.

    Any of them may have sent it. A property in which they differ gets its default.
    """
    profiles = [one.profile if one.said_hello else DRAFT for one in viewers] or [DRAFT]
    infos = [one.info for one in viewers] or [UNKNOWN]
    return _Sender(
        profiles[-1] if all(one == profiles[-1] for one in profiles) else DRAFT,
        infos[-1] if all(one == infos[-1] for one in infos) else UNKNOWN,
        shown,
    )


def _is_only_greeted(live: LiveSession) -> bool:
    """Return whether the greeting of the app is all that happened in a session."""
    settings = live.session.settings
    used = settings.chosen or settings.feedback or settings.name
    return is_only_greeted(live.session) and not used and len(live.viewers) <= 1


def _is_empty(live: LiveSession) -> bool:
    """Return whether a session has no turn, no component and no name."""
    session = live.session
    shown = any(tree.nodes for tree in session.screen.surfaces.values())
    is_named = bool(session.title or session.threads.begun)
    return session.turn_count == 0 and not shown and not is_named


def _record_repair(live: LiveSession, name: str, sequence: int, reason: str) -> None:
    """Record that a stored model was unusable and is rebuilt from the facts."""
    payload = {"readModel": name, "throughSequence": sequence, "reason": reason}
    live.session.record("snapshot.repaired", payload)


def _close_for_restart(viewer: Viewer) -> Callable[[], None]:
    return lambda: viewer.outbox.close(1012, "restarting")
