"""The server of all HTTP listeners of ARP, with the limits in `Access.bounds`.

`arp serve` adds WebSockets, signals and a page to it. `InnerServer` runs in the event loop of
another server: the MCP port of the Tool Agent, the tools of a coding agent, `arp ari serve`.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from arp.access.client_address import TrustedProxies
from arp.access.settings import Bounds
from arp.net.connections import ConnectionWatch, Stalls, descriptor_limit, watched_http

STOP_S: Final = 1
"""Seconds that open requests have to finish when a server stops."""

STALL_S: Final = 30.0
"""Seconds without reading after which a client is disconnected; an app's settings may differ."""


def bounded_config(application: ASGIApp, watch: ConnectionWatch, **more: Any) -> uvicorn.Config:
    """Return uvicorn's settings for a server with limits on its connections.

    Args:
        application: ASGI application that answers the requests.
        watch: Watch that enforces the limits.
        more: Further settings of uvicorn.
    """
    return uvicorn.Config(
        application,
        interface="asgi3",
        http=watched_http(watch),
        timeout_keep_alive=watch.bounds.keep_alive_s,
        server_header=False,
        proxy_headers=False,
        log_level="warning",
        **more,
    )


class BoundedServer(uvicorn.Server):
    """A uvicorn server that aborts late TLS handshakes and stalled connections.

    Args:
        config: Settings made by `bounded_config`.
        bounds: Limits, with the time for a handshake.
        stall_s: Seconds without reading after which a client is disconnected; `None` means
            `STALL_S`.
    """

    def __init__(
        self, config: uvicorn.Config, bounds: Bounds, stall_s: float | None = None
    ) -> None:
        super().__init__(config)
        self._bounds = bounds
        self._stalls = Stalls(lambda: self.server_state.connections, stall_s or STALL_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        # uvicorn has no setting for the time of a TLS handshake. So it gets no sockets here, and
        # the loop below serves them with a timeout.
        await super().startup(sockets=[])
        if not self.started:
            return
        loop, config = asyncio.get_running_loop(), self.config
        limit_s = self._bounds.header_s if config.ssl is not None else None
        for listener in sockets or ():
            server = await loop.create_server(
                self._protocol,
                sock=listener,
                ssl=config.ssl,
                ssl_handshake_timeout=limit_s,
                backlog=config.backlog,
            )
            self.servers.append(server)
        self._stalls.start()

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop gracefully."""
        await super().shutdown(sockets)
        self._stalls.stop()


class InnerServer(BoundedServer):
    """Serves an ASGI application over HTTP, without WebSockets and without signal handlers.

    Args:
        application: Application that gets HTTP requests only; WebSockets are refused.
        listener: Socket that is bound to its address.
        bounds: Limits on connections.
        proxies: Trusted proxies, which are exempt from limits per address.
        more: Further settings of uvicorn, such as a certificate.
    """

    def __init__(
        self,
        application: ASGIApp,
        listener: socket.socket,
        bounds: Bounds | None = None,
        proxies: TrustedProxies | None = None,
        **more: Any,
    ) -> None:
        bounds = bounds or Bounds()
        watch = ConnectionWatch(bounds, descriptor_limit(), proxies)
        settings = {
            "ws": "websockets-sansio",
            "lifespan": "off",
            "timeout_graceful_shutdown": STOP_S,
            **more,
        }
        super().__init__(bounded_config(self._answer, watch, **settings), bounds)
        self.port = int(listener.getsockname()[1])
        self._application = application
        self._socket = listener
        self._listening = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def capture_signals(self) -> Any:
        """Leave signals to the outer server."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and wake up `open`."""
        await super().startup(sockets)
        self._listening.set()

    async def open(self) -> None:
        """Start to serve, and return when the server listens."""
        serving = self.serve(sockets=[self._socket])
        self._task = asyncio.get_running_loop().create_task(serving)
        await self._listening.wait()

    async def aclose(self) -> None:
        """Stop serving."""
        self.should_exit = True
        if self._task is not None:
            await self._task

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "no WebSocket here"})
