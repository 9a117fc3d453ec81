"""`HttpRuntime`: a runtime behind an `HttpGateway`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from arp.runtime import types as ari
from arp.runtime.errors import (
    AriError,
    ErrorStatus,
    RuntimeInternal,
    Unavailable,
    error_of,
)
from arp.runtime.remote import R, RemoteRuntime, closed
from arp.runtime.services import EventSubscription
from arp.runtime.tls import RemoteAddress, is_loopback

logger = logging.getLogger(__name__)

RECONNECTS = 5
"""Tries in a row to continue a stream of events that broke."""
RECONNECT_S = 0.5
"""Pause before the first of them; it doubles."""
STREAM_TIMEOUT_S = 45.0
"""Without a byte for so long a stream is broken: the gateway sends a comment every 15 s."""


class HttpRuntime(RemoteRuntime):
    """A runtime at an address.

    Args:
        url: Of the gateway, such as `http://127.0.0.1:7002` or `https://example.org`.
        token: What it asks for.
        ca: A PEM file with the authorities that are trusted; empty: the usual ones.
        plaintext: Whether the token may be sent without TLS to another machine.
        timeout_s: How long a call may take.

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
            # A proxy cannot reach this machine for us, and is not to see the token.
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
        try:
            return msgspec.json.decode(answer.content, type=response)
        except msgspec.DecodeError as failed:
            raise RuntimeInternal(f"{method}: the answer cannot be read: {failed}") from failed

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """As `EventManager.session_events`; a connection that breaks is made again."""
        if self._client.is_closed:
            raise closed()
        response = await open_events(self._client, request)
        lines = response.aiter_lines()
        _, subscribed = await next_message(lines)
        after = msgspec.json.decode(subscribed, type=dict[str, int])["after"]
        return HttpEvents(self._client, request.session_id, response, lines, after)

    async def open(self) -> None:
        """Connect again after `close`, also in another event loop; a new runtime is open."""
        if self._client.is_closed:
            self._client = self._make_client()

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the runtime at the other end goes on."""
        await self._client.aclose()
        return ari.CloseResponse()


async def open_events(
    client: httpx.AsyncClient, request: ari.SessionEventsRequest
) -> httpx.Response:
    """Open a stream of events; it has subscribed when this returns.

    Raises:
        AriError: As `session_events` does; `Unavailable` if the gateway cannot be reached.
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
    return response


class HttpEvents:
    """Events of a session over HTTP; a stream that breaks is continued behind the last event."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        session_id: str,
        response: httpx.Response,
        lines: AsyncIterator[str],
        cursor: int,
    ) -> None:
        self.cursor = cursor
        self._client = client
        self._session_id = session_id
        self._response = response
        self._lines = lines
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
                kind, data = await next_message(self._lines)
            except (httpx.HTTPError, EOFError) as broken:
                if not self._over:
                    logger.debug("events of %s: %s", self._session_id, _reason(broken))
                    await self._continue()
                continue
            if kind == "end":
                break
            if kind == "error":
                raise error_of(msgspec.json.decode(data, type=ErrorStatus))
            if kind == "subscribed":
                continue
            event = msgspec.json.decode(data, type=ari.Event)
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
        """Open the stream again; the events since are still kept at the other end."""
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
                self._lines = self._response.aiter_lines()
                return


async def next_message(lines: AsyncIterator[str]) -> tuple[str, str]:
    """Return the kind and the data of the next message of an event stream.

    Raises:
        EOFError: The stream has ended.
    """
    kind, data = "", ""
    async for line in lines:
        name, _, value = line.partition(":")
        if name == "event":
            kind = value.strip()
        elif name == "data":
            data = value.removeprefix(" ")
        elif not line and data:
            return kind, data
    raise EOFError("the stream has ended")


def _error(answer: httpx.Response) -> AriError:
    try:
        return error_of(msgspec.json.decode(answer.content, type=ErrorStatus))
    except msgspec.DecodeError:
        return Unavailable(f"the gateway answered with HTTP {answer.status_code}")


def _reason(failed: Exception) -> str:
    return str(failed) or type(failed).__name__
