"""What a transport and the hub know of each other: where frames go, and who is at our end."""

from __future__ import annotations

from typing import Protocol

LOW_WATER_BYTES = 32 << 10
"""A renderer that was behind gets its catch-up when less than this waits for it."""


class FrameOutbox(Protocol):
    """Where a transport takes frames. Nothing here waits."""

    def send(self, frames: list[bytes]) -> None:
        """Send frames in order, or keep them until it can."""

    def send_first(self, frame: bytes) -> None:
        """Send a frame before those that wait; of several such only the newest waits."""

    @property
    def buffered(self) -> int:
        """Bytes that wait, without those that the transport has."""

    def waiting(self) -> list[bytes]:
        """Return the frames that these bytes are of; renderers may wait for the very same ones."""

    def close(self, code: int, reason: str) -> None:
        """End the connection, with a WebSocket close code (protocol.md 5)."""


class Drained(Protocol):
    """Who wants to know when an outbox has little left."""

    def drained(self) -> None:
        """Is called by the transport when its buffer has become small."""


class Conversation(Protocol):
    """Who is at our end of a connection, as the transport that carries it knows it."""

    @property
    def viewer(self) -> Drained:
        """Whom the outbox tells."""

    def start(self) -> None:
        """Is called once, when frames can be sent."""

    async def receive(self, frame: bytes | str, /) -> None:
        """Take one frame. Never raises for what is in it."""

    def closed(self) -> None:
        """Is called once, when the connection is gone."""
