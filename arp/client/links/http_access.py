"""HTTP requests of the client, and the meaning of answers and failures.

The exceptions of httpx are mapped to `LinkLost` here, in one place.
"""

from __future__ import annotations

import ssl

import httpx
import msgspec

from arp.client.address import Address
from arp.client.errors import RETRY_STATUS, LinkLost, ServerRefused, lost_by_status, printable
from arp.client.link import MAX_FRAME_BYTES, OPEN_TIMEOUT_S
from arp.client.options import LinkSettings
from arp.protocol.codec import agent_decoder, encode_json
from arp.protocol.errors import ErrorCode, ErrorPayload, InvalidMessage
from arp.protocol.messages import AgentMessage, ErrorMessage

POST_TIMEOUT_S = 30.0
"""Time for the answer to an input. The server answers after it has stored the input durably,
usually within milliseconds."""

_CODES = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.PERMISSION_DENIED,
    413: ErrorCode.RESOURCE_LIMIT,
}
"""Codes for refusals by a proxy or another server that does not answer with ARP messages."""

_DECODER = agent_decoder("json")


def new_http_client(address: Address, access: LinkSettings) -> httpx.AsyncClient:
    """Return an HTTP client that sends the token in a header and uses no proxy for loopback."""
    return httpx.AsyncClient(
        headers=access.headers(),
        verify=access.tls if access.tls is not None else True,
        timeout=httpx.Timeout(POST_TIMEOUT_S, connect=OPEN_TIMEOUT_S),
        trust_env=not address.is_loopback,
    )


async def read_body(response: httpx.Response, most_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Read the body of a streamed response, cut it at `most_bytes`, and close the response.

    Raises:
        httpx.HTTPError: The network failed.
    """
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= most_bytes:
                break
    finally:
        await response.aclose()
    return bytes(body[:most_bytes])


async def post(
    client: httpx.AsyncClient, request: httpx.Request, input_id: str | None
) -> bytes | None:
    """Send an input, and return the frame that answers it.

    Raises:
        LinkLost: It is unknown whether the input arrived; it should be sent again.
    """
    url = str(request.url)
    try:
        response = await client.send(request, stream=True)
        body = await read_body(response)
    except httpx.HTTPError as error:
        raise lost_by_network(error, url) from None
    return answer_frame(response.status_code, body, url, input_id)


def answer_frame(status: int, body: bytes, url: str, input_id: str | None) -> bytes | None:
    """Convert the answer to an input into a frame.

    Args:
        status: HTTP status.
        body: Body of the answer. If an ARP server wrote it, one message or an array of messages.
        url: URL of the request, for error messages.
        input_id: Id of the input. It is added to an error that has no id.

    Returns:
        The frame to receive; `None` if a successful answer is empty.

    Raises:
        LinkLost: The input was neither accepted nor refused; it should be sent again.
    """
    if 200 <= status < 300:
        return body or None
    try:
        messages = _DECODER.decode(body)
    except InvalidMessage:
        messages = []
    # 502, 503 and 504 may come from a proxy even if the body is a message, so the input must be
    # sent again.
    if status in (502, 503, 504) or not messages:
        if status in RETRY_STATUS or status >= 500:
            raise lost_by_status(status, url)
        text = printable(body.decode("utf-8", "replace"))
        code = _CODES.get(status, ErrorCode.INVALID_MESSAGE)
        text = f"HTTP {status} from {url}{': ' if text else ''}{text}"
        messages = [ErrorMessage(payload=ErrorPayload(text, int(code)))]
    return encode_json([_with_input_id(message, input_id) for message in messages])


def _with_input_id(message: AgentMessage, input_id: str | None) -> AgentMessage:
    """Add the id of the input to an error that has no id; return other messages unchanged."""
    if not isinstance(message, ErrorMessage) or message.payload.id is not None:
        return message
    payload = msgspec.structs.replace(message.payload, id=input_id)
    return msgspec.structs.replace(message, payload=payload)


def lost_by_network(error: httpx.HTTPError, url: str) -> LinkLost:
    """Return the `LinkLost` for a failure of the network."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = f"{url}: {cause.verify_message}"
            return LinkLost(problem, error=ServerRefused(f"{problem}; give tls=… if you trust it"))
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return LinkLost(f"{url}: no data arrived in time ({type(error).__name__})")
    return LinkLost(f"{url}: {printable(str(error)) or type(error).__name__}")
