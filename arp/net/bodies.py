"""Limits on the bodies of requests: size, bytes received at the same time, values and nesting.

Bytes are counted before they are parsed. The bytes of a body count for its user, its address and
the whole server until the body has been read or refused.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arp.access.client_address import counted_address
from arp.access.principal import Key, keys_of
from arp.access.settings import Bounds
from arp.access.usage import UsageCounter, UsageLimits
from arp.protocol.errors import ArpError, InvalidMessage, RateLimited, ResourceLimit
from arp.protocol.json_value import MAX_VALUES, check_json_text


def received_bytes(bounds: Bounds, most: int) -> UsageCounter:
    """Return a counter of the bytes in unfinished bodies.

    Args:
        bounds: Limits of the counter.
        most: Limit of one body, in bytes. The counter always has room for one such body.
    """
    each = max(bounds.max_received_bytes_per_user, most)
    everyone = max(bounds.max_received_bytes, each)
    return UsageCounter("bodies under way", UsageLimits(each, each, everyone))


class BodyReading:
    """Reads the body of a request; its bytes are counted until the context ends.

    Args:
        counter: Counter of the bytes.
        request: The request.
        max_bytes: Limit of the body.
        keys: Keys of the user or address that the bytes count for.
    """

    def __init__(
        self, counter: UsageCounter, request: Request, max_bytes: int, keys: tuple[Key, ...]
    ) -> None:
        self._counter = counter
        self._request = request
        self._max_bytes = max_bytes
        self._keys = keys
        self._size = 0

    async def __aenter__(self) -> BodyReading:
        declared = self._request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit():
            self._check(int(declared))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._counter.release(self._keys, self._size)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise ResourceLimit(f"a body of more than {self._max_bytes} bytes is not accepted")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks.

        Raises:
            ResourceLimit: The body is longer than `max_bytes`; the rest is not read.
            RateLimited: Too many bytes are received at the same time; the rest is not read.
            InvalidMessage: The client disconnected before the end of the body.
        """
        try:
            async for chunk in self._request.stream():
                self._check(self._size + len(chunk))
                self._counter.acquire(self._keys, len(chunk))
                self._size += len(chunk)
                yield chunk
        except ClientDisconnect:
            raise InvalidMessage("the body ended early") from None

    async def whole(self) -> bytes:
        """Return the whole body.

        Raises:
            ResourceLimit, RateLimited, InvalidMessage: See `chunks`.
        """
        return b"".join([chunk async for chunk in self.chunks()])


class JsonBodies:
    """Reads JSON bodies for one listener, within limits.

    Args:
        max_bytes: Limit of a body, in bytes.
        max_values: Limit of the JSON values in a body.
        bounds: Limits of the bytes that are received at the same time.
    """

    def __init__(
        self, max_bytes: int, max_values: int = MAX_VALUES, bounds: Bounds | None = None
    ) -> None:
        self._max_bytes = max_bytes
        self._max_values = max_values
        self._received = received_bytes(bounds or Bounds(), max_bytes)

    async def read(self, request: Request, keys: tuple[Key, ...]) -> bytes:
        """Return the body of a request after checking its size, its values and its nesting.

        Args:
            request: The request.
            keys: Keys of the user or address that the bytes count for.

        Raises:
            ResourceLimit: The body has too many bytes or values.
            RateLimited: Too many bytes are received at the same time.
            InvalidMessage: The body is nested too deeply, or ended early.
        """
        async with BodyReading(self._received, request, self._max_bytes, keys) as reading:
            body = await reading.whole()
        check_json_text(body, "body", self._max_values)
        return body


HTTP_STATUSES: Final[tuple[tuple[type[ArpError], int], ...]] = (
    (ResourceLimit, 413),
    (RateLimited, 429),
)


def http_status(error: ArpError) -> int:
    """Return the HTTP status for a refused body."""
    return next((status for kind, status in HTTP_STATUSES if isinstance(error, kind)), 400)


class BoundedBodies:
    """ASGI middleware that reads and checks the body of each request before the application.

    Args:
        application: Application that gets the requests.
        bodies: Reader of the bodies.
    """

    def __init__(self, application: ASGIApp, bodies: JsonBodies) -> None:
        self._application = application
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body of a request, then pass the request on."""
        if scope["method"] in ("GET", "HEAD"):
            await self._application(scope, receive, send)
            return
        try:
            body = await self._bodies.read(Request(scope, receive), keys_of_scope(scope))
        except (ResourceLimit, RateLimited, InvalidMessage) as error:
            await JSONResponse({"error": error.message}, http_status(error))(scope, receive, send)
            return
        is_given = False

        async def received() -> Message:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._application(scope, received, send)


def keys_of_scope(scope: Scope) -> tuple[Key, ...]:
    """Return the keys that a request counts for: those of its principal, or its address."""
    asker = scope.get("arp")
    if asker is not None:
        found: tuple[Key, ...] = keys_of(asker.principal)
        return found
    client = scope.get("client")
    return (f"address {counted_address(client[0])}",) if client else ()
