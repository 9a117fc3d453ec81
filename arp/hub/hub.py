"""The directory of sessions, and what renderers ask of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from msgspec import Struct

from arp.hub.live import LiveSession
from arp.hub.replay import Replayer
from arp.hub.runner import Handler, Runner
from arp.hub.settings import HubSettings
from arp.hub.viewer import Viewer
from arp.hub.writer import Writer
from arp.ledger.fact import decode
from arp.protocol.errors import (
    ArpError,
    RateLimited,
    SessionNotFound,
    UnknownObject,
    error_payload,
)
from arp.protocol.messages import AgentMessage, ErrorMessage, Input, InputAck, RendererHello
from arp.session.effects import Acknowledge, CancelTurn, Effect, ResolveQuestion, StartTurn
from arp.session.inputs import receive
from arp.session.recovery import recover, restore
from arp.session.session import Head, Session
from arp.store.blobs import Blobs
from arp.store.errors import StoreError
from arp.store.store import SessionMeta, Store
from arp.surface.profile import DRAFT, Profile, profile_of

logger = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[AgentMessage], None]
"""Where the answer to an input goes."""

READ_CHUNK = 1000
"""Facts read at once while a session is loaded."""


class Principal(Struct, frozen=True):
    """Who is at the other end of a connection; sessions belong to one."""

    name: str = ""


def utc_now() -> str:
    """Gives the time as RFC 3339 with microseconds, so that texts sort as times do."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Hub:
    """Sessions, their renderers and their agents, over one store."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        handlers: Mapping[str, Handler],
        settings: HubSettings | None = None,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self.store = store
        self.blobs = blobs
        self.handlers = handlers
        self.settings = settings or HubSettings()
        self.sessions: dict[str, LiveSession] = {}
        self.writer = Writer(store, now, self._store_failed)
        self.runner = Runner(handlers, self.writer, blobs, self.settings, self.carry_out)
        self._now = now
        self._replayer = Replayer(store, self.settings)
        self._loading: dict[str, asyncio.Future[LiveSession | None]] = {}
        self._sweeper: asyncio.Task[None] | None = None

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Mends what a crash left, and begins to serve. The store is open already.

        Raises:
            StoreError: The ledger cannot be read; nothing is served.
        """
        self.writer.start()
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep(), name="arp-sweeper")
        for session_id in await self.store.open_sessions():
            live = await self._load(session_id)
            if live is not None and live.session.head.workflow in self.handlers:
                self.carry_out(live, recover(live.session))

    async def aclose(self) -> None:
        """Lets turns finish or parks them, writes everything, closes connections and the store."""
        await self.runner.park()
        for live in self.sessions.values():
            for viewer in list(live.viewers.values()):
                live.after_write(lambda viewer=viewer: viewer.outbox.close(1012, "restarting"))  # type: ignore[misc]
        await self.writer.aclose()
        self._replayer.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.store.aclose()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.settings.idle_s / 4)
            self.evict(loop.time() - self.settings.idle_s)

    def evict(self, before: float) -> int:
        """Lets sessions leave the memory that were last used before a time of the loop's clock.

        Returns:
            How many left. They come back from the store when somebody asks.
        """
        idle = [live for live in self.sessions.values() if live.idle and live.used_at < before]
        for live in idle:
            session_id = live.session.head.session_id
            del self.sessions[session_id]
            self.writer.forget(session_id)
            self.runner.forget(session_id)
        return len(idle)

    # -- finding sessions ----------------------------------------------------------------------------

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """Gives a session that exists and belongs to the principal.

        Raises:
            SessionNotFound: There is none, or it belongs to somebody else; the same error for both.
        """
        live = self.sessions.get(session_id) or await self._load(session_id)
        if live is None or live.session.head.owner != principal.name:
            raise SessionNotFound(f"no session {session_id!r}", detail=session_id)
        live.used_at = asyncio.get_running_loop().time()
        return live

    async def open(self, session_id: str | None, principal: Principal, workflow: str) -> LiveSession:
        """Gives a session, made if there is none.

        Raises:
            SessionNotFound: It belongs to somebody else.
            RateLimited: Too many sessions are in memory.
        """
        if session_id is not None:
            live = self.sessions.get(session_id) or await self._load(session_id)
            if live is not None:
                return await self.find(session_id, principal)
        if len(self.sessions) >= self.settings.max_sessions:
            raise RateLimited("too many sessions; try again later")
        return self._create(session_id or secrets.token_urlsafe(16), principal, workflow)

    def _create(self, session_id: str, principal: Principal, workflow: str) -> LiveSession:
        epoch, created_at = secrets.token_hex(8), self._now()
        head = Head(session_id, epoch, principal.name, workflow, created_at=created_at)
        session = Session(head, self.settings.limits, self.settings.policy)
        owner = {"owner": principal.name} if principal.name else {}
        session.record("session.created", {"epoch": epoch, "workflow": workflow, **owner})
        return self._add(session)

    async def _load(self, session_id: str) -> LiveSession | None:
        """Reads a session from the store, once however many ask."""
        loading = self._loading.get(session_id)
        if loading is None:
            loading = asyncio.ensure_future(self._read(session_id))
            self._loading[session_id] = loading
            loading.add_done_callback(lambda _: self._loading.pop(session_id, None))
        return await asyncio.shield(loading)

    async def _read(self, session_id: str) -> LiveSession | None:
        meta = await self.store.session(session_id)
        if meta is None:
            return None
        facts, after = [], 0
        while chunk := await self.store.read(session_id, after, READ_CHUNK):
            facts.extend(decode(body) for _, body in chunk)
            after = chunk[-1][0]
        if session_id in self.sessions:
            return self.sessions[session_id]
        head = Head(
            meta.id, meta.epoch, meta.owner, meta.workflow, created_at=meta.created_at
        )
        session = restore(head, facts, self.settings.limits, self.settings.policy)
        return self._add(session)

    def _add(self, session: Session) -> LiveSession:
        live = LiveSession(session, self.settings, self.writer.mark)
        live.used_at = asyncio.get_running_loop().time()
        live.replay = self._replayer.start
        self.sessions[session.head.session_id] = live
        return live

    async def delete(self, session_id: str, principal: Principal) -> None:
        """Removes a session and everything that the ledger holds of it.

        Raises:
            SessionNotFound: As `find`.
        """
        live = await self.find(session_id, principal)
        self._drop(live, 1000, "the session was deleted")
        await self.writer.room()
        await self.store.delete(session_id)

    def _drop(self, live: LiveSession, code: int, reason: str) -> None:
        session_id = live.session.head.session_id
        live.closed = True
        if live.task is not None:
            live.task.cancel()
        for viewer in list(live.viewers.values()):
            viewer.outbox.close(code, reason)
        self.sessions.pop(session_id, None)
        self.writer.forget(session_id)
        self.runner.forget(session_id)

    async def metas(
        self,
        principal: Principal,
        *,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[SessionMeta]:
        """Lists the principal's sessions, newest first."""
        return await self.store.sessions(
            owner=principal.name, workflow=workflow, before=before, limit=limit
        )

    # -- renderers -----------------------------------------------------------------------------------

    async def hello(
        self, viewer: Viewer, hello: RendererHello, principal: Principal, workflow: str
    ) -> None:
        """Attaches a renderer to the session that it names, or to a new one.

        Raises:
            ArpError: As `open`; the renderer is attached to nothing.
        """
        self.detach(viewer)
        live = await self.open(hello.session_id, principal, workflow)
        self.attach(viewer, live, hello)

    @staticmethod
    def attach(viewer: Viewer, live: LiveSession, hello: RendererHello) -> None:
        """Attaches a renderer to a session that it may see."""
        viewer.profile = profile_of(hello.capabilities)
        viewer.resume = hello.resume
        viewer.unacknowledged = [] if viewer.profile.takes("frame-ack") else None
        live.attach(viewer)

    def detach(self, viewer: Viewer) -> None:
        """Forgets a renderer: its connection is gone. Nothing that runs is stopped."""
        if viewer.live is not None:
            viewer.live.used_at = asyncio.get_running_loop().time()
            viewer.live.detach(viewer)

    async def receive(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> None:
        """Takes an input from a renderer; what is wrong with it is told to that renderer."""
        try:
            live = await self._live_for(viewer, message, principal, workflow)
            self._take(live, message, viewer.profile, viewer.tell)
        except (ArpError, StoreError) as error:
            session_id = viewer.live.session.head.session_id if viewer.live else message.session_id
            viewer.tell(ErrorMessage(payload=error_payload(error, message.id), session_id=session_id))

    async def submit(self, message: Input, principal: Principal, workflow: str) -> AgentMessage:
        """Takes an input that came without a connection (POST), and waits until it is durable.

        Returns:
            Its `ack`, or an `error` that says why it is refused.
        """
        message = msgspec.structs.replace(message, id=message.id or secrets.token_urlsafe(16))
        answer: asyncio.Future[AgentMessage] = asyncio.get_running_loop().create_future()
        try:
            live = await self.open(message.session_id, principal, workflow)
            watching = [viewer.profile for viewer in live.viewers.values()]
            self._take(live, message, watching[-1] if watching else DRAFT, answer.set_result)
            return await answer
        except (ArpError, StoreError) as error:
            payload = error_payload(error, message.id)
            return ErrorMessage(payload=payload, session_id=message.session_id)

    def _take(self, live: LiveSession, message: Input, profile: Profile, reply: Reply) -> None:
        effects = receive(live.session, message, profile)
        live.used_at = asyncio.get_running_loop().time()
        self.carry_out(live, effects, reply)

    async def _live_for(
        self, viewer: Viewer, message: Input, principal: Principal, workflow: str
    ) -> LiveSession:
        """Gives the session that an input means: a draft client names it in each."""
        live = viewer.live
        if live is not None and message.session_id in (None, live.session.head.session_id):
            return live
        if live is not None and viewer.profile.said_hello:
            raise UnknownObject(
                f"this connection is on session {live.session.head.session_id!r}; say hello to change it",
                detail=message.session_id,
            )
        found = await self.open(message.session_id, principal, workflow)
        self.detach(viewer)
        viewer.profile = DRAFT
        found.attach(viewer)
        return found

    def carry_out(
        self, live: LiveSession, effects: Sequence[Effect], reply: Reply | None = None
    ) -> None:
        """Does what a session asks for, when what it recorded is durable."""
        live.mark()
        for effect in effects:
            live.after_write(lambda effect=effect: self._do(live, effect, reply))  # type: ignore[misc]

    def _do(self, live: LiveSession, effect: Effect, reply: Reply | None) -> None:
        match effect:
            case StartTurn(turn_id):
                self.runner.start(live, turn_id)
            case CancelTurn(turn_id):
                self.runner.cancel(live, turn_id)
            case ResolveQuestion(action_id, value):
                if live.turn is not None:
                    live.turn.resolve(action_id, value)
            case Acknowledge(input_id, turn_id):
                if reply is not None:
                    session_id = live.session.head.session_id
                    reply(InputAck(id=input_id, session_id=session_id, turn_id=turn_id))

    def _store_failed(self, dirty: Sequence[LiveSession], error: StoreError) -> None:
        """What is in memory is ahead of the ledger: those sessions go, and come back from the store."""
        for live in dirty:
            for viewer in live.viewers.values():
                viewer.tell(ErrorMessage(payload=error_payload(error)))
            self._drop(live, 1013, "the ledger cannot be written")
