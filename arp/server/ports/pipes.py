"""An application over standard input and output: `arp serve --stdio` and `arp app-server`.

Standard output carries only the protocol. Output that an agent prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import BinaryIO

from arp.access.principal import Principal
from arp.control.connection import Connection
from arp.hub.peers.object_peer import peer_speaking
from arp.hub.peers.peer import Peer
from arp.process.stop_signals import StopSignals
from arp.protocol.framing.envelope import Dialect
from arp.server.ending import STOP_MARGIN_S, Deadline, run_to_end
from arp.server.state import ServerState, log_arrival
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.stdio import serve_stdio


def reserve_stdout() -> BinaryIO:
    """Return standard output for the protocol; later prints go to standard error."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def serve_pipes(
    state: ServerState,
    stdin: BinaryIO,
    stdout: BinaryIO,
    *,
    is_control: bool = False,
    dialect: Dialect = "session",
) -> None:
    """Serve the client of the two pipes until it closes its end or a signal arrives.

    Args:
        state: State of the server.
        stdin: Pipe with the frames of the client.
        stdout: Pipe for the frames of the server.
        is_control: Whether the client is a program that uses JSON-RPC and not a renderer.
        dialect: Dialect of a renderer.

    Raises:
        StoreError: The ledger cannot be opened.
    """
    deadline = Deadline(state.served.settings.stop_grace_s + STOP_MARGIN_S)
    signals: list[StopSignals] = []
    is_asked = False

    async def talk() -> None:
        programs: list[Connection] = []
        talking, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert talking is not None

        def make(outbox: QueueOutbox) -> Peer | Connection:
            if is_control:
                programs.append(Connection(plane, outbox, Principal(), _no_token_check))
                return programs[0]
            workflow, check = state.workflow, _no_token_check
            peer = peer_speaking(dialect)(hub, outbox, "json", workflow, Principal(), check)
            log_arrival(peer.viewer, "standard input")
            return peer

        async def finish() -> None:
            for program in programs:
                await program.wait_until_answered()
            await state.aclose()

        def stop_on_signal(number: int) -> None:
            deadline.begin()  # in this thread, because an agent may block the event loop
            with suppress(RuntimeError):  # the loop is closed, so everything has ended
                loop.call_soon_threadsafe(stop)

        def stop() -> None:
            nonlocal is_asked
            if not is_asked:  # a second cancellation would interrupt the graceful stop
                is_asked = True
                talking.cancel()

        signals.append(StopSignals(stop_on_signal))
        with suppress(asyncio.CancelledError):
            try:
                hub, plane = await state.hub(), await state.plane()
                await serve_stdio(stdin, stdout, make, finish)
            finally:
                await state.aclose()

    try:
        run_to_end(talk(), has_signals=lambda: any(one.are_handled for one in signals))
    finally:
        deadline.cancel()
        for one in signals:
            one.close()


async def _no_token_check(token: str) -> Principal | None:
    """Return the principal of the pipes. Not called, because the client needs no token."""
    return Principal()
