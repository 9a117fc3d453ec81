"""Answers that pages of other origins may read: those that the server's settings list (CORS).

The guard has let the request in by then. No cookie counts for such a page: it shows a token, or
needs none.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Message, Scope, Send

METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
HEADERS: Final = b"authorization, content-type, last-event-id"
TOLD: Final = b"x-arp-next"
"""Headers of ours that pages may read: where a list goes on."""
MAX_AGE_S: Final = b"600"
"""Browsers may remember so long what they may do."""


def is_preflight(scope: Scope) -> bool:
    """Tells whether a browser only asks if it may."""
    names = {name for name, _ in scope["headers"]}
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in names


async def answer_preflight(send: Send, origin: bytes) -> None:
    """Says what pages of an origin may ask for."""
    headers = [
        *_marks(origin),
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", HEADERS),
        (b"access-control-max-age", MAX_AGE_S),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def readable(send: Send, origin: bytes) -> Send:
    """Gives a way to answer that lets pages of an origin read what is answered, refusals too."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            told = (b"access-control-expose-headers", TOLD)
            headers = [*message.get("headers", ()), *_marks(origin), told]
            message = {**message, "headers": headers}
        await send(message)

    return sent


def _marks(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
