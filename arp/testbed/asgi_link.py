"""`AsgiLink`: a WebSocket connection to an ASGI application in this process, without a socket.

The application receives the same events as from a server: a handshake with headers, then one event
for each frame. Therefore its guard, its login and its routes work as in production.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from arp.client.errors import LinkLost, ServerRefused, lost_by_close

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Any]
"""Any ASGI application."""

HOST = "127.0.0.1"
"""Host name of applications in tests."""

CLOSE_S = 5.0
"""Time in seconds that an application has to end a closed connection."""

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


def headers_of(headers: Mapping[str, str], cookies: Mapping[str, str]) -> Headers:
    """Return ASGI headers. With cookies, add the `origin` that a browser sends from the page."""
    pairs = {"host": HOST, **{name.lower(): value for name, value in headers.items()}}
    if cookies:
        pairs.setdefault("origin", f"http://{HOST}")
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        pairs["cookie"] = "; ".join(filter(None, (pairs.get("cookie"), cookie)))
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs.items()]


def handshake(path: str, headers: Headers) -> dict[str, Any]:
    """Return the scope of a WebSocket handshake."""
    return {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": b"",
        "headers": list(headers),
        "client": (HOST, 50_000),
        "server": (HOST, 80),
        "subprotocols": ["arp.session.v1.json"],
        "state": {},
        "extensions": {},
    }


class AsgiLink:
    """One open connection."""

    carries_acks = True
    is_remote = False

    def __init__(self) -> None:
        self._to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._serving: asyncio.Task[None] | None = None
        self._lost: LinkLost | None = None

    async def open(self, app: AsgiApp, scope: dict[str, Any], hello: bytes) -> None:
        """Connect and send the `hello`.

        Raises:
            LinkLost: The application refused the handshake.
        """
        self._to_app.put_nowait({"type": "websocket.connect"})
        self._serving = asyncio.create_task(self._serve(app, scope), name="arp testing connection")
        answer = await self._from_app.get()
        if answer["type"] != "websocket.accept":
            await self.aclose()
            raise LinkLost(
                "refused",
                error=ServerRefused(
                    f"the application refused the connection to {scope['path']}: there is no app "
                    "at this path (at=…), or these headers and cookies give no access"
                ),
            )
        await self.send(hello)

    async def _serve(self, app: AsgiApp, scope: dict[str, Any]) -> None:
        async def send(message: Any) -> None:
            self._from_app.put_nowait(dict(message))

        try:
            await app(scope, self._to_app.get, send)
        finally:
            self._from_app.put_nowait({"type": "websocket.close", "code": 1006, "reason": ""})

    async def receive(self) -> bytes:
        """Return the next frame.

        Raises:
            LinkLost: The application has ended the connection.
        """
        if self._lost is not None:
            raise self._lost
        message = await self._from_app.get()
        if message["type"] == "websocket.send":
            text = message.get("text")
            return bytes(message["bytes"]) if text is None else str(text).encode()
        self._lost = lost_by_close(message.get("code", 1000), message.get("reason", ""))
        raise self._lost

    async def send(self, frame: bytes) -> None:
        """Send a frame."""
        self._to_app.put_nowait({"type": "websocket.receive", "text": frame.decode()})

    async def aclose(self) -> None:
        """Close the connection, and wait until the application has ended it."""
        self._to_app.put_nowait({"type": "websocket.disconnect", "code": 1000, "reason": ""})
        if self._serving is not None:
            _, pending = await asyncio.wait([self._serving], timeout=CLOSE_S)
            for task in pending:
                task.cancel()
