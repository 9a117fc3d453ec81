"""`HttpRuntime`: client of a runtime behind an `HttpGateway`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from arp.net.http_problems import answer_problem, broken_connection, not_a_stream
from arp.protocol.framing.event_stream import EventReader, EventTooLong, SseEvent
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    ErrorStatus,
    RuntimeInternal,
    Unavailable,
    error_of,
)
from arp.runtime.contract.services import EventSubscription
from arp.runtime.remote.methods import R
from arp.runtime.remote.remote import RemoteRuntime, closed
from arp.runtime.remote.tls import RemoteAddress, is_loopback

logger = logging.getLogger(__name__)

RECONNECTS = 5
"""Number of attempts in a row to continue a broken stream of events."""
RECONNECT_S = 0.5
"""Seconds before the first attempt; the pause doubles each time."""
STREAM_TIMEOUT_S = 45.0
"""Seconds without data after which a stream counts as broken; the gateway sends a comment every 15
s."""


MAX_EVENT_BYTES = 64 * 2**20
"""Largest event, in bytes; more than the whole output of a tool."""

T = TypeVar("T")


class _StreamStart(msgspec.Struct, frozen=True):
    """The first message of a stream."""

    after: int


class HttpRuntime(RemoteRuntime):
    """A runtime at an address.

    Args:
        url: Address of the gateway, such as `http://127.0.0.1:7002` or `https://example.org`.
        token: Token that the gateway requires.
        ca: PEM file with the trusted certificate authorities; empty means those of the system.
        plaintext: Whether the token may be sent without TLS to another machine.
        timeout_s: Seconds that a call may take.

    Raises:
        InvalidArgument: The token would be sent without TLS, or the file cannot be used.
    """

    name = "http"

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str = "",
        plaintext: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        reached = RemoteAddress(parts.hostname or "", parts.scheme == "https", ca, plaintext)
        reached.check(token)
        self._make_client = partial(
            httpx.AsyncClient,
            base_url=f"{url.rstrip('/')}/ari/v1/",
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=timeout_s,
            verify=reached.context() if ca else True,
            # A proxy cannot reach a loopback address of this machine, and must not see the token.
            trust_env=not is_loopback(reached.host),
        )
        self._client = self._make_client()

    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        if self._client.is_closed:
            raise closed()
        try:
            answer = await self._client.post(method, content=msgspec.json.encode(request))
        except httpx.HTTPError as failed:
            raise Unavailable(f"{method}: {_reason(failed)}") from failed
        if answer.status_code != 200:
            raise _error(answer)
        return _decoded(answer.content, response, f"{method}: the answer of {answer.url}")

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session; a broken connection is restored."""
        if self._client.is_closed:
            raise closed()
        response = await open_events(self._client, request)
        messages = _GatewayStream(response)
        try:
            first = await messages.next()
        except (httpx.HTTPError, EOFError) as broken:
            await response.aclose()
            raise Unavailable(f"session_events: {_reason(broken)}") from broken
        subscribed = _decoded(first.data, _StreamStart, "session_events: the first message")
        return HttpEvents(self._client, request.session_id, response, messages, subscribed.after)

    async def open(self) -> None:
        """Connect again after `close`, also in another event loop.

        A new runtime is open already.
        """
        if self._client.is_closed:
            self._client = self._make_client()

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the remote runtime keeps running."""
        await self._client.aclose()
        return ari.CloseResponse()


async def open_events(
    client: httpx.AsyncClient, request: ari.SessionEventsRequest
) -> httpx.Response:
    """Open a stream of events; the gateway has subscribed when this returns.

    Raises:
        AriError: `session_events` raised it; `Unavailable` if the gateway cannot be reached.
    """
    params = {} if request.after is None else {"after": str(request.after)}
    path = f"sessions/{quote(request.session_id, safe='')}/events"
    timeout = httpx.Timeout(client.timeout.connect, read=STREAM_TIMEOUT_S)
    opening = client.build_request("GET", path, params=params, timeout=timeout)
    try:
        response = await client.send(opening, stream=True)
        if response.status_code != 200:
            await response.aread()
    except httpx.HTTPError as failed:
        raise Unavailable(f"session_events: {_reason(failed)}") from failed
    if response.status_code != 200:
        raise _error(response)
    if kind := not_a_stream(response.headers):
        await response.aclose()
        raise Unavailable(f"{response.url}: expected a stream of events, got {kind}")
    return response


class HttpEvents:
    """Events of a session over HTTP; a broken stream is continued after the last event."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        session_id: str,
        response: httpx.Response,
        messages: _GatewayStream,
        cursor: int,
    ) -> None:
        self.cursor = cursor
        self._client = client
        self._session_id = session_id
        self._response = response
        self._messages = messages
        self._over = False

    def __aiter__(self) -> AsyncIterator[ari.Event]:
        return self

    async def __anext__(self) -> ari.Event:
        """Return the next event.

        Raises:
            AriError: The stream cannot be continued.
        """
        while not self._over:
            try:
                message = await self._messages.next()
            except (httpx.HTTPError, EOFError) as broken:
                if not self._over:
                    logger.debug("events of %s: %s", self._session_id, _reason(broken))
                    await self._continue()
                continue
            if message.name == "end":
                break
            if message.name == "error":
                raise error_of(_decoded(message.data, ErrorStatus, "the end of the events"))
            if message.name == "subscribed":  # the first message of a stream that was opened again
                continue
            event = _decoded(message.data, ari.Event, "an event of the runtime")
            self.cursor = event.sequence
            return event
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Unsubscribe."""
        self._over = True
        with suppress(httpx.HTTPError, RuntimeError):
            await self._response.aclose()

    async def _continue(self) -> None:
        """Open the stream again after the last event.

        The gateway keeps the events, so none is lost.
        """
        await self._response.aclose()
        request = ari.SessionEventsRequest(self._session_id, self.cursor)
        pause = RECONNECT_S
        for attempt in range(1, RECONNECTS + 1):
            await asyncio.sleep(pause)
            pause *= 2
            try:
                self._response = await open_events(self._client, request)
            except Unavailable:
                if attempt == RECONNECTS:
                    raise
            else:
                self._messages = _GatewayStream(self._response)
                return


class _GatewayStream:
    """The messages of one stream of events."""

    def __init__(self, response: httpx.Response) -> None:
        self._events = EventReader(response.aiter_bytes(), MAX_EVENT_BYTES)

    async def next(self) -> SseEvent:
        """Return the next message.

        Raises:
            EOFError: The stream has ended.
            RuntimeInternal: A message is larger than `MAX_EVENT_BYTES`.
        """
        try:
            event = await anext(self._events)
        except StopAsyncIteration:
            raise EOFError("the stream has ended") from None
        except EventTooLong as wrong:
            raise RuntimeInternal(f"the gateway sent {wrong}") from wrong
        if not event.is_complete:
            raise EOFError("the stream has ended within a message")
        return event


def _decoded(data: str | bytes, kind: type[T], what: str) -> T:
    """Return data of the gateway as a value.

    Raises:
        RuntimeInternal: It cannot be read; perhaps another server answered, not the gateway.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as failed:
        raise RuntimeInternal(f"{what} cannot be read: {failed}") from failed


def _error(answer: httpx.Response) -> AriError:
    try:
        return error_of(msgspec.json.decode(answer.content, type=ErrorStatus))
    except msgspec.DecodeError:
        url = str(answer.url)
        said = answer_problem(answer.status_code, answer.headers, answer.content, url)
        return Unavailable(f"{url} is no gateway of ARI: {said}; check the address")


def _reason(failed: Exception) -> str:
    return broken_connection(failed) or str(failed) or type(failed).__name__
