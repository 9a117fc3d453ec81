"""The interface of the event loop for servers: renderers, inputs, agents and stored sessions.

Theory of operation. A session is loaded from the store at its first use and stays in memory until
it is idle or its slot is needed. An input becomes facts and effects (start a turn, stop it, resolve
a question). The facts are queued for the next write; `carry_out` runs the effects once that write
is durable. If a write fails, the memory of the session is ahead of the ledger, so the session is
removed from memory and restored from the store.

Other modules: `input_applier` (what an input does), `directory` (all sessions), `lifetimes` (how a
session enters and leaves memory), `runner` (agents). `arp/live` has `live_session` (one session)
and `writer` (durability).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from arp.access.principal import Principal
from arp.hub.directory import Directory, utc_now
from arp.hub.inbound import Inbound
from arp.hub.input_applier import InputApplier, Reply, sender_among, sender_of
from arp.hub.lifetimes import LifetimeParts, Lifetimes
from arp.hub.readers.history import History
from arp.hub.readers.models import Models
from arp.hub.readers.replay import Replayer
from arp.hub.readers.session_reader import SessionReader
from arp.hub.readers.verification import Verifier
from arp.hub.removal import Remainder
from arp.hub.runner import HubApp, HubCalls, Runner
from arp.hub.transfers import Transfers
from arp.live.cache import Cache, keep_up
from arp.live.delivery import Viewer
from arp.live.files import IncomingFile, SessionFiles
from arp.live.listing import Listing, rename
from arp.live.live_session import Action, LiveSession, settle
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
    Viewport,
)
from arp.record.recorder import Recorder
from arp.record.scope import FactScope
from arp.session.effects import (
    Acknowledge,
    Effect,
)
from arp.session.input.receive import SESSION_START, InputSender, is_only_greeted, push
from arp.session.session import Session
from arp.store.blobs import Blobs
from arp.store.errors import SessionMoved, StoreDamaged, StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Store
from arp.turn.author_call import name_unawaited_calls

logger = logging.getLogger(__name__)


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
        self.writer = Writer(
            store,
            now,
            self.listing,
            lambda failed, error: self.lifetimes.fail(failed, error),
            self._service_failed,
        )
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
        calls = HubCalls(
            self.carry_out, lambda live: self.lifetimes.fault(live), self.transfers.give
        )
        self.runner = Runner(app, self.writer, self.files_of, self.settings, calls)
        self._replayer = Replayer(store, self.settings)
        self.directory = _directory(self)
        self.reader = SessionReader(store, self.directory)
        self.history = History(store, self.directory.states)
        """Turns of sessions, including turns that are no longer in memory."""
        self.inbound = Inbound(self.directory.states.redactor)
        self.sessions: Mapping[str, LiveSession] = self.directory.sessions
        """Sessions in memory, by id."""
        self.models = Models(
            store, self.sessions, self.settings, lambda stored: self.lifetimes.note_model(stored)
        )
        self._caches: tuple[Cache, ...] = (self.directory.states, self.models)
        """Caches of what the log says: session states and read models."""
        self._cache_service = Service("arp-caches", lambda: keep_up(self._caches))
        self.verifier = Verifier(store)
        self.lifetimes = _lifetimes(self)
        """How sessions enter and leave memory."""
        self._inputs = InputApplier(
            self.directory.states, self.runner, self.carry_out, self.check_takes_input
        )
        self.on_broken: Callable[[], None] = lambda: None
        """Called when a service failed for good; the caller that serves the hub has to end."""
        self._evictor = Service("arp-sweeper", self.lifetimes.evict_idle, self._service_failed)

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
            await self.lifetimes.removals.start()
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
        logger.critical("the server must stop: %s", why)
        self.on_broken()

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
        await self.reader.settled()
        await self.lifetimes.removals.aclose()
        await self.writer.aclose()
        self._replayer.close()
        await self._cache_service.aclose()
        await self.directory.states.aclose()
        await self.verifier.aclose()
        await self._evictor.aclose()
        if last is not None:
            await last()
        await self.store.aclose()

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
        grown = partial(self._quota.grown, live.session.owner)
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
        live, _ = await self.lifetimes.open(
            session_id, principal, workflow, provisional=provisional
        )
        return live

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
        return await self.lifetimes.delete(await self.directory.head(session_id, principal))

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

        The renderer's previous session is deleted if it was created for this renderer and never
        used.

        Raises:
            ArpError: See `Directory.open`. The renderer stays on its previous session, unless
                `hello` names that session or it was deleted to make room.
        """
        current, unused = self.session_of(viewer), self.unused(viewer)
        is_same = current is not None and current.id == hello.session_id
        if is_same:
            self.detach(viewer)
        open_it = partial(
            self.lifetimes.open, hello.session_id, principal, workflow, provisional=provisional
        )
        try:
            live, is_new = await open_it()
        except RateLimited:
            if unused is None or is_same:
                raise
            # The renderer's own unused session may be the one that exceeds the limit.
            self.detach(viewer)
            await self.lifetimes.drop_unused(unused)
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
            await self.lifetimes.drop_unused(unused)
        if is_new and not provisional and self.app.session_start is not None:
            self._start_greeting(live, principal)

    def _start_greeting(self, live: LiveSession, principal: Principal) -> None:
        """Start the turn in which the app greets the user of a new session."""
        if not self.settings.takes_input:
            return
        sender = InputSender(user=principal.known_as)
        _, effects = push(live.session, "", {}, SESSION_START, sender=sender)
        self.carry_out(live, effects)

    def session_of(self, viewer: Viewer) -> LiveSession | None:
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
        live = self.session_of(viewer)
        if live is None or live.followers:
            return None
        is_as_made = viewer.made_at == live.session.sequence
        return live if is_as_made or (viewer.made_at and _is_only_greeted(live)) else None

    @staticmethod
    def attach(viewer: Viewer, live: LiveSession, hello: RendererHello) -> None:
        """Attach a renderer to a session that its principal may see."""
        viewer.take_hello(hello)
        live.delivery.attach(viewer)
        sealed = live.session.sealed
        if sealed is not None:
            # The session shows its readable facts but cannot be continued; the renderer has to
            # learn why.
            message = ErrorMessage(payload=error_payload(sealed), session_id=live.id)
            live.after_write(partial(viewer.tell, message))

    def detach(self, viewer: Viewer) -> None:
        """Detach a renderer after its connection is closed. Running turns continue."""
        live = self.session_of(viewer)
        if viewer.delivery is not None:
            viewer.delivery.detach(viewer)
        if live is not None:
            live.touch()
            # Nothing of a provisional session is stored, so without renderers it is useless.
            if live.is_provisional and not live.viewers:
                self.lifetimes.drop_provisional(live)

    async def receive(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> None:
        """Apply an input from a renderer; send that renderer an error if the input is invalid."""
        try:
            live = await self._session_for_input(viewer, message, principal, workflow)
            closed = list(live.session.questions.closed)
            await self._inputs.apply(live, message, sender_of(viewer, principal), viewer.tell)
            # The user of this renderer knows that the question is closed, even if the renderer has
            # not displayed that yet. Without this, the next text of the user could be refused as a
            # late answer to that question.
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
        files: Sequence[IncomingFile] = (),
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
            viewers, shown = list(live.viewers.values()), live.delivery.cursor.seq
            sender = sender_among(viewers, principal, shown)
            reply = partial(settle, answer)
            await self._inputs.apply(live, message, sender, reply, traceparent)
            return await live.unless_gone(answer)
        except (ArpError, StoreError) as error:
            # An error with the id of an input refuses it. Without the id, clients send it again.
            input_id = None if isinstance(error, SessionMoved) else message.id
            payload = error_payload(error, input_id)
            return ErrorMessage(payload=payload, session_id=message.session_id)

    async def _store_files(self, live: LiveSession, files: Sequence[IncomingFile]) -> None:
        """Store uploaded files, within the quota of the session's owner."""
        self.check_takes_input()
        kept = self.files_of(live)
        new = {file.ref.sha256: file.ref.size for file in files}
        # A file that the session already has takes no room.
        for sha256 in new.keys() & live.session.input_log.files:
            del new[sha256]
        async with self._quota.room(live.session.owner, sum(new.values())):
            for file in files:
                await kept.upload(file.chunks())

    async def _session_for_input(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> LiveSession:
        """Return the session that an input is for; a draft client names it in every input."""
        live = self.session_of(viewer)
        if live is not None and message.session_id in (None, live.id):
            return live
        if live is None and viewer.delivery is not None:
            # The session left memory, so this renderer is attached to nothing and shows what may
            # not be durable. It has to join again before it may send inputs.
            gone = viewer.delivery.session_id
            raise SessionNotFound(f"session {gone!r} left memory; send hello again", detail=gone)
        said_hello = live is not None and viewer.profile.said_hello
        # A client that has sent `hello` gets a new session only by another `hello`, except from
        # an empty session that was made for it.
        if live is not None and said_hello and not (viewer.session_made and _is_empty(live)):
            raise UnknownObject(
                f"this connection is on session {live.id!r}; send hello to change it",
                detail=message.session_id,
            )
        found, is_new = await self.lifetimes.open(
            message.session_id, principal, workflow, provisional=False
        )
        unused = self.unused(viewer)
        self.detach(viewer)
        viewer.change_session(said_hello)
        found.delivery.attach(viewer)
        if is_new:
            viewer.made_at = found.session.sequence
        if unused is not None:
            await self.lifetimes.drop_unused(unused)
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
            reply: Receives the acknowledgement of the input, at that time too.
            serial: Serial of the input; `None` if it has none.
        """
        actions: list[Action] = []
        for effect in effects:
            if not isinstance(effect, Acknowledge):
                actions.append(partial(self.runner.run_effect, live, effect))
            elif reply is not None:
                ack = InputAck(
                    id=effect.input_id, session_id=live.id, turn_id=effect.turn_id, serial=serial
                )
                actions.append(partial(reply, ack))
        live.after_write(*actions)


def _directory(hub: Hub) -> Directory:
    """Return the directory of a hub; what it loads is recovered by `hub.lifetimes`."""

    def make(session: Session, stored: int) -> LiveSession:
        return LiveSession(session, hub.settings, hub.writer.mark, hub._replayer.start, stored)

    # The lifetimes are made from the directory, so it cannot have their method yet.
    def loaded(live: LiveSession, row: SessionMeta) -> None:
        hub.lifetimes.recover(live, row)

    return Directory(hub.store, hub.settings, hub.app.handlers, make, loaded, hub.now)


def _lifetimes(hub: Hub) -> Lifetimes:
    """Return the lifetimes of a hub that has all its other parts."""
    parts = LifetimeParts(
        hub.store,
        hub.blobs,
        hub.directory,
        hub.runner,
        hub.writer,
        hub.listing,
        hub._quota,
        hub._caches,
        hub.app.keepers,
    )
    return Lifetimes(parts, hub.settings, hub.carry_out)


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


def _close_for_restart(viewer: Viewer) -> Callable[[], None]:
    return lambda: viewer.outbox.close(1012, "restarting")
