"""WebSocket connections: the handshake, then the transport's own loop."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from arp.hub.peer import Peer
from arp.server.arrivals import log_arrival
from arp.store.errors import StoreError
from arp.transport.websocket import SUBPROTOCOLS, Receive, Scope, Send, SocketOutbox, talk

if TYPE_CHECKING:
    from arp.server.application import Application

PATH = "/_arp/v1"

MAX_UNKNOWN_PEERS = 256
"""Connections that may wait for a token at once."""


async def accept_socket(
    application: Application, scope: Scope, receive: Receive, send: Send
) -> Coroutine[Any, Any, None] | None:
    """Answers a handshake.

    Returns:
        The conversation, to be awaited by who holds the connection for its whole life; so nothing
        of the handshake stays in memory. `None` if it was refused.
    """
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    offered = scope.get("subprotocols", [])
    chosen = next((name for name in offered if name in SUBPROTOCOLS), None)
    workflow = application.workflow_named(scope)
    if path != PATH or (offered and chosen is None) or workflow is None:
        await refuse_socket(receive, send)
        return None
    principal = scope["arp"].principal
    waiting = application.unknown_peers
    if principal is None and len(waiting) >= MAX_UNKNOWN_PEERS:
        await refuse_socket(receive, send)
        return None
    try:
        hub = await application.hub()
    except StoreError:
        await refuse_socket(receive, send)
        return None
    encoding = SUBPROTOCOLS[chosen] if chosen else "json"

    def make_peer(outbox: SocketOutbox) -> Peer:
        check = partial(application.shown_token, scope)
        peer = Peer(hub, outbox, encoding, workflow, principal, check)
        if principal is None:
            waiting.add(peer)
            peer.on_trusted = lambda: waiting.discard(peer)
        log_arrival(peer.viewer, "WebSocket", scope)
        return peer

    await receive()
    return talk(scope, receive, send, encoding, chosen, make_peer)


async def refuse_socket(receive: Receive, send: Send) -> None:
    """Refuses a handshake; the client sees 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
