"""The state that the routes of one server share: the app, its hub, and open connections.

Theory of operation. The hub starts with the ASGI lifespan. If a parent application does not run the
lifespan of a mounted application, the hub starts with the first request. `Application` puts a
`Requester` into `scope["arp"]` before a route runs; routes find this state in it.

After the hub has ended it can start again, also in another event loop. If nothing else closes the
app, the end of the event loop does: asyncio then cancels all tasks, and the task `_LoopEnd` closes
the app when it is cancelled. It interrupts the running turns first, so that no turn mistakes the
cancellation of its task for a cancel request of its user.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from starlette.requests import HTTPConnection
from starlette.routing import Route

from arp.access.guard import Guard
from arp.access.leases import ENDED, Ask, Lease, Leases
from arp.access.own_code import OwnCodeDetector
from arp.access.principal import Principal
from arp.access.settings import check_names
from arp.access.tokens import Tokens
from arp.access.usage import Slot, UsageCounter, UsageLimits
from arp.control.connection import Connection
from arp.control.context import Plane
from arp.control.control import Control
from arp.hub.hub import Hub
from arp.hub.peers.peer import Peer
from arp.hub.readers.session_reader import ReadableSession
from arp.hub.runner import HubApp
from arp.live.delivery import Viewer
from arp.live.live_session import LiveSession
from arp.live.tasks import ServerTask
from arp.protocol.blob_path import PREFIX
from arp.redact.settings import Redaction
from arp.server.lifespan import check_loop
from arp.server.login.file_cookie import FileCookie
from arp.server.login.logins import CALLBACK, LOGIN, LoginBook
from arp.server.login.own_secrets import with_own_secrets
from arp.server.page import INSPECT
from arp.server.settings import AppDescription
from arp.server.uploads import Intake
from arp.server.workers import SeveralWorkers, check_alone
from arp.store.errors import StoreError
from arp.store.location import (
    logins_of,
    open_blobs,
    open_store,
    password_of,
    starts_of,
    tokens_of,
)
from arp.telemetry.settings import begin
from arp.transport.event_stream import Pulse
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Scope

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from arp.telemetry.follower import Follower

LINKED = ("/", INSPECT, PREFIX, LOGIN, CALLBACK)
"""Paths of this server that links on other sites may open."""

logger = logging.getLogger(__name__)


class _LoopEnd(ServerTask[None]):
    """A task that closes a server when its event loop ends."""

    def __init__(self, state: ServerState) -> None:
        self._server = state
        super().__init__(self._wait(), loop=asyncio.get_running_loop(), name="arp-loop-end")

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task, and mark running turns as interrupted by the stop."""
        is_cancelled = super().cancel(msg)
        if is_cancelled and self._server.running is not None:
            self._server.running.runner.interrupt()
        return is_cancelled

    async def _wait(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if self._server.ends_with(self):
                await self._server.aclose()
            raise


class ServerState:
    """The served app and the objects that its requests share.

    Raises:
        ValueError: Other machines can reach the app by a host name and nothing restricts access; or
            the packages for a login at a provider are not installed.
    """

    def __init__(self, served: AppDescription) -> None:
        tokens = Tokens(_path_beside(tokens_of, served.ledger))
        check_names(served.access, has_tokens=tokens.are_used())
        self.served = served
        oidc = served.access.oidc
        logins = _path_beside(logins_of, served.ledger)
        self.logins = LoginBook(oidc, logins) if oidc is not None else None
        """Browser logins that this server manages; `None` if it manages none."""
        self.own_code = self._own_code(tokens)
        """Check that refuses commands run by the app itself; `None` if the app runs no commands."""
        self.guard = Guard(served.access, LINKED, tokens, self.logins, self.own_code)
        self.leases = Leases(self.guard.is_valid, served.access.recheck_s)
        """Leases of requests and connections that end when their user loses access."""
        bounds = served.access.bounds
        self.intake = Intake(bounds, served.settings.limits)
        limits = UsageLimits(
            bounds.max_connections_per_user, bounds.max_connections_per_address, sys.maxsize
        )
        self.conversations = UsageCounter("connections", limits)
        """Counter of the requests and WebSockets that are being served."""
        self.file_cookie = FileCookie()
        self.streams: set[QueueOutbox] = set()
        """Open event streams."""
        self.pulses: dict[str, Pulse] = {}
        """Ping timers of the event streams with readers that answer pings, by ping id."""
        self.unknown_peers: set[Peer | Connection] = set()
        """Connections that have not sent a token yet."""
        self.in_transports: Callable[[], int] = lambda: 0
        """Returns the bytes in the transports of all connections; 0 under another server."""
        self.running: Hub | None = None
        """The hub, once it has started."""
        self._refusal_logged = ""
        """Last logged reason why the ledger could not be opened."""
        self._plane: Plane | None = None
        self._starting: asyncio.Task[Hub] | None = None
        self._follower: Follower | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Event loop of the hub; `None` while there is no hub."""
        self._loop_end: _LoopEnd | None = None
        self._has_parts = False
        """Whether the parts of the app are open for this server."""

    def _own_code(self, tokens: Tokens) -> OwnCodeDetector | None:
        served = self.served
        if not served.runs_commands:
            return None
        wants_token = served.start_token != "no" and served.access.start_token
        has_token = wants_token and served.access.is_open and not tokens.are_used()
        return OwnCodeDetector(_path_beside(starts_of, served.ledger), has_token=has_token)

    # -- the app ---------------------------------------------------------------------------------

    @property
    def workflow(self) -> str:
        """Default agent of a session."""
        return next(iter(self.served.handlers))

    def workflow_named(self, scope: Scope) -> str | None:
        """Return the agent that `?workflow=` names, or the default; `None` if it does not exist."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        name = query.get("workflow", [self.workflow])[0].lstrip("/")
        return name if name in self.served.handlers else None

    @property
    def start_token(self) -> str:
        """Token of this start; empty if there is none."""
        return self.own_code.token if self.own_code is not None else ""

    def redaction(self) -> Redaction:
        """Return the redaction settings, extended by the secrets of this process."""
        access = self.served.access
        secret = access.oidc.client_secret if access.oidc is not None else None
        key = self.served.settings.transfer_key
        password = password_of(self.served.ledger)
        own = [one for one in (access.token, secret, key, self.start_token, password) if one]
        return with_own_secrets(self.served.settings.redaction, os.environ, own)

    # -- the hub ---------------------------------------------------------------------------------

    async def hub(self) -> Hub:
        """Return the hub; start it if it is not running.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
            RuntimeError: The app is served in another event loop.
        """
        check_loop(self._loop)
        if self.running is not None:
            return self.running
        if self._starting is None:
            self._loop = asyncio.get_running_loop()
            self._starting = self._loop.create_task(self._start())
        starting = self._starting
        try:
            # Several requests may wait for the start; cancelling one must not cancel the start.
            self.running = await asyncio.shield(starting)
        finally:
            # After a failed start, the next request must be able to try again, in any event loop.
            if self._starting is starting and starting.done():
                self._starting = None
                if self.running is None:
                    self._loop = None
        return self.running

    async def plane(self) -> Plane:
        """Return the control plane of the hub.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
        """
        hub = await self.hub()
        if self._plane is None or self._plane.hub is not hub:
            self._plane = Plane(hub, list(self.served.handlers))
        return self._plane

    async def control(self, principal: Principal) -> Control:
        """Return the control plane for a principal.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
        """
        return Control(await self.plane(), principal)

    async def _start(self) -> Hub:
        if not self.served.handlers:
            raise RuntimeError("the app has no agent; write @app.agent above an async function")
        check_alone()
        await self.served.open_parts()
        self._has_parts = True
        try:
            hub = await self._start_hub()
        except BaseException:
            await self._close_parts()
            raise
        self._loop_end = _LoopEnd(self)
        return hub

    async def _start_hub(self) -> Hub:
        served, began_ns = self.served, time.time_ns()
        store = open_store(served.ledger)
        await store.open()
        settings = msgspec.structs.replace(served.settings, redaction=self.redaction())
        app = HubApp(
            served.handlers,
            served.commands,
            served.about,
            served.tools,
            served.debug,
            served.command_handlers,
            served.answer_handlers,
            served.app_state,
            served.session_start,
            served.user_settings,
            served.feedback_handlers,
            served.origin_handlers,
            served.keepers,
        )
        hub = Hub(store, open_blobs(served.ledger), app, settings)
        await hub.start()
        served.hub_changed(hub)
        if self.own_code is not None:
            self.own_code.save()
        if self.start_token and served.start_token == "logged":
            logger.warning(
                "agents of this app run commands, so every client needs the token of this start: "
                "open the page with #token=%s, or give App an Access",
                self.start_token,
            )
        if settings.telemetry:
            self._follower = begin(hub, os.environ, began_ns)
        return hub

    async def ensure_open(self) -> str | None:
        """Open the ledger if it is not open; if that fails, return a message for clients.

        The full error may contain file names, so clients do not get it. It is logged, once.
        """
        if self.running is not None:
            return None
        try:
            await self.hub()
        except StoreError as error:
            if str(error) != self._refusal_logged:
                self._refusal_logged = str(error)
                logger.error("%s", error)
            if error.retryable or isinstance(error, SeveralWorkers):
                return error.message
            return "the ledger cannot be opened; the server's log says why"
        return None

    async def aclose(self) -> None:
        """Stop the running turns, then close the ledger. May be repeated.

        Running turns get time to finish. Turns that wait for a user or take longer are interrupted;
        their questions stay open.

        Raises:
            RuntimeError: The app is served in another event loop.
        """
        check_loop(self._loop)
        self.close_streams()
        self.guard.tokens.close()
        self.leases.close()
        if self.logins is not None:
            await self.logins.aclose()
        starting, self._starting = self._starting, None
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
        loop_end, self._loop_end = self._loop_end, None
        # `_LoopEnd` itself calls this method at the end of the loop; it must not stop itself.
        if loop_end is not None and loop_end is not asyncio.current_task():
            loop_end.stop()
        hub, self.running = self.running, None
        follower, self._follower = self._follower, None
        try:
            if hub is not None:
                self.served.hub_changed(None)
                await hub.aclose(follower.aclose if follower is not None else None)
        finally:
            await self._close_parts()
            self._loop = None

    def ends_with(self, task: _LoopEnd) -> bool:
        """Return whether a task is the current `_LoopEnd`; an old one must not close the server."""
        return self._loop_end is task

    async def _close_parts(self) -> None:
        if self._has_parts:
            self._has_parts = False
            await self.served.close_parts()

    def hurry(self) -> None:
        """Make `aclose` interrupt turns at once. May be called from a signal handler."""
        if self.running is not None:
            self.running.runner.hurry()

    # -- connections -----------------------------------------------------------------------------

    async def admit_token(self, scope: Scope, token: str) -> Principal | None:
        """Return the principal of a token from a `hello`, and count the connection for its user.

        Args:
            scope: Scope of the connection's handshake.
            token: Token in the `hello`.

        Returns:
            `None` if the token is not valid or the connection has been ended.

        Raises:
            RateLimited: The user has too many connections.
        """
        asker: Requester = scope["arp"]
        principal = await self.guard.check_token(token, scope)
        # The connection may have ended while the hook was asked; its lease must not begin again.
        if principal is None or asker.lease.is_over:
            return None
        asker.slot.assign(principal.name)
        self.begin_lease(asker.lease, principal, partial(self.guard.recheck, scope, token))
        return msgspec.structs.replace(principal, address=asker.slot.address)

    def begin_lease(self, lease: Lease, principal: Principal | None, ask: Ask) -> None:
        """Start a lease that ends when the principal loses access.

        Args:
            lease: Lease of the request or connection.
            principal: Authenticated principal; `None` if there is none yet.
            ask: Asks the hook again who the principal is.
        """
        is_asked = principal is not None and self.guard.asks_hook(principal)
        lease.begin(principal, ask if is_asked else None)

    def close_streams(self) -> None:
        """End every event stream; the renderers reconnect."""
        for outbox in list(self.streams):
            outbox.close(1012, "restarting")


def _path_beside(path_of: Callable[[str], Path | None], ledger: str) -> Path | None:
    try:
        return path_of(ledger)
    except StoreError:
        return None  # opening the ledger reports the error


class Requester(Struct, frozen=True):
    """The sender of a request, with the state of the server; routes find it in `scope["arp"]`."""

    state: ServerState
    slot: Slot
    lease: Lease
    known: Principal | None
    """Authenticated principal. A sender without one may use the open paths, or send a token in a
    `hello`."""

    @property
    def principal(self) -> Principal:
        """Authenticated principal. Exists on every path that is not open."""
        assert self.known is not None
        return self.known

    @contextmanager
    def streaming(self, outbox: QueueOutbox) -> Iterator[None]:
        """Register an event stream for the duration of a block.

        The stream ends when the server stops or when its user loses access.
        """
        streams = self.state.streams
        streams.add(outbox)
        self.lease.when_ended(lambda: outbox.cut(1008, ENDED))
        try:
            yield
        finally:
            streams.discard(outbox)

    async def hub(self) -> Hub:
        """Return the started hub; see `ServerState.hub`."""
        return await self.state.hub()

    async def control(self) -> Control:
        """Return the control plane for the sender of the request."""
        return await self.state.control(self.principal)

    async def read(self, session_id: str) -> ReadableSession:
        """Return a session of the sender, to look at; it is not loaded.

        Raises:
            SessionNotFound: The session does not exist or belongs to another user.
        """
        return await (await self.hub()).reader.read(session_id, self.principal)

    async def find(self, session_id: str) -> LiveSession:
        """Return a session of the sender, loaded into memory.

        Raises:
            SessionNotFound: The session does not exist or belongs to another user.
        """
        return await (await self.hub()).find(session_id, self.principal)


def requester(request: HTTPConnection) -> Requester:
    """Return the requester of a request."""
    found: Requester = request.scope["arp"]
    return found


class StreamRoute(Route):
    """A route with an ASGI application as its endpoint.

    Starlette would wrap a function, and the wrapper would stay in memory as long as the stream.
    """

    def __init__(self, path: str, serve: ASGIApp, method: str | None = "GET") -> None:
        super().__init__(path, serve, methods=None if method is None else [method])
        self.app = serve
        # For a function without methods, Starlette accepts GET only.
        self.methods = None if method is None else self.methods


class CutOutbox(Protocol):
    """An outbox that can drop its queued frames."""

    def cut(self, code: int, reason: str) -> None:
        """Close the connection and drop the queued frames."""


def expel(peer: Peer | Connection, outbox: CutOutbox) -> None:
    """Close the connection of a user who has lost access, and ignore what they still send."""
    peer.expel()
    outbox.cut(1008, ENDED)


def log_arrival(viewer: Viewer, way: str, scope: Scope | None = None) -> None:
    """Log that a renderer has connected.

    Args:
        viewer: The renderer.
        way: Name of its transport.
        scope: Scope of its request. Headers and query are never logged: they may contain a token.
    """
    client = scope.get("client") if scope is not None else None
    origin = f" from {client[0]}:{client[1]}" if client else ""
    logger.info("renderer %s connected by %s (%s)%s", viewer.id, way, viewer.encoding, origin)
