"""An application over standard input and output: `arp serve --stdio` and `arp app-server`.

Standard output carries the protocol alone: what an agent prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import BinaryIO, TypeAlias

from arp.access.principal import Principal
from arp.control.connection import Connection
from arp.hub.outbox import Conversation
from arp.hub.peer import Peer
from arp.server.ending import STOP_MARGIN_S, Deadline, run_to_end
from arp.server.state import ServerState, log_arrival
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.stdio import serve_stdio


def take_stdout() -> BinaryIO:
    """Return standard output for the protocol alone; what is printed from now on goes to stderr."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


Make: TypeAlias = Callable[[QueueOutbox], Conversation]
"""Makes our end of a conversation."""

Finish: TypeAlias = Callable[[], Awaitable[None]]
"""Ends the application when the input has ended."""


Begin: TypeAlias = Callable[[ServerState], Awaitable[tuple[Make, Finish]]]
"""Starts to serve, and returns what a conversation needs."""


def serve_pipes(state: ServerState, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve the one renderer at the other end, until it closes its end or a signal comes.

    Raises:
        StoreError: The ledger cannot be opened.
    """
    _run(state, stdin, stdout, _renderer)


def serve_control(state: ServerState, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve the one program at the other end, in JSON-RPC, as `serve_pipes` serves a renderer.

    Raises:
        StoreError: The ledger cannot be opened.
    """
    _run(state, stdin, stdout, _program)


async def _known_already(token: str) -> Principal | None:
    """Return who a token belongs to. It is not called: who has our pipes needs no token."""
    return Principal()


async def _renderer(state: ServerState) -> tuple[Make, Finish]:
    hub = await state.hub()
    workflow = state.workflow

    def make_peer(outbox: QueueOutbox) -> Peer:
        peer = Peer(hub, outbox, "json", workflow, Principal(), _known_already)
        log_arrival(peer.viewer, "standard input")
        return peer

    return make_peer, state.aclose


async def _program(state: ServerState) -> tuple[Make, Finish]:
    plane = await state.plane()
    made: list[Connection] = []

    def make_connection(outbox: QueueOutbox) -> Connection:
        made.append(Connection(plane, outbox, Principal(), _known_already))
        return made[0]

    async def finish() -> None:
        for connection in made:
            await connection.answered()
        await state.aclose()

    return make_connection, finish


def _run(state: ServerState, stdin: BinaryIO, stdout: BinaryIO, begin: Begin) -> None:
    deadline = Deadline(state.served.settings.stop_grace_s + STOP_MARGIN_S)
    handled: list[signal.Signals] = []

    async def talk() -> None:
        make, finish = await begin(state)
        talking, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert talking is not None

        def stop(number: int, frame: FrameType | None) -> None:
            deadline.begin()
            loop.call_soon_threadsafe(talking.cancel)

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)  # not `loop.add_signal_handler`: an agent may block the loop
            handled.append(name)
        with suppress(asyncio.CancelledError):
            await serve_stdio(stdin, stdout, make, finish)

    try:
        run_to_end(talk(), has_signals=lambda: bool(handled))
    finally:
        deadline.cancel()
