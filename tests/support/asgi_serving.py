"""Serve any ASGI application on a free port, in a thread with its own event loop."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

START_S = 30.0
"""Longest time in seconds that a server may take to start, and to stop."""


class _ReportingServer(uvicorn.Server):
    """Server that sets an event when its start has succeeded or failed."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_ready.set()


@contextmanager
def serving_asgi(app: Any, listener: socket.socket | None = None, **more: Any) -> Iterator[str]:
    """Serve an application until the block ends, and yield its address.

    Args:
        app: The ASGI application.
        listener: Socket to listen on; `None` uses a free port of 127.0.0.1.
        more: More settings of `uvicorn.Config`.
    """
    listener = listener or socket.create_server(("127.0.0.1", 0))
    options = {"log_level": "critical", "ws": "websockets-sansio", **more}
    server = _ReportingServer(uvicorn.Config(app, **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        assert server.is_ready.wait(START_S)
        assert server.started, "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_S)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"
