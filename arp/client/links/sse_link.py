"""Server-sent events from the server, POST requests to it; JSON in both directions.

The `hello` is in the query, as base64 of its JSON. A token is sent only in a header.

Source: protocol.md 6.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from urllib.parse import urlencode

import httpx
import msgspec

from arp.client.address import Address
from arp.client.errors import LinkLost, ServerRefused, lost_by_close, lost_by_status
from arp.client.link import MAX_FRAME_BYTES, OPEN_TIMEOUT_S
from arp.client.links.http_access import lost_by_network, new_http_client, post, read_body
from arp.client.options import LinkSettings
from arp.protocol.codec import encode_json
from arp.protocol.framing.event_stream import EVENT_STREAM, EventReader, EventTooLong
from arp.protocol.messages import RendererHello

CLOSED = "close"
"""Name of the event that contains the reason why the server ends the stream."""

READ_TIMEOUT_S = 25.0
"""Silence after which the stream is dead. The server sends a comment or ping every 15 seconds."""

MOST_ERROR_BYTES = 1 << 16
"""Maximum number of bytes to read of an answer that is not an event stream."""

_TIMEOUT = httpx.Timeout(OPEN_TIMEOUT_S, read=READ_TIMEOUT_S)


class _MessageId(msgspec.Struct, frozen=True):
    """The id of a message to send; the other fields are not decoded."""

    id: str | None = None


class _CloseData(msgspec.Struct, frozen=True):
    """The data of a `close` event."""

    code: int
    reason: str = ""


class SseLink:
    """One event stream, and the HTTP client that sends POST requests."""

    carries_acks = False
    is_remote = True

    def __init__(
        self, client: httpx.AsyncClient, response: httpx.Response, address: Address
    ) -> None:
        self._client = client
        self._response = response
        self._events = EventReader(response.aiter_bytes(), MAX_FRAME_BYTES)
        self._address = address
        self._closed: LinkLost | None = None

    async def receive(self) -> bytes:
        """Wait for the next event and return its data."""
        if self._closed is not None:
            raise self._closed
        try:
            event = await anext(self._events)
        except StopAsyncIteration:
            raise LinkLost("the server ended the event stream") from None
        except EventTooLong as error:
            raise LinkLost(str(error), error=ServerRefused(f"the server sent {error}")) from None
        except httpx.HTTPError as error:
            raise lost_by_network(error, self._address.events_url) from None
        if not event.is_complete:
            raise LinkLost("the server ended the event stream")
        if event.name == CLOSED:
            self._closed = _lost_by_event(event.data)
            raise self._closed
        return event.data.encode()

    async def send(self, frame: bytes) -> bytes | None:
        """Send a message as a POST request, and return the server's answer."""
        request = self._client.build_request(
            "POST",
            self._address.input_url,
            content=frame,
            headers={"Content-Type": "application/json"},
        )
        return await post(self._client, request, msgspec.json.decode(frame, type=_MessageId).id)

    async def aclose(self) -> None:
        """Close the stream and the HTTP client."""
        await self._response.aclose()
        await self._client.aclose()


async def open_sse(address: Address, access: LinkSettings, hello: bytes) -> SseLink:
    """Open an event stream with `hello`.

    Raises:
        LinkLost: The stream could not be opened.
    """
    parsed_hello = msgspec.json.decode(hello, type=RendererHello)
    client = new_http_client(address, access)
    try:
        request = client.build_request(
            "GET",
            stream_url(address.events_url, parsed_hello),
            headers=stream_headers(parsed_hello),
            timeout=_TIMEOUT,
        )
        response = await client.send(request, stream=True)
        await _check(response, address.events_url)
    except httpx.HTTPError as error:
        await client.aclose()
        raise lost_by_network(error, address.events_url) from None
    except BaseException:
        await client.aclose()
        raise
    return SseLink(client, response, address)


def stream_url(url: str, hello: RendererHello) -> str:
    """Return the URL of the event stream for a renderer.

    The features do not include `frame-ack`, because a POST request does not identify the renderer
    of the session that sends it.
    """
    features = [name for name in hello.capabilities.features if name != "frame-ack"]
    capabilities = msgspec.structs.replace(hello.capabilities, features=features)
    hello_json = encode_json(msgspec.structs.replace(hello, capabilities=capabilities))
    query = {"hello": urlsafe_b64encode(hello_json).rstrip(b"=").decode()}
    if hello.session_id is not None:
        query["session_id"] = hello.session_id
    return url + ("&" if "?" in url else "?") + urlencode(query)


def stream_headers(hello: RendererHello) -> dict[str, str]:
    """Return the headers of the request for an event stream, with the position to resume from."""
    headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
    if hello.resume is not None:
        headers["Last-Event-ID"] = f"{hello.resume.epoch}-{hello.resume.seq}"
    return headers


def _lost_by_event(data: str) -> LinkLost:
    """Return the `LinkLost` for a `close` event, which has the code of a WebSocket's close."""
    try:
        closing = msgspec.json.decode(data, type=_CloseData)
    except msgspec.DecodeError:
        return LinkLost("the server ended the event stream")
    return lost_by_close(closing.code, closing.reason)


async def _check(response: httpx.Response, url: str) -> None:
    """Raise `LinkLost` if an answer is not an event stream."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if response.status_code == httpx.codes.OK and kind == EVENT_STREAM:
        return
    body = await read_body(response, MOST_ERROR_BYTES)
    if response.status_code != httpx.codes.OK:
        raise lost_by_status(response.status_code, url, body)
    problem = f"{url} is no event stream but {kind or 'of no type'}"
    raise LinkLost(problem, error=ServerRefused(f"{problem}; check the address"), unavailable=True)
