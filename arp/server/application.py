"""The ASGI application of an `App`: one door for every request, behind it the routes.

Theory of operation. Every request passes the guard first; what it finds out stands in
`scope["arp"]` as a `Requester`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

import msgspec
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Router

from arp.access.guard import Denial
from arp.access.leases import ENDED, Lease
from arp.access.principal import Principal
from arp.access.usage import Slot
from arp.control.control import Control
from arp.hub.hub import Hub
from arp.protocol.errors import ArpError, ErrorCode, ErrorPayload, RateLimited
from arp.protocol.messages import ErrorMessage
from arp.server.answers import json_response, refusal, sealed
from arp.server.login.logins import CALLBACK, LOGIN
from arp.server.page import INSPECT, PICTURE, page_routes
from arp.server.ports.sockets import accept_socket, refuse_socket
from arp.server.ports.streams import TRANSPORT_ROUTES
from arp.server.routes.blobs import BLOB_ROUTES
from arp.server.routes.chats import CHAT_ROUTES
from arp.server.routes.login_routes import LOGIN_ROUTES
from arp.server.routes.monitoring import MONITORING_ROUTES
from arp.server.routes.schemas import FOLDER as SCHEMAS
from arp.server.routes.schemas import schema_routes
from arp.server.routes.session_routes import SESSION_ROUTES
from arp.server.routes.user_routes import USER_ROUTES
from arp.server.routes.workflows import WORKFLOW_ROUTES
from arp.server.settings import Served
from arp.server.state import Requester, ServerState
from arp.transport.websocket import Event, Receive, Scope, Send

logger = logging.getLogger(__name__)

OPEN_PATHS = (
    *("/", "/health", "/ready", "/schemas", INSPECT, PICTURE),
    *(LOGIN, CALLBACK, "/_api/user"),
)
OPEN_FOLDERS = ("/_static/", SCHEMAS, f"{INSPECT}/")
"""Served without a token: a page holds no secret and must load to ask for one, and a browser sends
none for a frame."""

NOTHING_KEEPS_OUT = (
    "nothing keeps anybody of this machine out of this mounted app: dependencies and middleware of "
    "the application around it do not guard it; give App an Access(token=…) or an "
    "Access(authenticate=…)"
)

CODES = {401: ErrorCode.UNAUTHENTICATED, 503: ErrorCode.INTERNAL}
"""Codes of refusals by their HTTP status; the others are `PERMISSION_DENIED`."""


ROUTES = [
    *TRANSPORT_ROUTES,
    *CHAT_ROUTES,
    *BLOB_ROUTES,
    *SESSION_ROUTES,
    *page_routes(),
    *schema_routes(),
    *LOGIN_ROUTES,
    *MONITORING_ROUTES,
    *USER_ROUTES,
]
"""All but those of the agents, which take what no other route has."""


class Application:
    """Serves an app: WebSocket, server-sent events, lists, the page, metrics.

    Args:
        served: The app.
        is_mounted: Whether another application, or another server, decides how it is reached.

    Raises:
        ValueError: Others can reach it by a name, and nothing keeps them out; or an agent has the
            name that a route of the app begins with.
    """

    def __init__(self, served: Served, *, is_mounted: bool = False) -> None:
        self.state = ServerState(served)
        self._warns = is_mounted
        _check_agents(served)
        self._router = Router([*ROUTES, *served.routes, *WORKFLOW_ROUTES])
        # The guard has let in the origins that are listed, and it alone knows how they are
        # written. No cookie counts for such a page: it shows a token, or needs none.
        self._for_listed_origins = CORSMiddleware(
            self._serve,
            allow_origin_regex=".*",
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("authorization", "content-type", "last-event-id"),
            expose_headers=("x-arp-next",),
        )

    async def hub(self) -> Hub:
        """As `ServerState.hub`."""
        return await self.state.hub()

    async def control(self, principal: Principal | None = None) -> Control:
        """Return the control plane to a Python program, in the name of a principal.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
        """
        return await self.state.control(principal or Principal())

    async def aclose(self) -> None:
        """Let turns finish or park them, and close the ledger."""
        await self.state.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or the lifespan."""
        guard = self.state.guard
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif (refused := guard.check_source(scope)) is not None:
            await _refuse(scope, receive, send, refused)
        elif scope["type"] == "http":
            listed = guard.has_listed_origin(scope)
            await (self._for_listed_origins if listed else self._serve)(scope, receive, send)
        elif (requester := await self._admit(scope, receive, send)) is not None:
            # A conversation is awaited here and no deeper: each frame between would stay in memory
            # as long as the connection is open.
            try:
                conversation = await accept_socket(self.state, scope, receive, send)
                if conversation is not None:
                    await conversation
            finally:
                requester.lease.release()
                requester.slot.release()

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> Requester | None:
        """Find out who asks; `None`: there is no room for them now, and they have the answer."""
        state = self.state
        if self._warns and (scope["type"] == "websocket" or not _is_open(scope)):
            self._warn_if_open()
        principal = await state.guard.principal(scope)
        if principal is None and scope["type"] == "http":
            principal = state.file_cookie.principal(scope, time.time())
            if principal is not None and not state.guard.is_valid(principal):
                principal = None
        address = state.guard.proxies.counted(scope)
        if principal is not None:
            principal = msgspec.structs.replace(principal, address=address)
        try:
            slot = Slot(state.conversations, principal or Principal("", address))
        except RateLimited as error:
            await _turn_away(scope, receive, send, error)
            return None
        lease = Lease(state.leases)
        requester = scope["arp"] = Requester(state, slot, lease, principal)
        state.begin_lease(lease, principal, partial(state.guard.recheck, scope))
        return requester

    def _warn_if_open(self) -> None:
        """Log once that nothing keeps anybody out of a mounted app."""
        self._warns = False
        if self.state.guard.is_open():
            logger.warning(NOTHING_KEEPS_OUT)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that has passed the guard."""
        requester = await self._admit(scope, receive, send)
        if requester is None:
            return
        try:
            if requester.known is None and not _is_open(scope):
                reason = "a token is needed: Authorization: Bearer …"
                await _refuse(scope, receive, send, Denial(401, reason))
            elif not _is_open(scope) and (fault := await self.state.unopened()) is not None:
                await _refuse(scope, receive, send, Denial(503, fault))
            elif requester.lease.may_end:
                await self._route_while_valid(requester.lease, scope, receive, send)
            else:
                await self._route(scope, receive, send)
        finally:
            requester.lease.release()
            requester.slot.release()

    async def _route_while_valid(
        self, lease: Lease, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request as long as who asks is let in; then it ends, whatever it waits for.

        An event stream ends with an event that says so. Another answer that has begun is broken
        off, so that nobody takes it for whole.
        """
        began = False

        async def noted(message: Event) -> None:
            nonlocal began
            began = True
            await send(message)

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                lease.when_ended(lambda: limit.reschedule(loop.time()))
                await self._route(scope, receive, noted)
        except TimeoutError:
            if not lease.is_over:
                raise
            if not began:
                await _refuse(scope, receive, send, Denial(401, ENDED))
            # Else the server breaks off an answer that its application leaves unfinished.

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; an error that a route lets through is answered with its code."""
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


def _check_agents(served: Served) -> None:
    """Refuse agents that nobody could post to.

    Raises:
        ValueError: An agent has the name that a route of the app begins with.
    """
    paths = [str(getattr(route, "path", "")) for route in served.routes]
    taken = {path.strip("/").partition("/")[0]: path for path in paths}
    for name in served.handlers:
        if name in taken:
            raise ValueError(
                f"an agent cannot be called {name!r}: {taken[name]} is a route of this app; "
                "give it another name"
            )


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    is_open = path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
    return is_open and scope["method"] in ("GET", "HEAD")


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: Denial) -> None:
    if scope["type"] == "websocket":
        await refuse_socket(receive, send)
        return
    code = CODES.get(refused.status, ErrorCode.PERMISSION_DENIED)
    headers = {"www-authenticate": "Bearer"} if refused.status == 401 else None
    payload = ErrorPayload(refused.reason, code)
    answer = json_response(ErrorMessage(payload=payload), refused.status, headers)
    await _sealed(answer)(scope, receive, send)


async def _turn_away(scope: Scope, receive: Receive, send: Send, error: RateLimited) -> None:
    """Say that there is no room now; clients come back by themselves."""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await refuse_socket(receive, send)
            return
        await receive()
    await _sealed(refusal(error))(scope, receive, send)


def _sealed(answer: Response) -> Response:
    answer.raw_headers = sealed(answer.raw_headers)
    return answer
