"""What the driver asks of a transport: one live connection that carries frames both ways."""

from __future__ import annotations

from typing import Protocol

MAX_FRAME_BYTES = 16 << 20
"""Longest frame taken from a server: a message has at most 1 MiB, a batch of them some more."""

OPEN_TIMEOUT_S = 10.0
"""For name, TCP, TLS and handshake together."""


class Link(Protocol):
    """One connection, open, with its `hello` said.

    `receive` and `send` may run at the same time, but only one of each. A link that raised
    `LinkLost` once is of no further use but to be closed.
    """

    carries_acks: bool
    """Whether the server can tell whose `ack` of a frame it is."""

    is_remote: bool
    """Whether a network lies between, which may die without a word."""

    async def receive(self) -> bytes:
        """Return the next frame.

        Raises:
            LinkLost: The connection is over.
        """

    async def send(self, frame: bytes) -> bytes | None:
        """Send a frame; wait while the network is slower than we are.

        Returns:
            What the server answered in the same breath, where the transport has that; a frame like
            any other.

        Raises:
            LinkLost: The connection is over; whether the frame arrived is not known.
        """

    async def aclose(self) -> None:
        """Close within a few seconds, whatever the peer does. Never raises."""
