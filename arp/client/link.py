"""The interface of a transport: one open connection that carries frames in both directions."""

from __future__ import annotations

from typing import Protocol

MAX_FRAME_BYTES = 16 << 20
"""Maximum size of a received frame. A message has at most 1 MiB; a batch may have more."""

OPEN_TIMEOUT_S = 10.0
"""Time to open a connection: name resolution, TCP, TLS and handshake together."""


class Link(Protocol):
    """One open connection on which `hello` has been sent.

    One `receive` and one `send` may run at the same time. After `LinkLost`, only `aclose` may be
    called.
    """

    carries_acks: bool
    """Whether the server can identify the renderer that sends an `ack` of a frame."""

    is_remote: bool
    """Whether the connection uses a network, which may fail without notice."""

    async def receive(self) -> bytes:
        """Wait for the next frame and return it.

        Raises:
            LinkLost: The connection has ended.
        """

    async def send(self, frame: bytes) -> bytes | None:
        """Send a frame; wait until the network has capacity for it.

        Returns:
            A frame that answers this one, if the transport has answers (such as POST); otherwise
            `None`.

        Raises:
            LinkLost: The connection has ended. It is unknown whether the frame arrived.
        """

    async def aclose(self) -> None:
        """Close the connection within a few seconds, whatever the peer does. Never raises."""
