"""`InnerServer`: a server inside of another one, in the same loop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from typing import Any, Final

import uvicorn
from starlette.types import Receive, Scope, Send

STOP_S: Final = 1
"""So long requests may still take once it stops."""


class InnerServer(uvicorn.Server):
    """Serves an ASGI application on a socket, without handlers for signals.

    Args:
        listener: Bound to its address.
    """

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                lifespan="off",
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=STOP_S,
            )
        )
        self.port = int(listener.getsockname()[1])
        self._socket = listener
        self._listening = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def capture_signals(self) -> Any:
        """Leave signals to the outer server."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and set the event that `open` waits for."""
        await super().startup(sockets)
        self._listening.set()

    async def open(self) -> None:
        """Begin to serve; return when it listens."""
        serving = self.serve(sockets=[self._socket])
        self._task = asyncio.get_running_loop().create_task(serving)
        await self._listening.wait()

    async def aclose(self) -> None:
        """Stop serving."""
        self.should_exit = True
        if self._task is not None:
            await self._task

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.answer(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; implemented by subclasses."""
        raise NotImplementedError
