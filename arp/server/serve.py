"""Run an application under uvicorn, report when it is ready, and stop it gracefully.

Theory of operation. On SIGTERM or SIGINT the server stops listening and asks renderers to reconnect
(close code 1012). It waits for turns to finish for `stop_grace_s`, parks the others, and exits
within ten seconds with the default settings.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import uvicorn

from arp.hub.hub import Hub
from arp.net.bounded_server import BoundedServer, bounded_config
from arp.net.connections import ConnectionWatch, descriptor_limit
from arp.process.stop_signals import StopSignals
from arp.server.application import Application
from arp.server.ending import STOP_MARGIN_S, Deadline, run_to_end
from arp.server.ports.socket_protocol import SocketProtocol

PING_S = 20.0
"""Seconds between WebSocket pings, and the time for their answers. Source: protocol.md 6."""

DRAIN_S = 1
"""Time in seconds for open requests when the server stops. Turns have their own time limit."""

SWITCH_S = 0.0005
"""Interval in seconds after which a thread that computes must release the interpreter lock.

The thread that writes the ledger needs the lock several times for each write. With Python's default
of 5 ms and a busy event loop, text waited longer for the lock than for the disk.
"""

FRAME_FACTOR = 4
"""Factor for the protocol's message limit: a larger WebSocket message closes the connection (1009).

For a message between the limit and this size, the sender gets a coded error and the connection
stays open.
"""


def configuration(application: Application, **more: Any) -> uvicorn.Config:
    """Return uvicorn's settings for an application."""
    bounds = application.state.served.access.bounds
    max_bytes = application.state.served.settings.limits.max_message_bytes
    watch = ConnectionWatch(bounds, descriptor_limit(), application.state.guard.proxies)
    return bounded_config(
        application,
        watch,
        ws=SocketProtocol,
        ws_max_size=FRAME_FACTOR * max_bytes,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=DRAIN_S,
        lifespan="on",
        **more,
    )


SEND_BUFFER_BYTES = 128 << 10
"""Kernel send buffer of a connection (Linux doubles the value); accepted sockets inherit it.

By default the buffer grows to megabytes, and a slow renderer would receive outdated data from it.
"""


class Port(Protocol):
    """A transport besides HTTP: another listener, or an outgoing connection."""

    @property
    def address(self) -> str:
        """Address for clients, or the address that the server connects to."""

    async def start(self) -> None:
        """Start serving.

        Raises:
            LocalError: The port cannot be opened; the message says why, and what to do.
        """

    async def stop(self) -> None:
        """Ask every renderer to reconnect, and stop. May be called without `start`."""


class Server(BoundedServer):
    """A uvicorn server that reports when it is ready and ends event streams when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        application: Application,
        ready: Callable[[], None],
        ports: Sequence[Port] = (),
    ) -> None:
        settings = application.state.served.settings
        bounds = application.state.served.access.bounds
        super().__init__(config, bounds, settings.stall_s)
        self._ports = ports
        self.was_asked = False
        """Whether a signal has stopped the server."""
        self._opening: asyncio.Future[Hub] | None = None
        self.is_broken = False
        """Whether the server stops because the hub cannot continue."""
        self._application = application
        self._ready = ready
        self._deadline = Deadline(settings.stop_grace_s + STOP_MARGIN_S)

    def give_up(self) -> None:
        """Stop because the hub cannot continue."""
        self.is_broken = self.should_exit = True
        self._deadline.begin()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, because `serve` handles the signals, also before and after this block."""
        yield

    async def open_hub(self) -> Hub | None:
        """Open the hub; return `None` if a signal arrives meanwhile."""
        opening = self._opening = asyncio.ensure_future(self._application.hub())
        await asyncio.wait((opening,))
        return None if opening.cancelled() else opening.result()

    def stop_on_signal(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        """Stop because of a signal. Called in the thread of `StopSignals`."""
        self._deadline.begin()  # in this thread, because an agent may block the event loop
        with suppress(RuntimeError):  # the loop is closed, so everything has ended
            loop.call_soon_threadsafe(self._stop, number)

    def _stop(self, number: int) -> None:
        """Stop gracefully; a second Ctrl-C stops at once.

        Unlike uvicorn, do not raise the signal again, because a requested stop is a success.
        """
        if self.should_exit and number == signal.SIGINT:
            self.force_exit = True
            self._application.state.hurry()
        self.should_exit = self.was_asked = True
        if self._opening is not None:
            self._opening.cancel()

    def release(self) -> None:
        """Cancel the deadline after serving has ended."""
        self._deadline.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, open the other ports, and report that the server is ready."""
        await super().startup(sockets)
        if self.started:
            for port in self._ports:
                await port.start()
            self._application.state.in_transports = self._stalls.in_transports
            calm_collector()
            sys.setswitchinterval(SWITCH_S)
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop gracefully."""
        self._application.state.close_streams()
        await asyncio.gather(*(port.stop() for port in self._ports))
        await super().shutdown(sockets)
        if self.force_exit:
            # `super().shutdown` has skipped the lifespan, so the ledger is still open.
            await self.lifespan.shutdown()


def calm_collector() -> None:
    """Make the garbage collector ignore existing objects and run less often.

    Objects loaded by now stay until the process ends. A server creates many objects that live as
    long as a session, and full collections of all of them took a fifth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def is_private(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    return host in ("127.0.0.1", "localhost", "::1")


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: The address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def serve(
    application: Application,
    listener: socket.socket,
    ready: Callable[[], None],
    ports: Sequence[Port] = (),
) -> bool:
    """Serve until a signal arrives.

    A second Ctrl-C stops at once. Other further signals have no effect, even after this function
    has returned.

    Args:
        application: Application to serve.
        listener: Listening socket for HTTP.
        ready: Called when the server is listening.
        ports: Other transports to serve.

    Returns:
        Whether the server stopped normally: it had started or was stopped by a signal, and the hub
        did not break.

    Raises:
        StoreError: The ledger cannot be opened; nothing was served.
        LocalError: A port cannot be opened; nothing was served.
    """
    server = Server(configuration(application), application, ready, ports)
    signals: StopSignals | None = None

    async def serve_all() -> None:
        nonlocal signals
        signals = StopSignals(partial(server.stop_on_signal, asyncio.get_running_loop()))
        with listener:
            try:
                hub = await server.open_hub()
                if hub is not None:
                    hub.on_broken = server.give_up
                    await server.serve([listener])
            finally:
                await asyncio.gather(*(port.stop() for port in ports))
                await application.aclose()

    def has_signals() -> bool:
        return signals is not None and signals.are_handled

    try:
        run_to_end(serve_all(), server.config.get_loop_factory(), has_signals)
    finally:
        server.release()
        if signals is not None:
            signals.close()
    return (server.started or server.was_asked) and not server.is_broken
