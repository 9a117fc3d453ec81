"""The interface between transports and the hub: outgoing frames and incoming ones."""

from __future__ import annotations

from typing import Protocol

LOW_WATER_BYTES = 32 << 10
"""Bytes in the buffer below which a lagging renderer gets its catch-up."""


class FrameOutbox(Protocol):
    """Outgoing frames of a connection; no method waits."""

    def send(self, frames: list[bytes]) -> None:
        """Send frames in order, or buffer them."""

    def send_first(self, frame: bytes) -> None:
        """Send a frame before the buffered ones; a newer such frame replaces an unsent one."""

    @property
    def buffered(self) -> int:
        """Buffered bytes, without those that the transport has taken."""

    def waiting(self) -> list[bytes]:
        """Return the buffered frames; other renderers may buffer the same objects."""

    def close(self, code: int, reason: str) -> None:
        """Close the connection with a WebSocket close code (protocol.md 5)."""


class DrainListener(Protocol):
    """Receiver of the signal that an outbox is nearly empty."""

    def drained(self) -> None:
        """Continue; the transport calls this when its buffer has become small."""


class Conversation(Protocol):
    """Agent side of a connection, as its transport sees it."""

    @property
    def viewer(self) -> DrainListener:
        """Receiver of the outbox's signal."""

    def start(self) -> None:
        """Begin the conversation; called once, when frames can be sent."""

    async def receive(self, frame: bytes | str, /) -> None:
        """Process one frame; invalid content never raises."""

    def closed(self) -> None:
        """End the conversation; called once, when the connection is closed."""
