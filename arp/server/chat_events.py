"""`GET /_api/chat-events`: what changes in the asker's list of chats, for lists in other tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, Route

from arp.protocol.codec import encode_json
from arp.server.chat_rows import chat_row
from arp.store.store import SessionMeta
from arp.transport.event_stream import EventWriter, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

if TYPE_CHECKING:
    from arp.server.application import Application

MOST_BYTES = 256 << 10
"""That wait for one list; whoever reads more slowly is sent away, comes back and asks anew."""


def chat_event_routes(application: Application) -> list[BaseRoute]:
    """Gives the route."""
    return [Route("/_api/chat-events", _ChatEvents(application), methods=["GET"])]


class _ChatEvents:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hub = await self._application.hub()
        outbox = QueueOutbox()

        def tell(changed: SessionMeta | str) -> None:
            outbox.send([_named(changed)])
            if outbox.buffered > MOST_BYTES:
                outbox.close(1013, "too slow")

        stop = hub.directory.listing.listen(scope["arp"].principal.name, tell)
        self._application.streams.add(outbox)
        try:
            await stream(receive, send, outbox, ChatWriter())
        finally:
            self._application.streams.discard(outbox)
            stop()


def _named(changed: SessionMeta | str) -> bytes:
    if isinstance(changed, str):
        return b"removed\n" + encode_json({"id": changed})
    return b"chat\n" + encode_json(chat_row(changed))


class ChatWriter(EventWriter):
    """Turns each change into one event; its first line is the event's name."""

    def begin(self) -> bytes:
        """Says that the stream has begun."""
        return b": \n\n"

    def event(self, frame: bytes) -> bytes:
        """Gives one event."""
        name, _, data = frame.partition(b"\n")
        return b"event: " + name + b"\ndata: " + data + b"\n\n"
