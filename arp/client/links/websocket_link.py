"""WebSocket: each message is one frame; text for JSON, binary for other encodings.

Source: protocol.md 1 and 6.
"""

from __future__ import annotations

import ssl
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    WebSocketException,
)
from websockets.typing import Subprotocol

from arp.client.address import Address
from arp.client.errors import LinkLost, ServerRefused, lost_by_close, lost_by_status, printable
from arp.client.link import MAX_FRAME_BYTES, OPEN_TIMEOUT_S
from arp.client.options import LinkSettings

SUBPROTOCOLS = {"session": "arp.session.v1.", "object": "arp.v1."}

PING_INTERVAL_S = 20.0
PING_TIMEOUT_S = 10.0
"""Time for the answer to a ping; with the interval, a dead connection is detected within 30 s."""

CLOSE_TIMEOUT_S = 2.0
"""Time for the server to answer our close frame."""

TOO_BIG = 1009


class WebSocketLink:
    """One WebSocket connection."""

    carries_acks = True
    is_remote = True

    def __init__(self, socket: ClientConnection, is_text: bool) -> None:
        self._socket = socket
        self._is_text = is_text

    async def receive(self) -> bytes:
        """Wait for the next text or binary message and return it."""
        try:
            return await self._socket.recv(decode=False)
        except ConnectionClosed as closed:
            raise _lost(closed) from None

    async def send(self, frame: bytes) -> None:
        """Send one message."""
        try:
            await self._socket.send(frame, text=self._is_text)
        except ConnectionClosed as closed:
            raise _lost(closed) from None

    async def aclose(self) -> None:
        """Send a close frame, and wait at most `CLOSE_TIMEOUT_S` for the answer."""
        await self._socket.close()


async def open_websocket(address: Address, access: LinkSettings, hello: bytes) -> WebSocketLink:
    """Open a connection and send `hello` on it.

    Raises:
        LinkLost: The connection could not be opened; `unavailable` if another transport may work.
    """
    subprotocol = Subprotocol(SUBPROTOCOLS[access.dialect] + access.encoding)
    is_default = access.encoding == "json" and access.dialect == "session"
    settings: dict[str, Any] = {"ssl": access.tls} if access.tls is not None else {}
    try:
        socket = await connect(
            address.websocket_url,
            # Without a subprotocol, each server uses JSON of the session dialect. A server of the
            # draft selects none of the offered ones; browsers then fail the handshake.
            subprotocols=None if is_default else [subprotocol],
            compression=None,
            additional_headers=access.headers(),
            open_timeout=OPEN_TIMEOUT_S,
            ping_interval=PING_INTERVAL_S,
            ping_timeout=PING_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            max_size=MAX_FRAME_BYTES,
            proxy=None if address.is_loopback else True,
            **settings,
        )
    except (OSError, WebSocketException) as error:
        raise _not_opened(error, address.websocket_url) from None
    link = WebSocketLink(socket, is_text=access.encoding == "json")
    try:
        if socket.subprotocol is None and not is_default:
            problem = f"{address.websocket_url} does not speak {subprotocol}"
            other = 'encoding="json"' if access.dialect == "session" else 'dialect="session"'
            raise LinkLost(problem, error=ServerRefused(f"{problem}; use {other}"))
        if hello:
            await link.send(hello)
    except BaseException:
        await link.aclose()
        raise
    return link


def _lost(closed: ConnectionClosed) -> LinkLost:
    if closed.rcvd is not None:
        return lost_by_close(closed.rcvd.code, closed.rcvd.reason)
    if closed.sent is not None and closed.sent.code == TOO_BIG:
        problem = f"the server sent a message of more than {MAX_FRAME_BYTES} bytes"
        return LinkLost(problem, error=ServerRefused(problem))
    if closed.sent is not None:
        return LinkLost(printable(closed.sent.reason) or "closed by this side")
    return LinkLost("the connection broke off")


def _not_opened(error: OSError | WebSocketException, url: str) -> LinkLost:
    if isinstance(error, InvalidStatus):
        return lost_by_status(error.response.status_code, url, bytes(error.response.body or b""))
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = f"{url}: {error.verify_message}"
        return LinkLost(problem, error=ServerRefused(f"{problem}; give tls=… if you trust it"))
    if isinstance(error, TimeoutError):
        return LinkLost(f"{url}: no answer within {OPEN_TIMEOUT_S:g} s", unavailable=True)
    problem = f"{url}: {printable(str(error)) or type(error).__name__}"
    # The server closed the connection without an answer; another transport may still work.
    if isinstance(error, InvalidMessage) and isinstance(error.__cause__, EOFError):
        return LinkLost(problem, unavailable=True)
    if isinstance(error, InvalidHandshake):
        return LinkLost(
            problem, error=ServerRefused(f"no WebSocket there: {problem}"), unavailable=True
        )
    return LinkLost(problem)
