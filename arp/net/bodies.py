"""Bodies of requests within bounds: their size, how much is received at once, and JSON bombs.

Bytes are counted before they are parsed. What is being received counts for its user, its address
and all together, until it is taken or given up.
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
    """Return a counter of the bytes of bodies that are being received.

    Args:
        bounds: How many there may be.
        most: Bytes of the largest body, which always fits.
    """
    each = max(bounds.max_received_bytes_per_user, most)
    everyone = max(bounds.max_received_bytes, each)
    return UsageCounter("bodies under way", UsageLimits(each, each, everyone))


class BodyReading:
    """One body that is being read, and is counted meanwhile.

    Args:
        counter: Counts its bytes.
        request: The request.
        max_bytes: Of the body.
        keys: For whom it counts.
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
            raise ResourceLimit(f"a body of more than {self._max_bytes} bytes is not taken")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks.

        Raises:
            ResourceLimit: It has more than `max_bytes`; reading stops there.
            RateLimited: Too much is being received; reading stops there.
            InvalidMessage: The client has gone.
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
            ResourceLimit, RateLimited, InvalidMessage: As `chunks`.
        """
        return b"".join([chunk async for chunk in self.chunks()])


class JsonBodies:
    """Reads bodies of JSON for one listener, up to the bounds.

    Args:
        max_bytes: Of one body.
        max_values: In one body.
        bounds: How much may be received at once.
    """

    def __init__(
        self, max_bytes: int, max_values: int = MAX_VALUES, bounds: Bounds | None = None
    ) -> None:
        self._max_bytes = max_bytes
        self._max_values = max_values
        self._received = received_bytes(bounds or Bounds(), max_bytes)

    async def read(self, request: Request, keys: tuple[Key, ...]) -> bytes:
        """Return a body whose values and nesting have been counted.

        Args:
            request: The request.
            keys: For whom it counts.

        Raises:
            ResourceLimit: It has too many bytes or values.
            RateLimited: Too much is being received.
            InvalidMessage: It is nested too deeply, or ended early.
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
    """Return the status of a refused body."""
    return next((status for kind, status in HTTP_STATUSES if isinstance(error, kind)), 400)


class BoundedBodies:
    """An ASGI application whose bodies are JSON within bounds, before it gets them.

    Args:
        application: Gets the requests.
        bodies: Reads them.
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
    """Return the keys under which limits count a request: of its principal, or its address."""
    asker = scope.get("arp")
    if asker is not None:
        found: tuple[Key, ...] = keys_of(asker.principal)
        return found
    client = scope.get("client")
    return (f"address {counted_address(client[0])}",) if client else ()
