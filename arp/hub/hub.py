"""What a server asks of sessions: renderers come and go, inputs are taken, agents are started.

Everything else of a session is in `live` (one session), `directory` (all of them), `writer`
(durability) and `runner` (agents).
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
"""A session that was asked for within this may be about to be used; it does not make room."""

AGENTS_END_S = 10.0
"""How long the agents of a session that is deleted may take to end, before it is removed."""

_REASONS = {
    1000: "the session was deleted",
    1011: "internal error",
    1013: "the ledger cannot be written",
}
"""What a renderer is told when its session is let go, by close code (protocol.md 5)."""

Reply: TypeAlias = Callable[[AgentMessage], None]
"""Takes the answer to an input, and hands it over when what came of the input is durable."""


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
        """The clock of facts, RFC 3339."""
        self.settings = settings or HubSettings()
        self.listing = Listing(store)
        """The lists of chats."""
        self.writer = Writer(store, now, self.listing, self._write_failed, self._cannot_go_on)
        self.blobs = blobs
        """Where files are kept."""
        self._quota = FileQuota(blobs, store, self.settings.max_stored_bytes_per_user)
        self.transfers = Transfers(
            self.find,
            self.carry_out,
            self.writer,
            lambda: list(self.sessions.values()),
            self.settings.transfer_key,
        )
        """Surfaces that go from one session to another."""
        calls = HubCalls(self.carry_out, self._fault, self.transfers.give)
        self.runner = Runner(app, self.writer, self.files_of, self.settings, calls)
        self._replayer = Replayer(store, self.settings)
        self.directory = Directory(store, self.settings, app.handlers, self._live, self._mend, now)
        self.history = History(store, self.directory.states)
        """The turns of sessions, also those that left the memory."""
        self.inbound = Inbound(self.directory.states.redactor)
        self.sessions: Mapping[str, LiveSession] = self.directory.sessions
        """The sessions in memory, by id."""
        self.models = Models(store, self.sessions, self.settings, self._note_model)
        self._caches: tuple[Cache, ...] = (self.directory.states, self.models)
        """What is stored behind the log."""
        self._keeper = Service("arp-caches", lambda: keep_up(self._caches))
        self.verifier = Verifier(store)
        self.removals = Removals(store, app.keepers, self._remove_here)
        """Sessions that are being deleted."""
        self._faults: dict[str, ArpError] = {}
        """Why sessions left the memory that come back at once."""
        self._fell_at: dict[str, int] = {}
        """The newest stored fact of sessions when they last had a fault."""
        self._returning: set[asyncio.Task[None]] = set()
        self.mended: dict[str, tuple[int, int]] = {}
        """Sessions in memory that had to be mended when they were read from the store: between
        which sequences the facts of it stand, behind the first and up to the second."""
        self.on_broken: Callable[[], None] = lambda: None
        """Is called when it cannot go on: whoever serves it ends."""
        self._sweeper = Service("arp-sweeper", self._sweep, self._cannot_go_on)

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Mend what a crash left, and begin to serve. The store is open already.

        Raises:
            StoreError: The ledger cannot be read; nothing is served.
        """
        name_unawaited_calls(track=self.app.debug)
        if self.settings.runtime_id is None:
            self.directory.runtime_id = await self.store.runtime_id()
        self.writer.start()
        self._keeper.start()
        self._sweeper.start()
        if self.settings.takes_input:
            await self.removals.start()
        for session_id in await self.store.open_sessions():
            try:
                await self.directory.load(session_id)
            except (StoreDamaged, InternalError) as error:
                logger.error("session %s: %s; the others are served", session_id, error)

    @property
    def trouble(self) -> str:
        """What keeps it from serving now; empty if nothing does."""
        services = (self.writer.service, self._sweeper, self._keeper)
        ended = [one.name for one in services if not one.is_running]
        return f"not running: {', '.join(ended)}" if ended else ""

    def _cannot_go_on(self, why: str) -> None:
        logger.critical("the server cannot go on: %s", why)
        self.on_broken()

    def _live(self, session: Session, stored: int) -> LiveSession:
        """Return what a session needs to be in memory."""
        mark, replay = self.writer.mark, self._replayer.start
        return LiveSession(session, self.settings, mark, replay, stored)

    def _mend(self, live: LiveSession, row: SessionMeta) -> None:
        """Close the turn that ran when the session was last in memory; go on with its queue.

        A stored state that could not be used is recorded first: the session is made of its facts.
        """
        self.listing.rows[live.id] = row
        if live.session.log.sealed is not None:
            return
        before = live.session.sequence
        reason = self.directory.states.repaired(live.id)
        if reason is not None and self.settings.takes_input:
            _repaired(live, self.directory.states.name, before, reason)
        effects = recover(live.session, self._faults.pop(live.id, None))
        live.keep_deadlines()
        self.runner.services.keep_surface_timers(live)
        if live.session.sequence > before:
            self.mended[live.id] = (before, live.session.sequence)
        if effects or live.session.has_recorded:
            self.carry_out(live, effects)

    async def _note_model(self, stored: StoredModel) -> None:
        """Record in a session that a model of it was stored, or made again from its facts.

        A session that is not in memory is not loaded for a model that was stored as usual.
        """
        if not self.settings.takes_input:
            return
        live = self.sessions.get(stored.session_id)
        if live is None and stored.repaired is not None:
            live = await self.directory.load(stored.session_id)
        if live is None or live.gone.done() or live.session.log.sealed is not None:
            return
        if stored.repaired is not None:
            _repaired(live, stored.name, stored.sequence, stored.repaired)
        else:
            payload = {"readModel": stored.name, "throughSequence": stored.sequence}
            live.session.record("snapshot.updated", {**payload, "bytes": stored.size})
        live.mark()

    async def aclose(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Let turns finish or park them, write everything, close connections and the store.

        Args:
            last: Is awaited when everything is written, before the store closes.
        """
        await self.runner.park()
        self.runner.close()
        self.transfers.close()
        self.inbound.close()
        for live in self.sessions.values():
            for viewer in live.viewers.values():
                live.after_write(_closing(viewer))
        await self.directory.settled()
        await self.removals.aclose()
        await self.writer.aclose()
        self._replayer.close()
        await self._keeper.aclose()
        await self.directory.states.aclose()
        await self.verifier.aclose()
        await self._sweeper.aclose()
        if last is not None:
            await last()
        await self.store.aclose()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.settings.idle_s / 4)
            self.evict(loop.time() - self.settings.idle_s)

    def evict(self, before: float) -> int:
        """Let sessions leave the memory that were last used before a time of the loop's clock.

        Returns:
            How many left. They come back from the store when somebody asks.
        """
        idle = self.directory.idle(before)
        self._let_go(idle)
        return len(idle)

    def _make_room(self, key: Key | None = None) -> None:
        """Let a tenth of the sessions go at once: finding them means looking at all.

        Args:
            key: Whose sessions; `None`: those of all.
        """
        idle = self.directory.idle(asyncio.get_running_loop().time() - FRESH_S)
        if key is not None:
            idle = [live for live in idle if key in live.shares]
        idle.sort(key=lambda live: live.used_at)
        self._let_go(idle[: max(1, self.settings.max_sessions // 10)])

    def _let_go(self, sessions: list[LiveSession]) -> None:
        for live in sessions:
            self._forget(live)
            for cache in self._caches:
                cache.rest(live.id, live)

    def _forget(self, live: LiveSession, why: ArpError | None = None) -> None:
        if self.directory.remove(live, why):
            self.listing.rows.pop(live.id, None)
        self.runner.forget(live)
        self.mended.pop(live.id, None)

    # -- sessions --------------------------------------------------------------------------------

    def recorder(self, live: LiveSession) -> Recorder:
        """Return what records facts outside of turns; `within(turn_id=…)` joins them to one."""

        def check_here() -> None:
            if live.gone.done():
                raise live.gone.result()

        scope = FactScope(live.session, {}, check_here, live.mark)
        return Recorder(scope, self.files_of(live).outputs)

    def files_of(self, live: LiveSession) -> SessionFiles:
        """Return the files of a session."""
        grown = partial(self._quota.grown, live.session.head.owner)
        return SessionFiles(partial(self.blobs.of, live.id), self.settings, live.gone, grown)

    def check_takes_input(self) -> None:
        """Refuse what would change a recording.

        Raises:
            PermissionDenied: The hub shows one: nobody says anything to it.
        """
        if not self.settings.takes_input:
            raise PermissionDenied("this is a recording: it takes no input")

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """As `Directory.find`."""
        return await self.directory.find(session_id, principal)

    async def open(
        self,
        session_id: str | None,
        principal: Principal,
        workflow: str,
        *,
        provisional: bool = False,
    ) -> LiveSession:
        """As `Directory.open`; a new session is written soon, unless it is provisional.

        When the memory is full, or the user or the address has as many sessions there as it may
        have, those leave it that were not used for longest and nobody needs now.
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
        if session_id not in self.sessions:
            full = self.directory.quota.full(keys_of(principal))
            if full is not None or len(self.sessions) >= self.settings.max_sessions:
                self._make_room(full)
        live, is_new = await self.directory.open(
            session_id, principal, workflow, provisional=provisional
        )
        if live.session.has_recorded:
            live.mark()
        return live, is_new

    async def _discard(self, live: LiveSession) -> None:
        """Remove a session that nobody has used, also from the ledger.

        One of which nothing went there costs nothing, and does not count as made.
        """
        self._forget(live, SessionNotFound("the session was never used", detail=live.id))
        if not live.was_gathered:
            self.directory.quota.unmade(live.shares)
            return
        try:
            if live.cache or live.session.turn_count:  # agents have worked for it
                await self._delete(live.session.head)
            else:
                await self.directory.removed(live.id, self._remove(live.session.head))
        except StoreError as error:
            logger.warning("session %s, which nobody used, stays in the ledger: %s", live.id, error)

    async def delete(self, session_id: str, principal: Principal) -> list[Remainder]:
        """Remove a session: what the ledger holds of it, its files, and what runtimes keep of it.

        Once it is begun it is finished, also after a restart. It need not be in memory.

        Returns:
            What is still there, because a runtime could not remove it.

        Raises:
            SessionNotFound: As `find`.
            PermissionDenied: It is a recording.
            StoreError: The ledger cannot be written.

        Cancel: Safe; as `Directory.removed`.
        """
        self.check_takes_input()
        return await self._delete(await self.directory.head(session_id, principal))

    async def _delete(self, head: Head) -> list[Remainder]:
        removing = self._remove_facts(head, self._drop_deleted(head))
        name = await self.directory.removed(head.session_id, removing)
        return await self.removals.remove_elsewhere(name)

    def _drop_deleted(self, head: Head) -> LiveSession | None:
        """Let a session leave the memory that is deleted; return it if it was there."""
        live = self.sessions.get(head.session_id)
        if live is None or live.session.head.epoch != head.epoch:
            return None
        self._drop(live, SessionNotFound("the session was deleted", detail=live.id), 1000)
        return live

    async def _remove_facts(self, head: Head, live: LiveSession | None) -> str:
        """Remove facts and files of a session, once its agents have ended."""
        name = await self.removals.begin(head)
        live = self._drop_deleted(head) or live  # it may have been read from the store meanwhile
        known: Sequence[Elsewhere] = ()
        if live is not None:
            await self.runner.ended(live, AGENTS_END_S)
            known = live.cache.get(CACHE_KEY, ())
        await self.writer.room()
        await self.removals.remove_facts(name, known)
        return name

    async def _remove_here(self, removal: Removal) -> None:
        """Remove what is here of a session; another one may have its id by now."""
        head = Head(removal.session_id, removal.epoch, removal.owner, "", "", "")
        meta = await self.store.session(head.session_id)
        if meta is None or meta.epoch == head.epoch:
            self._drop_deleted(head)
            await self._remove(head)

    async def _remove(self, head: Head) -> None:
        await self.writer.room()
        async with self.blobs.removing(head.session_id):
            await self.store.delete(head.session_id)
        self._quota.recount(head.owner)
        for cache in self._caches:
            cache.forget(head.session_id)
        self.runner.forget_debug(head.session_id)
        self._fell_at.pop(head.session_id, None)
        self.listing.changed(head.owner, head.session_id)

    async def rename(
        self, session_id: str, principal: Principal, title: str | None, pinned: bool | None
    ) -> SessionMeta:
        """Name or pin a session, durably; what is `None` stays as it is.

        Returns:
            Its row.

        Raises:
            SessionNotFound: As `find`.
            InvalidMessage: There is nothing to do.
            PermissionDenied: It is a recording.
        """
        self.check_takes_input()
        live = await self.find(session_id, principal)
        rename(live.session, title, pinned)
        live.mark()
        await live.written()
        row = self.listing.rows.get(session_id) or await self.store.session(session_id)
        assert row is not None  # it has facts, and with the first it got its row
        return row

    def _drop(self, live: LiveSession, why: ArpError, code: int) -> None:
        self._forget(live, why)
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
        """List the sessions of all users, newest first. Only for who may read all."""
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
        """Attach a renderer to the session that it names, or to a new one.

        The one that it was on goes if it was made for this renderer and nobody has used it.

        Raises:
            ArpError: As `open`; the renderer stays on the session that it was on.
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
            self.detach(viewer)  # its own unused session may be what takes the room
            await self._discard(unused)
            live, is_new = await open_it()
        if not is_same:
            unused = self.unused(viewer)
            self.detach(viewer)
        self.attach(viewer, live, hello)
        self.transfers.ask_again(live, viewer)
        if is_new or live is unused:
            viewer.made_at = live.session.sequence
        if unused is not None and unused is not live:
            await self._discard(unused)
        if is_new and not provisional and self.app.session_start is not None:
            self._greet(live, principal)

    def _greet(self, live: LiveSession, principal: Principal) -> None:
        """Begin the turn that greets who has begun a session."""
        if not self.settings.takes_input:
            return
        _, effects = push(live.session, "", {}, SESSION_START)
        live.began(principal.known_as, 0)
        self.carry_out(live, effects)

    def of(self, viewer: Viewer) -> LiveSession | None:
        """Return the session that a renderer is on, if that is in memory."""
        delivery = viewer.delivery
        live = self.sessions.get(delivery.session_id) if delivery is not None else None
        return live if live is not None and live.delivery is delivery else None

    def unused(self, viewer: Viewer) -> LiveSession | None:
        """Return the session of a renderer if it was made for it and nobody has used it.

        Whatever happens in a session, and whoever else joins it, is a fact of it.
        """
        live = self.of(viewer)
        if live is None or live.followers:
            return None
        is_as_made = viewer.made_at == live.session.sequence
        return live if is_as_made or (viewer.made_at and _is_only_greeted(live)) else None

    @staticmethod
    def attach(viewer: Viewer, live: LiveSession, hello: RendererHello) -> None:
        """Attach a renderer to a session that it may see."""
        viewer.take_hello(hello)
        live.delivery.attach(viewer)
        sealed = live.session.log.sealed
        if sealed is not None:
            message = ErrorMessage(payload=error_payload(sealed), session_id=live.id)
            live.after_write(partial(viewer.tell, message))

    def detach(self, viewer: Viewer) -> None:
        """Forget a renderer: its connection is gone. Nothing that runs is stopped."""
        live = self.of(viewer)
        if viewer.delivery is not None:
            viewer.delivery.detach(viewer)
        if live is not None:
            live.touch()
            if live.is_provisional and not live.viewers:
                self._forget(live)
                self.directory.quota.unmade(live.shares)

    async def receive(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> None:
        """Take an input from a renderer; what is wrong with it is told to that renderer."""
        try:
            live = await self._live_for(viewer, message, principal, workflow)
            profile = viewer.profile if viewer.said_hello else DRAFT
            sender = _Sender(profile, viewer.info, viewer.shown)
            closed = list(live.session.closed)
            await self._take(live, message, principal, sender, partial(live.answer, viewer))
            if list(live.session.closed) != closed:
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
        """Take an input that came without a connection (POST), and wait until it is durable.

        Args:
            message: The input.
            principal: From whom.
            workflow: The agent of a session that is new.
            files: What came with it: it becomes the session's, which may name it from now on.
            traceparent: The span outside that asks, as W3C Trace Context writes it.

        Returns:
            Its `ack`, or an `error` that says why it is refused.
        """
        message = msgspec.structs.replace(message, id=message.id or secrets.token_urlsafe(16))
        answer: asyncio.Future[AgentMessage] = asyncio.get_running_loop().create_future()
        try:
            live = await self.open(message.session_id, principal, workflow)
            if files:
                await self._keep(live, files)
                live = await self.open(live.id, principal, workflow)  # it may have left the memory
                live.session.input_log.remember_files(file.ref.sha256 for file in files)
            sender = _sender_among(list(live.viewers.values()), live.delivery.cursor.seq)

            def reply(message: AgentMessage) -> None:
                live.after_write(partial(settle, answer, message))

            await self._take(live, message, principal, sender, reply, traceparent)
            return await live.unless_gone(answer)
        except (ArpError, StoreError) as error:
            payload = error_payload(error, message.id)
            return ErrorMessage(payload=payload, session_id=message.session_id)

    async def _keep(self, live: LiveSession, files: Sequence[Arrived]) -> None:
        self.check_takes_input()
        kept = self.files_of(live)
        new = {file.ref.sha256: file.ref.size for file in files}
        for sha256 in new.keys() & live.session.input_log.files:
            del new[sha256]
        async with self._quota.room(live.session.head.owner, sum(new.values())):
            for file in files:
                await kept.upload(file.chunks())

    async def _take(
        self,
        live: LiveSession,
        message: Input,
        principal: Principal,
        sender: _Sender,
        reply: Reply,
        traceparent: str | None = None,
    ) -> None:
        if message.input_type not in SILENT:
            self.check_takes_input()
        serials = live.session.serials
        before = serials.last
        serials.stamp(asyncio.get_running_loop().time())
        profile, info, shown = sender
        if asks_to_turn(live.session, message):
            check_turning(live.session, message)
            survey, branch = await self._branch_for(live, message)
            count, waiting = live.session.turn_count, list(live.session.queue)
            effects = turn_back(live.session, message, survey, branch, info, traceparent)
            live.delivery.resync_all()
            live.keep_deadlines()
            self.runner.services.keep_surface_timers(live)
        else:
            count, waiting = live.session.turn_count, []
            if live.deadlines:
                live.expire_questions()
            read_typed = partial(typed_answer, profile)
            check = partial(self.runner.check_answer, live)
            check_in_time(live.session, message, read_typed, shown)
            effects = receive(live.session, message, read_typed, info, traceparent, check)
        live.began(principal.known_as, count, waiting)
        live.touch()
        serial = serials.last if serials.last > before else None
        self.carry_out(live, effects, partial(_with_serial, reply, serial))
        if message.input_type in SILENT:
            self.runner.surface_input(live, message)

    async def _branch_for(self, live: LiveSession, message: Input) -> tuple[Survey, Session]:
        """Return what an input to another branch needs: nothing is recorded behind it."""
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

    async def _live_for(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> LiveSession:
        """Return the session that an input means: a draft client names it in each."""
        live = self.of(viewer)
        if live is not None and message.session_id in (None, live.id):
            return live
        if live is None and viewer.delivery is not None:
            gone = viewer.delivery.session_id
            raise SessionNotFound(f"session {gone!r} left the memory; say hello again", detail=gone)
        said_hello = live is not None and viewer.profile.said_hello
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
            await self._discard(unused)
        return found

    def carry_out(
        self, live: LiveSession, effects: Sequence[Effect], reply: Reply | None = None
    ) -> None:
        """Carry out what a session asks for, when what it recorded is durable."""
        live.mark()
        for effect in effects:
            if not isinstance(effect, Acknowledge):
                live.after_write(partial(self._do, live, effect))
            elif reply is not None:
                ack = InputAck(id=effect.input_id, session_id=live.id, turn_id=effect.turn_id)
                reply(ack)

    def _do(
        self, live: LiveSession, effect: RunTurn | StopTurn | ResolveQuestion | SurfaceClosed
    ) -> None:
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
        """Let sessions go whose memory is ahead of the ledger; they come back from the store.

        One with a fault of its own comes back at once, and its turn ends with that error: nobody
        can say when somebody asks for it the next time.
        """
        for live in dirty:
            for viewer in live.viewers.values():
                viewer.tell(ErrorMessage(payload=error_payload(error)))
            self._drop(live, error, 1013 if isinstance(error, StoreError) else 1011)
            stored = live.stored
            if not isinstance(error, StoreError) and self._fell_at.get(live.id) != stored:
                self._fell_at[live.id] = stored  # where nothing was written since: not again
                self._faults[live.id] = error
                self.keep(asyncio.get_running_loop().create_task(self._come_back(live.id)))

    def keep(self, task: asyncio.Task[None]) -> None:
        """Keep a task from being forgotten while it runs."""
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    def _fault(self, live: LiveSession) -> None:
        """Let a session go that cannot go on as it is in memory."""
        if not live.gone.done():
            self._write_failed([live], InternalError("Internal error. The server's log has it."))

    async def _come_back(self, session_id: str) -> None:
        try:
            await self.directory.load(session_id)
        except ArpError as error:
            logger.error("session %s does not come back: %s", session_id, error)


class _Sender(NamedTuple):
    """What is known of the renderer that an input came from."""

    profile: Profile
    info: RendererInfo
    shown: int
    """The last fact that it shows for certain."""


def _sender_among(viewers: Sequence[Viewer], shown: int) -> _Sender:
    """Return what is known of who sent an input beside a connection: what all that watch share."""
    profiles = [one.profile if one.said_hello else DRAFT for one in viewers] or [DRAFT]
    infos = [one.info for one in viewers] or [UNKNOWN]
    return _Sender(
        profiles[-1] if all(one == profiles[-1] for one in profiles) else DRAFT,
        infos[-1] if all(one == infos[-1] for one in infos) else UNKNOWN,
        shown,
    )


def _with_serial(reply: Reply, serial: int | None, message: AgentMessage) -> None:
    """Answer an input with the serial by which it may open a popup."""
    if serial is not None and isinstance(message, InputAck):
        message = msgspec.structs.replace(message, serial=serial)
    reply(message)


def _is_only_greeted(live: LiveSession) -> bool:
    """Return whether nothing happened in a session but that the app greeted who began it."""
    settings = live.session.settings
    used = settings.chosen or settings.feedback or settings.name
    return is_only_greeted(live.session) and not used and len(live.viewers) <= 1


def _is_empty(live: LiveSession) -> bool:
    """Return whether nobody has said or shown anything in a session, nor named it."""
    session = live.session
    shown = any(tree.nodes for tree in session.screen.surfaces.values())
    is_named = bool(session.title or session.threads.begun)
    return session.turn_count == 0 and not shown and not is_named


def _repaired(live: LiveSession, name: str, sequence: int, reason: str) -> None:
    payload = {"readModel": name, "throughSequence": sequence, "reason": reason}
    live.session.record("snapshot.repaired", payload)


def _closing(viewer: Viewer) -> Callable[[], None]:
    return lambda: viewer.outbox.close(1012, "restarting")
