"""Serve an app below a path of another ASGI application, without changes to that application.

Theory of operation. FastAPI and Starlette can mount an application. Django cannot, and it serves
neither WebSockets nor the lifespan. Therefore `PathMount` wraps the other application: it passes
requests below the path to the app, and all others unchanged to the other application. Both
lifespans run, that of the other application first if it has one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from arp.transport.websocket import Event, Receive, Scope, Send

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class PathMount:
    """Serves an app below a path, and another application everywhere else.

    Args:
        app: The ASGI application of the app.
        path: Path of the app, such as `/agent`.
        parent: The other application.

    Raises:
        ValueError: The path is not valid, or `parent` is not callable.
    """

    def __init__(self, app: ASGIApp, path: str, parent: ASGIApp) -> None:
        prefix = path.rstrip("/")
        if not prefix.startswith("/") or "//" in prefix or any(mark in prefix for mark in "?#{}"):
            raise ValueError(f"path: expected a path as /agent, got {path!r:.60}")
        if not callable(parent):
            raise ValueError(f"inside: expected an ASGI application, got {type(parent).__name__}")
        self._app = app
        self._path = prefix
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
    """Runs the lifespan of one application; does nothing if the application has none."""

    def __init__(self, app: ASGIApp, scope: Scope) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._replies: asyncio.Queue[Event] = asyncio.Queue()
        self._scope = scope
        self._app = app
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Event | None:
        """Start the application; return the event that reports a failed startup, or `None`."""
        running = self._app(self._scope, self._events.get, self._replies.put)
        self._task = asyncio.ensure_future(running)
        return await self._ask("startup")

    async def stop(self) -> Event | None:
        """Stop the application; return the event that reports a failed shutdown, or `None`."""
        answer = await self._ask("shutdown")
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        return answer

    async def _ask(self, what: str) -> Event | None:
        task = self._task
        if task is None:
            return None
        self._events.put_nowait({"type": f"lifespan.{what}"})
        answer = asyncio.ensure_future(self._replies.get())
        await asyncio.wait((task, answer), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            # The application returned or raised without an event, so it has no lifespan. Servers
            # treat it in the same way.
            answer.cancel()
            if not task.cancelled():
                task.exception()
            self._task = None
            return None
        event = answer.result()
        return None if event["type"] == f"lifespan.{what}.complete" else event


async def _redirect(scope: Scope, send: Send, path: str) -> None:
    """Redirect a browser to a path with a final slash, because links in the page are relative."""
    query = scope.get("query_string", b"")
    location = path.encode() + (b"?" + query if query else b"")
    headers = [(b"location", location), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
