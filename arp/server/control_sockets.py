"""The control plane on WebSocket: one message is one frame of JSON-RPC.

A client without a token in its header may show one by `initialize`, as a renderer does by `hello`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from arp.control.connection import Connection
from arp.server.sockets import MAX_UNKNOWN_PEERS, refuse_socket
from arp.store.errors import StoreError
from arp.transport.websocket import Receive, Scope, Send, SocketOutbox, talk

if TYPE_CHECKING:
    from arp.server.application import Application

RPC_PATH = "/_api/rpc"


def is_rpc(scope: Scope) -> bool:
    """Tells whether a handshake is for the control plane."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) == RPC_PATH


async def accept_rpc(
    application: Application, scope: Scope, receive: Receive, send: Send
) -> Coroutine[Any, Any, None] | None:
    """Answers a handshake, as `arp.server.sockets.accept_socket` does."""
    principal = scope["arp"].principal
    waiting = application.unknown_peers
    if principal is None and len(waiting) >= MAX_UNKNOWN_PEERS:
        await refuse_socket(receive, send)
        return None
    try:
        plane = await application.plane()
    except StoreError:
        await refuse_socket(receive, send)
        return None

    def make_connection(outbox: SocketOutbox) -> Connection:
        check = partial(application.shown_token, scope)
        connection = Connection(plane, outbox, principal, check)
        if principal is None:
            waiting.add(connection)
            connection.on_trusted = lambda: waiting.discard(connection)
        return connection

    await receive()
    return talk(scope, receive, send, "json", None, make_connection)
