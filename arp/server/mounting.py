"""An app below a path of another ASGI application, which need not know of it.

Theory of operation. FastAPI and Starlette can mount an application; Django cannot, and it serves
neither WebSockets nor the lifespan. So this stands in front of the other application: it takes what
is below the path, and hands on the rest unchanged. Both lifespans run, that of the other
application first, as far as it has one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from arp.transport.websocket import Event, Receive, Scope, Send

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Mounted:
    """Serves an app below a path, and another application everywhere else.

    Args:
        app: The ASGI application of the app.
        path: As `/agent`.
        parent: The other application.

    Raises:
        ValueError: The path is none.
    """

    def __init__(self, app: ASGIApp, path: str, parent: ASGIApp) -> None:
        place = path.rstrip("/")
        if not place.startswith("/") or "//" in place or any(mark in place for mark in "?#{}"):
            raise ValueError(f"path: expected a path as /agent, got {path!r:.60}")
        if not callable(parent):
            raise ValueError(f"inside: expected an ASGI application, got {type(parent).__name__}")
        self._app = app
        self._path = place
        self._parent = parent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or connection, or the lifespans of both."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        root: str = scope.get("root_path", "")
        below = scope["path"].removeprefix(root).removeprefix(self._path)
        is_below = scope["path"].startswith(f"{root}{self._path}") and below[:1] in ("", "/")
        if not is_below:
            await self._parent(scope, receive, send)
        elif not below and scope["type"] == "http":
            await _redirect(scope, send, f"{root}{self._path}/")
        else:
            await self._app({**scope, "root_path": f"{root}{self._path}"}, receive, send)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        parent, own = _PartLifespan(self._parent, scope), _PartLifespan(self._app, scope)
        for one in (parent, own):
            failed = await one.start()
            if failed is not None:
                if one is own:
                    await parent.stop()
                await send(failed)
                return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await own.stop()
        failed = await parent.stop()
        await send(failed or {"type": "lifespan.shutdown.complete"})


class _PartLifespan:
    """The lifespan of one application, as a server runs it; of one without, nothing."""

    def __init__(self, app: ASGIApp, scope: Scope) -> None:
        self._asked: asyncio.Queue[Event] = asyncio.Queue()
        self._answers: asyncio.Queue[Event] = asyncio.Queue()
        self._scope = scope
        self._app = app
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Event | None:
        """Start it; return its answer if that is no yes."""
        running = self._app(self._scope, self._asked.get, self._answers.put)
        self._task = asyncio.ensure_future(running)
        return await self._ask("startup")

    async def stop(self) -> Event | None:
        """Stop it; return its answer if that is no yes."""
        answer = await self._ask("shutdown")
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        return answer

    async def _ask(self, what: str) -> Event | None:
        task = self._task
        if task is None:
            return None
        self._asked.put_nowait({"type": f"lifespan.{what}"})
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait((task, answer), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            # It ended without a word: it has no lifespan. Servers take it so too.
            answer.cancel()
            if not task.cancelled():
                task.exception()
            self._task = None
            return None
        event = answer.result()
        return None if event["type"] == f"lifespan.{what}.complete" else event


async def _redirect(scope: Scope, send: Send, place: str) -> None:
    """Lead a browser to the page, whose own addresses are relative to its path."""
    query = scope.get("query_string", b"")
    location = place.encode() + (b"?" + query if query else b"")
    headers = [(b"location", location), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
