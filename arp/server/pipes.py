"""An application over standard input and output: `arp serve --stdio`.

Nothing but the protocol stands on standard output, also when an agent prints, or what it calls.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from arp.hub.directory import Principal
from arp.hub.peer import Peer
from arp.server.arrivals import log_arrival
from arp.server.ending import run_to_end
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.stdio import serve_stdio

if TYPE_CHECKING:
    from arp.server.application import Application


def take_stdout() -> BinaryIO:
    """Gives standard output to the protocol alone; what is printed from now on goes to stderr."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def serve_pipes(application: Application, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serves the one renderer at the other end, until it closes its end or a signal comes.

    Raises:
        StoreError: The ledger cannot be opened.
    """
    run_to_end(_talk(application, stdin, stdout))


async def _talk(application: Application, stdin: BinaryIO, stdout: BinaryIO) -> None:
    hub = await application.hub()
    talking = asyncio.current_task()
    assert talking is not None
    for name in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # where loops know no signals
            asyncio.get_running_loop().add_signal_handler(name, talking.cancel)

    def make_peer(outbox: QueueOutbox) -> Peer:
        check = application.guard.check_token
        peer = Peer(hub, outbox, "json", application.workflow, Principal(), check)
        log_arrival(peer.viewer, "standard input")
        return peer

    with suppress(asyncio.CancelledError):
        await serve_stdio(stdin, stdout, make_peer, application.aclose)
