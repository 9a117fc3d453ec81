"""The ASGI application of an `App`: one door for every request, behind it the routes.

Theory of operation. The hub starts with the ASGI lifespan, or with the first request where a parent
application does not run a mounted application's lifespan. Every request passes the guard first;
what it finds out stands in `scope["arp"]` as a `Caller`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router

from arp.access.guard import Guard, Refused
from arp.access.principal import Principal
from arp.access.settings import check_names
from arp.access.usage import Slot, UsageCounter, UsageLimits
from arp.control.connection import Connection
from arp.control.control import Control
from arp.control.desk import Plane
from arp.hub.hub import Hub
from arp.hub.peer import Peer
from arp.hub.saved import PREFIX
from arp.protocol.errors import ArpError, ErrorCode, RateLimited
from arp.redact.settings import Redaction
from arp.server.answers import SEALS, json_response, refusal, sealed
from arp.server.blobs import blob_routes
from arp.server.chat_events import chat_event_routes
from arp.server.chats import chat_routes
from arp.server.control_sockets import accept_rpc, is_rpc
from arp.server.cross_origin import answer_preflight, is_preflight, readable
from arp.server.file_cookie import FileCookie
from arp.server.inspect_page import INSPECT, inspect_routes
from arp.server.metrics import metrics_routes
from arp.server.own_secrets import with_own_secrets
from arp.server.page import page_routes
from arp.server.pictures import picture_routes
from arp.server.ready import verification
from arp.server.runs import run_routes
from arp.server.schemas import FOLDER as SCHEMAS
from arp.server.schemas import schema_routes
from arp.server.served import Served
from arp.server.session_routes import session_routes
from arp.server.sockets import accept_socket, refuse_socket
from arp.server.streams import stream_routes
from arp.server.uploads import Intake
from arp.server.workers import SeveralWorkers, check_alone
from arp.server.workflows import workflow_routes
from arp.store.errors import StoreError
from arp.store.location import open_blobs, open_store
from arp.telemetry.following import begin
from arp.transport.event_stream import Pulse
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Event, Receive, Scope, Send

if TYPE_CHECKING:
    from arp.telemetry.follower import Follower

OPEN_PATHS = ("/", "/health", "/ready", "/schemas", INSPECT)
OPEN_FOLDERS = ("/_static/", SCHEMAS, f"{INSPECT}/")
"""Served to whoever passes the guard: a page holds no secret and must load to ask for a token."""

LINKED = ("/", INSPECT, PREFIX)
"""Pages and files of ours that links on other sites may open."""

CODES = {401: ErrorCode.UNAUTHENTICATED, 503: ErrorCode.INTERNAL}
"""Codes of refusals by their HTTP status; the others are `PERMISSION_DENIED`."""

logger = logging.getLogger(__name__)


class Caller(Struct, frozen=True):
    """Who a request comes from."""

    principal: Principal | None
    slot: Slot


class Application:
    """Serves an app: WebSocket, server-sent events, lists, the page, metrics.

    Raises:
        ValueError: Others can reach it by a name, and nothing keeps them out.
    """

    def __init__(self, served: Served) -> None:
        check_names(served.access)
        self.served = served
        self.guard = Guard(served.access, LINKED)
        self.file_cookie = FileCookie()
        bounds = served.access.bounds
        self.intake = Intake(bounds, served.settings.limits)
        limits = UsageLimits(
            bounds.max_connections_per_user, bounds.max_connections_per_address, sys.maxsize
        )
        self.conversations = UsageCounter("connections", limits)
        """Requests and WebSockets that are being served."""
        self.streams: set[QueueOutbox] = set()
        """Event streams that are open; they must be told when the server stops."""
        self.pulses: dict[str, Pulse] = {}
        """Of those whose readers answer pings, by the id of the ping."""
        self.unknown_peers: set[Peer | Connection] = set()
        """Connections that have not shown a token yet."""
        self.in_transports: Callable[[], int] = lambda: 0
        """Bytes that the transports of all connections hold, where our own server runs."""
        self._hub: Hub | None = None
        self._refusal_logged = ""
        """Why the ledger could not be opened, as the log has it."""
        self._plane: Plane | None = None
        self._starting: asyncio.Task[Hub] | None = None
        self._follower: Follower | None = None
        self._router = Router(self._routes())

    def _routes(self) -> list[BaseRoute]:
        return [
            *stream_routes(self),
            *chat_event_routes(self),
            *chat_routes(self),
            *run_routes(self),
            *blob_routes(self),
            *session_routes(self),
            *metrics_routes(self),
            *page_routes(),
            *picture_routes(),
            *inspect_routes(),
            *schema_routes(),
            Route("/health", self._health),
            Route("/ready", self._ready),
            *workflow_routes(self),
        ]

    @property
    def workflow(self) -> str:
        """The agent of a session that names none."""
        return next(iter(self.served.handlers))

    def workflow_named(self, scope: Scope) -> str | None:
        """The agent that `?workflow=` names, or the first; `None` if there is none of that name."""
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        name = query.get("workflow", [self.workflow])[0].lstrip("/")
        return name if name in self.served.handlers else None

    def redaction(self) -> Redaction:
        """Gives what is taken out of facts: as it was set, and the secrets of this process."""
        served = self.served
        return with_own_secrets(served.settings.redaction, os.environ, served.access.token)

    async def hub(self) -> Hub:
        """Gives the hub, started.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
        """
        if self._hub is not None:
            return self._hub
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
        try:
            self._hub = await asyncio.shield(self._starting)
        finally:
            if self._starting is not None and self._starting.done():
                self._starting = None
        return self._hub

    async def plane(self) -> Plane:
        """Gives the control plane of the hub.

        Raises:
            StoreError: As `hub`.
        """
        hub = await self.hub()
        if self._plane is None or self._plane.hub is not hub:
            self._plane = Plane(hub, list(self.served.handlers))
        return self._plane

    async def control(self, principal: Principal | None = None) -> Control:
        """Gives the control plane to a Python program, in the name of a principal.

        Raises:
            StoreError: As `hub`.
        """
        return Control(await self.plane(), principal or Principal())

    async def _start(self) -> Hub:
        if not self.served.handlers:
            raise RuntimeError("the app has no agent; write @app.agent above an async function")
        check_alone()
        served, began_ns = self.served, time.time_ns()
        store = open_store(served.ledger)
        await store.open()
        settings = msgspec.structs.replace(served.settings, redaction=self.redaction())
        hub = Hub(store, open_blobs(served.ledger), served.handlers, settings)
        hub.commands, hub.about = served.commands, served.about
        hub.runner.debug = served.debug
        await hub.start()
        if settings.telemetry:
            self._follower = begin(hub, os.environ, began_ns)
        return hub

    async def aclose(self) -> None:
        """Lets turns finish or parks them, and closes the ledger."""
        self.close_streams()
        if self._hub is not None:
            hub, self._hub = self._hub, None
            follower, self._follower = self._follower, None
            await hub.aclose(follower.aclose if follower is not None else None)

    def hurry(self) -> None:
        """Lets `aclose` interrupt turns at once; may be called from a signal handler."""
        if self._hub is not None:
            self._hub.runner.hurry = True

    def close_streams(self) -> None:
        """Ends every event stream; their renderers come back."""
        for outbox in list(self.streams):
            outbox.close(1012, "restarting")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection, or the lifespan."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        refused = self.guard.check_source(scope)
        if refused is not None:
            await _refuse(scope, receive, send, refused)
            return
        origin = self.guard.listed_origin(scope) if scope["type"] == "http" else None
        if origin is not None:
            if is_preflight(scope):
                await answer_preflight(send, origin)
                return
            send = readable(send, origin)
        principal = await self.guard.principal(scope)
        if principal is None and scope["type"] == "http":
            principal = self.file_cookie.principal(scope, time.time())
        address = self.guard.address_of(scope)
        if principal is not None:
            principal = msgspec.structs.replace(principal, address=address)
        try:
            slot = Slot(self.conversations, principal or Principal("", address))
        except RateLimited as error:
            await _turn_away(scope, receive, send, error)
            return
        scope["arp"] = Caller(principal, slot)
        try:
            if scope["type"] == "websocket":
                accept = accept_rpc if is_rpc(scope) else accept_socket
                conversation = await accept(self, scope, receive, send)
                if conversation is not None:
                    await conversation
            elif principal is None and not _is_open(scope):
                reason = "a token is needed: Authorization: Bearer …"
                await _refuse(scope, receive, send, Refused(401, reason))
            elif not _is_open(scope) and (fault := await self._unopened()) is not None:
                await _refuse(scope, receive, send, Refused(503, fault))
            else:
                await self._route(scope, receive, send)
        finally:
            slot.release()

    async def shown_token(self, scope: Scope, token: str) -> Principal | None:
        """Return to whom a token belongs that came over a connection; it counts for them then.

        Args:
            scope: Of the connection's handshake.
            token: What the `hello` has.

        Raises:
            RateLimited: They have too many.
        """
        principal = await self.guard.check_token(token, scope)
        if principal is None:
            return None
        slot: Slot = scope["arp"].slot
        slot.assign(principal.name)
        return msgspec.structs.replace(principal, address=slot.address)

    async def _unopened(self) -> str | None:
        """Opens the ledger, if it is not; gives why it cannot be, for those who ask from outside.

        The log has it in full, once: it may name files.
        """
        if self._hub is not None:
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

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request; an error that a route lets through is answered with its code."""
        began = False

        async def sent(message: Event) -> None:
            nonlocal began
            if not began:
                began = True
                message["headers"] = sealed(message.get("headers", ()))
            await send(message)

        try:
            await self._router(scope, receive, sent)
        except (ArpError, HTTPException) as error:
            if began:
                raise
            await refusal(error)(scope, receive, sent)

    async def _health(self, _: Request) -> Response:
        """Tells whether this process serves sessions now; before the first request it could."""
        trouble = self._hub.trouble if self._hub is not None else ""
        if trouble:
            return JSONResponse({"status": "failing", "reason": trouble}, 503)
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        """Says whether the ledger is open and can be read, and what is known of its facts."""
        reason = await self._unopened()
        if reason is None:
            hub = await self.hub()
            try:
                await hub.store.open_sessions()
            except StoreError as error:
                reason = error.message
        if reason is not None:
            return json_response({"status": "not ready", "error": reason}, 503)
        found = verification(hub, request.scope["arp"].principal)
        return json_response({"status": "ready", "verification": found})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        reason: str | None = None
        try:
            await self.hub()
        except Exception as error:  # noqa: BLE001
            # The server shows the text and stops; nothing has been served yet.
            reason = str(error)
        if reason is not None:  # some servers raise it here, and would show the error above too
            await send({"type": "lifespan.startup.failed", "message": reason})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    is_open = path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
    return is_open and scope["method"] in ("GET", "HEAD")


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    if scope["type"] == "websocket":
        await refuse_socket(receive, send)
        return
    code = CODES.get(refused.status, ErrorCode.PERMISSION_DENIED)
    payload = {"error": refused.reason, "code": int(code)}
    body = json.dumps({"v": 1, "type": "error", "payload": payload}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *SEALS,
    ]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _turn_away(scope: Scope, receive: Receive, send: Send, error: RateLimited) -> None:
    """Says that there is no room now; clients come back by themselves."""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await refuse_socket(receive, send)
            return
        await receive()
    answer = refusal(error)
    answer.raw_headers = sealed(answer.raw_headers)
    await answer(scope, receive, send)
