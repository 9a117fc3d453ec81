"""WebSocket connections of renderers, and of programs on the control plane.

A client without a token in the handshake may send one in its first message: a renderer in `hello`,
a program in `initialize`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from arp.control.connection import Connection
from arp.hub.peers.object_peer import peer_speaking
from arp.hub.peers.peer import Peer
from arp.protocol.codec import Encoding
from arp.protocol.framing.envelope import Dialect
from arp.server.state import Requester, ServerState, expel, log_arrival
from arp.store.errors import StoreError
from arp.transport.websocket import SUBPROTOCOLS, Receive, Scope, Send, SocketOutbox, talk

PATH = "/_arp/v1"

RPC_PATH = "/_api/rpc"
"""Path of the control plane. Each WebSocket message is one frame of JSON-RPC."""

DEFAULT: tuple[Dialect, Encoding] = ("session", "json")
"""Dialect and encoding of a client that requests no subprotocol."""

MAX_UNKNOWN_PEERS = 256
"""Largest number of connections without a valid token."""


async def accept_socket(
    state: ServerState, scope: Scope, receive: Receive, send: Send
) -> Coroutine[Any, Any, None] | None:
    """Answer a handshake.

    Returns:
        The conversation, which the caller awaits for the life of the connection; in this way no
        stack frame of the handshake stays in memory. `None` if the handshake was refused.
    """
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    is_program = path == RPC_PATH
    offered = [] if is_program else scope.get("subprotocols", [])
    chosen = next((name for name in offered if name in SUBPROTOCOLS), None)
    workflow = "" if is_program else state.workflow_named(scope)
    is_served = path in (PATH, RPC_PATH) and (not offered or chosen is not None)
    asker: Requester = scope["arp"]
    principal, waiting = asker.known, state.unknown_peers
    # Clients without a token must not occupy all connections while they wait.
    is_full = principal is None and len(waiting) >= MAX_UNKNOWN_PEERS
    if not is_served or workflow is None or is_full:
        await refuse_socket(receive, send)
        return None
    try:
        hub, plane = await state.hub(), await state.plane()
    except StoreError:
        await refuse_socket(receive, send)
        return None
    dialect, encoding = SUBPROTOCOLS[chosen] if chosen else DEFAULT

    def make(outbox: SocketOutbox) -> Peer | Connection:
        check = partial(state.admit_token, scope)
        peer: Peer | Connection
        if is_program:
            peer = Connection(plane, outbox, principal, check)
        else:
            renderer = peer_speaking(dialect)(hub, outbox, encoding, workflow, principal, check)
            log_arrival(renderer.viewer, "WebSocket", scope)
            renderer.may_come_back = dialect == "session"
            peer = renderer
        if principal is None:
            waiting.add(peer)
            peer.on_trusted = lambda: waiting.discard(peer)
        asker.lease.when_ended(partial(expel, peer, outbox))
        return peer

    await receive()
    return talk(scope, receive, send, encoding, chosen, make)


async def refuse_socket(receive: Receive, send: Send) -> None:
    """Refuse a handshake; the client receives HTTP status 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
