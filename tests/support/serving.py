"""Serve an app to tests with the real server: uvicorn on a free port, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from arp import App
from arp.server.application import Application
from arp.server.serve import Port, Server, bind, configuration
from arp.server.state import ServerState

START_S = 30.0
"""Longest time in seconds that a server may take to start, to answer a call, and to stop."""

T = TypeVar("T")


class Serving(NamedTuple):
    """A running server."""

    port: int
    application: Application
    loop: asyncio.AbstractEventLoop
    addresses: tuple[str, ...] = ()
    """Addresses of the ports other than HTTP."""

    @property
    def http(self) -> str:
        """HTTP address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws(self) -> str:
        """WebSocket address of the server."""
        return f"ws://127.0.0.1:{self.port}/_arp/v1"

    def call(self, ask: Callable[[], T]) -> T:
        """Call a function in the server's event loop, and return its result."""

        async def run() -> T:
            return ask()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(START_S)


@contextmanager
def serving(
    app: App, *, ledger: str | None = None, ports: Sequence[Callable[[ServerState], Port]] = ()
) -> Iterator[Serving]:
    """Serve an app until the block ends.

    Args:
        app: The app.
        ledger: Location of the facts; `None` uses the app's own.
        ports: Functions that create ports in addition to HTTP.
    """
    application = Application(app.served(ledger=ledger))
    opened = [make(application.state) for make in ports]
    listener = bind("127.0.0.1", 0)
    ready = threading.Event()
    server = Server(configuration(application), application, ready.set, opened)
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        try:
            await server.serve([listener])
        finally:
            ready.set()

    def work() -> None:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(run())

    thread = threading.Thread(target=work, name="arp-test-server")
    thread.start()
    try:
        assert ready.wait(START_S), "the server did not start"
        assert server.started, "the server stopped at once"
        addresses = tuple(port.address for port in opened)
        yield Serving(listener.getsockname()[1], application, loops[0], addresses)
    finally:
        server.should_exit = True
        thread.join(START_S)
        assert not thread.is_alive(), "the server did not stop"
