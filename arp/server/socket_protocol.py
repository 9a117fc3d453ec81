"""uvicorn's WebSocket protocol, with a way for ready frames past the per-message machinery.

Handshake, reading, control frames, keepalive and closing are uvicorn's and `websockets`'. Only data
frames that are whole and alike for many sockets go straight to the transport, between two messages;
no extension (compression) may be negotiated then, and none is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from arp.transport.wire import EXTENSION

if TYPE_CHECKING:
    from arp.transport.wire import Wire


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection; offers itself as `Wire`."""

    async def run_asgi(self) -> None:
        """Serves the application."""
        if not self.config.ws_per_message_deflate:
            extensions = cast("dict[str, Wire]", self.scope["extensions"])
            extensions[EXTENSION] = self
        await super().run_asgi()

    def can_write(self) -> bool:
        """As `Wire.can_write`."""
        return self.writable.is_set() and not (self.close_sent or self.transport.is_closing())

    def write(self, data: bytes) -> None:
        """As `Wire.write`."""
        self.transport.write(data)
