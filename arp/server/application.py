"""The ASGI application of an `App`: it checks every request and passes it to the routes.

Theory of operation. The guard checks every request first. The result is stored in `scope["arp"]` as
a `Requester`, where the routes find it.
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
from arp.server.answers import json_response, refusal, with_seals
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
from arp.server.settings import AppDescription
from arp.server.state import Requester, ServerState
from arp.transport.websocket import Event, Receive, Scope, Send

logger = logging.getLogger(__name__)

OPEN_PATHS = (
    *("/", "/health", "/ready", "/schemas", INSPECT, PICTURE),
    *(LOGIN, CALLBACK, "/_api/user"),
)
OPEN_FOLDERS = ("/_static/", SCHEMAS, f"{INSPECT}/")
"""Paths served without a token. A page holds no secret and must load before it can ask for a token,
and a browser sends no token for a frame."""

NO_ACCESS_CONTROL = (
    "everybody on this machine can use this mounted app: dependencies and middleware of the parent "
    "application do not protect it; give App an Access(token=…) or an Access(authenticate=…)"
)

CODES = {401: ErrorCode.UNAUTHENTICATED, 503: ErrorCode.INTERNAL}
"""Error code of a refusal, by HTTP status; the default is `PERMISSION_DENIED`."""


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
"""All routes except those of the agents, which come last and match every remaining path."""


class Application:
    """Serves an app: WebSocket, server-sent events, lists, the page, metrics.

    Args:
        served: The app.
        is_mounted: Whether another application or server chooses the address.

    Raises:
        ValueError: Other machines can reach the app by a host name and nothing restricts access; or
            a route of the app begins with the name of an agent.
    """

    def __init__(self, served: AppDescription, *, is_mounted: bool = False) -> None:
        self.state = ServerState(served)
        self._warns = is_mounted
        _check_agents(served)
        self._router = Router([*ROUTES, *served.routes, *WORKFLOW_ROUTES])
        # Only the guard compares origins. The requests that get here have a listed origin, so CORS
        # allows any. Cookies do not count for such a page: it must send a token if the app needs
        # one.
        self._serve_with_cors = CORSMiddleware(
            self._serve,
            allow_origin_regex=".*",
            allow_methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("authorization", "content-type", "last-event-id"),
            expose_headers=("x-arp-next",),
        )

    async def hub(self) -> Hub:
        """Return the started hub; see `ServerState.hub`."""
        return await self.state.hub()

    async def control(self, principal: Principal | None = None) -> Control:
        """Return the control plane for a Python program that acts for a principal.

        Raises:
            StoreError: The ledger cannot be opened; the next call tries again.
        """
        return await self.state.control(principal or Principal())

    async def aclose(self) -> None:
        """Stop the running turns, then close the ledger. May be repeated.

        Running turns get time to finish. Turns that wait for a user or take longer are interrupted;
        their questions stay open.
        """
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
            await (self._serve_with_cors if listed else self._serve)(scope, receive, send)
        elif (requester := await self._admit(scope, receive, send)) is not None:
            # The conversation is awaited here and not in a deeper call, because every stack frame
            # in between would stay in memory while the connection is open.
            try:
                conversation = await accept_socket(self.state, scope, receive, send)
                if conversation is not None:
                    await conversation
            finally:
                requester.lease.release()
                requester.slot.release()

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> Requester | None:
        """Identify the sender and reserve a slot; store both in `scope["arp"]`.

        Returns:
            `None` if the connection limit is reached; the refusal has been sent.
        """
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
            await _refuse_busy(scope, receive, send, error)
            return None
        lease = Lease(state.leases)
        requester = scope["arp"] = Requester(state, slot, lease, principal)
        state.begin_lease(lease, principal, partial(state.guard.recheck, scope))
        return requester

    def _warn_if_open(self) -> None:
        """Log once that nothing restricts access to a mounted app."""
        self._warns = False
        if self.state.guard.is_open():
            logger.warning(NO_ACCESS_CONTROL)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that has passed the guard's check of its source."""
        requester = await self._admit(scope, receive, send)
        if requester is None:
            return
        try:
            if requester.known is None and not _is_open(scope):
                reason = "a token is needed: Authorization: Bearer …"
                await _refuse(scope, receive, send, Denial(401, reason))
            elif not _is_open(scope) and (fault := await self.state.ensure_open()) is not None:
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
        """Serve a request while its lease is valid, and end it when the lease ends.

        An event stream ends with an event that gives the reason. Any other response that has begun
        is aborted, so that no client takes it for complete.
        """
        began = False

        async def send_noting_start(message: Event) -> None:
            nonlocal began
            began = True
            await send(message)

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                lease.when_ended(lambda: limit.reschedule(loop.time()))
                await self._route(scope, receive, send_noting_start)
        except TimeoutError:
            if not lease.is_over:
                raise
            if not began:
                await _refuse(scope, receive, send, Denial(401, ENDED))
            # Otherwise the server aborts the response, because the application left it unfinished.

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. An error raised by a route becomes a response with its code."""
        began = False

        async def sent(message: Event) -> None:
            nonlocal began
            if not began:
                began = True
                message["headers"] = with_seals(message.get("headers", ()))
            await send(message)

        try:
            await self._router(scope, receive, sent)
        except (ArpError, HTTPException) as error:
            if began:  # a second response start would violate ASGI
                raise
            await refusal(error)(scope, receive, sent)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        reason: str | None = None
        try:
            await self.hub()
        except Exception as error:  # noqa: BLE001
            # The server prints the text and stops; nothing has been served yet.
            reason = str(error)
        # Not sent in the `except` block: some servers raise from `send`, and their traceback would
        # then include the first error.
        if reason is not None:
            await send({"type": "lifespan.startup.failed", "message": reason})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def _check_agents(served: AppDescription) -> None:
    """Refuse agents that a route of the app makes unreachable.

    Raises:
        ValueError: A route of the app begins with the name of an agent.
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
    await _with_seals(answer)(scope, receive, send)


async def _refuse_busy(scope: Scope, receive: Receive, send: Send, error: RateLimited) -> None:
    """Answer that the connection limit is reached; clients retry by themselves."""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await refuse_socket(receive, send)
            return
        await receive()
    await _with_seals(refusal(error))(scope, receive, send)


def _with_seals(answer: Response) -> Response:
    answer.raw_headers = with_seals(answer.raw_headers)
    return answer
