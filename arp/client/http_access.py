"""HTTP as this client uses it: what it sends along, and what failures and answers mean.

The one seam to httpx for the rest of the room.
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
"""An input is answered when it is durable: in milliseconds, unless the disk is in trouble."""

_CODES = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.PERMISSION_DENIED,
    413: ErrorCode.RESOURCE_LIMIT,
}
"""Codes for refusals of something between us and the server, which does not speak ARP."""

_DECODER = agent_decoder("json")


def new_http_client(address: Address, access: LinkSettings) -> httpx.AsyncClient:
    """Return a client that carries the token in a header, and keeps proxies away from loopback."""
    return httpx.AsyncClient(
        headers=access.headers(),
        verify=access.tls if access.tls is not None else True,
        timeout=httpx.Timeout(POST_TIMEOUT_S, connect=OPEN_TIMEOUT_S),
        trust_env=not address.is_loopback,
    )


async def read_whole(response: httpx.Response, most_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """Return the body of a streamed response, cut at `most_bytes`, and close the response.

    Raises:
        httpx.HTTPError: The network.
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
        LinkLost: It is not known whether it arrived; it is worth another try.
    """
    url = str(request.url)
    try:
        response = await client.send(request, stream=True)
        body = await read_whole(response)
    except httpx.HTTPError as error:
        raise lost_by_network(error, url) from None
    return answer_frame(response.status_code, body, url, input_id)


def answer_frame(status: int, body: bytes, url: str, input_id: str | None) -> bytes | None:
    """Read the answer to an input.

    Args:
        status: Of HTTP.
        body: An ARP message or an array of them, if the server wrote it.
        url: For people.
        input_id: Of the input; an error that does not say what it answers is taken to answer this
            one.

    Returns:
        A frame to receive; `None` if there is nothing to say.

    Raises:
        LinkLost: Nobody has taken or refused it yet.
    """
    if 200 <= status < 300:
        return body or None
    try:
        messages = _DECODER.decode(body)
    except InvalidMessage:
        messages = []
    if status in (502, 503, 504) or not messages:
        if status in RETRY_STATUS or status >= 500:
            raise lost_by_status(status, url)
        text = printable(body.decode("utf-8", "replace"))
        code = _CODES.get(status, ErrorCode.INVALID_MESSAGE)
        text = f"HTTP {status} from {url}{': ' if text else ''}{text}"
        messages = [ErrorMessage(payload=ErrorPayload(text, int(code)))]
    return encode_json([_answering(message, input_id) for message in messages])


def _answering(message: AgentMessage, input_id: str | None) -> AgentMessage:
    if not isinstance(message, ErrorMessage) or message.payload.id is not None:
        return message
    payload = msgspec.structs.replace(message.payload, id=input_id)
    return msgspec.structs.replace(message, payload=payload)


def lost_by_network(error: httpx.HTTPError, url: str) -> LinkLost:
    """Say what a failure of the network means for us."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = f"{url}: {cause.verify_message}"
            return LinkLost(problem, error=ServerRefused(f"{problem}; give tls=… if you trust it"))
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return LinkLost(f"{url}: nothing came in time ({type(error).__name__})")
    return LinkLost(f"{url}: {printable(str(error)) or type(error).__name__}")
