"""A runtime over HTTP: `POST /ari/v1/METHOD` with a request as JSON, events as an event stream.

The runtime may run commands for every accepted caller, so `Guard` checks each request: its token
(without a token in the settings, only this machine may call), its `Host` and its `Origin`. An error
is an `ErrorStatus` as JSON, with the HTTP status of its code.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from arp.access.guard import Guard
from arp.access.own_code import OwnCodeDetector
from arp.access.settings import Access, check_names
from arp.net.bodies import JsonBodies
from arp.protocol.errors import InvalidMessage, RateLimited, ResourceLimit
from arp.protocol.framing.event_stream import (
    EVENT_STREAM,
    STREAM_HEADERS,
    encode_comment,
    encode_event,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.enum_values import refusal_of
from arp.runtime.contract.errors import (
    ERRORS,
    AriCode,
    AriError,
    ErrorStatus,
    InvalidArgument,
    Unavailable,
    Unimplemented,
    status_of,
)
from arp.runtime.contract.services import METHODS, AriMethod, EventSubscription, RuntimeService
from arp.runtime.remote.proto_codec import MAX_REQUEST_VALUES

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 32 * 2**20
"""Largest request, in bytes; enough for a message with an image or two."""
KEEP_ALIVE_S = 15.0
"""Seconds without an event after which a comment is sent, so that proxies keep the connection."""

_CALLED = {
    method.name: method for method in METHODS if method.name not in ("session_events", "close")
}


class HttpGateway:
    """The ASGI application of a runtime.

    Args:
        runtime: Runtime that does the work; it is not closed with the gateway.
        access: Who may call; without a token only this machine.
        own_code: Detects commands that the runtime itself runs; their calls are refused. `None` if
            the runtime runs no commands.

    Raises:
        ValueError: Others can reach the gateway by a name although no token is required.
    """

    def __init__(
        self,
        runtime: RuntimeService,
        access: Access | None = None,
        own_code: OwnCodeDetector | None = None,
    ) -> None:
        self.runtime = runtime
        access = access or Access()
        check_names(access)
        self._guard = Guard(access, linked=(), own_code=own_code)
        self._bodies = JsonBodies(MAX_REQUEST_BYTES, MAX_REQUEST_VALUES, access.bounds)
        self._app: ASGIApp = Starlette(
            routes=[
                Route("/ari/v1/sessions/{session_id:path}/events", self._events),
                Route("/ari/v1/{method}", self._method, methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            denial = self._guard.check_source(scope)
            if denial is None and await self._guard.principal(scope) is None:
                error = ErrorStatus(AriCode.PERMISSION_DENIED, "a valid token is needed")
                await _answer(error, 401)(scope, receive, send)
                return
            if denial is not None:
                error = ErrorStatus(AriCode.PERMISSION_DENIED, denial.reason)
                await _answer(error, denial.status)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _method(self, request: Request) -> Response:
        try:
            name = request.path_params["method"]
            method = _CALLED.get(name)
            if method is None:
                raise Unimplemented(f"there is no method {name!r:.60}")
            response = await call(self.runtime, method, await self._body(request))
        except Exception as failed:  # noqa: BLE001 - every failure is an answer with its code
            return _failure(failed)
        return _answer(response)

    async def _body(self, request: Request) -> bytes:
        key = f"address {self._guard.proxies.counted(request.scope)}"
        try:
            return await self._bodies.read(request, (key,))
        except RateLimited as error:
            raise Unavailable(error.message) from None
        except (ResourceLimit, InvalidMessage) as error:
            raise InvalidArgument(error.message) from None

    async def _events(self, request: Request) -> Response:
        try:
            after = request.query_params.get("after", request.headers.get("last-event-id"))
            wanted = msgspec.convert(
                {"session_id": request.path_params["session_id"], "after": after},
                ari.SessionEventsRequest,
                strict=False,
            )
            subscription = await self.runtime.session_events(wanted)
        except Exception as failed:  # noqa: BLE001 - as above
            return _failure(failed)
        stream = _stream(subscription)
        return StreamingResponse(stream, media_type=EVENT_STREAM, headers=STREAM_HEADERS)


async def call(runtime: RuntimeService, method: AriMethod, body: bytes) -> msgspec.Struct:
    """Call a method with its request as JSON.

    Raises:
        InvalidArgument: The request cannot be read; the message names the position.
        Unimplemented: The runtime does not have the service.
        AriError: The method raised it.
    """
    try:
        request = msgspec.json.decode(body or b"{}", type=method.request)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{method.name}: {refusal_of(error, method.request)}") from error
    function = getattr(runtime, method.name, None)
    if function is None:
        raise Unimplemented(f"this runtime has no {method.name}")
    response: msgspec.Struct = await function(request)
    return response


async def _stream(subscription: EventSubscription) -> AsyncIterator[bytes]:
    """Yield the events of a session; if the stream fails, the last message has the error."""
    yield encode_event(b'{"after": %d}' % subscription.cursor, name="subscribed")
    following = asyncio.ensure_future(anext(subscription))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=KEEP_ALIVE_S)
            if not done:
                yield encode_comment("alive")
                continue
            try:
                event = following.result()
            except StopAsyncIteration:
                yield encode_event(b"{}", name="end")
                return
            except AriError as failed:
                yield encode_event(msgspec.json.encode(failed.status()), name="error")
                return
            yield encode_event(msgspec.json.encode(event), event_id=str(event.sequence))
            following = asyncio.ensure_future(anext(subscription))
    finally:
        following.cancel()
        await subscription.aclose()


def _failure(failed: Exception) -> Response:
    status = status_of(failed)
    if not isinstance(failed, AriError):
        logger.error("a call failed", exc_info=failed)
    return _answer(status, ERRORS[status.code].http_status)


def _answer(value: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
