"""Standard input and output: one line is one frame, and the end of the input ends the conversation.

Theory of operation. After the end of the input, turns may finish and their output is still sent,
so `echo '{…}' | arp serve app.py --stdio` prints an answer. When the turns have finished, the
remaining output has `FLUSH_S` seconds, so a parent that does not read cannot keep the process
alive.

A blocked read from a pipe, or write to a pipe, cannot be interrupted. So both run in daemon
threads. The exit of the process waits for asyncio's own threads, but not for daemon threads.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

from arp.live.outbox import Conversation
from arp.transport.queue_outbox import QueueOutbox

T = TypeVar("T")

MAX_LINE_BYTES = 8 << 20
"""Longest accepted line. Of a longer line, only the start is passed on, and then refused."""

READ_BYTES = 64 << 10

FLUSH_S = 1.0
"""Time in seconds for the remaining output after everything else has ended."""


async def serve_stdio(
    stdin: BinaryIO,
    stdout: BinaryIO,
    make_peer: Callable[[QueueOutbox], Conversation],
    finish: Callable[[], Awaitable[None]],
) -> None:
    """Serve the process at the other end of the pipes until it closes one of them.

    Args:
        stdin: Pipe with the client's lines.
        stdout: Pipe for the server's lines.
        make_peer: Makes the agent side of the conversation.
        finish: Waits until turns have finished; their output is still sent.

    Cancel: Safe; same effect as the end of the input.
    """
    outbox = QueueOutbox()
    peer = make_peer(outbox)
    outbox.viewer = peer.viewer
    peer.start()
    writing = asyncio.ensure_future(_write(stdout.fileno(), outbox))
    reading = asyncio.ensure_future(_read(stdin.fileno(), peer))
    try:
        ended, _ = await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        reading.cancel()
        await finish()
        peer.closed()
        outbox.close(1000, "end of input")
        await asyncio.wait((writing,), timeout=FLUSH_S)
        writing.cancel()


async def _read(descriptor: int, peer: Conversation) -> None:
    calls = BlockingCalls("arp-stdin")
    async for line in lines(lambda: calls.run(partial(os.read, descriptor, READ_BYTES))):
        await peer.receive(line)


async def lines(read: Callable[[], Awaitable[bytes]]) -> AsyncIterator[bytes]:
    """Yield lines without line ends; blank lines are left out.

    Args:
        read: Returns the next bytes; no bytes mean the end. The last line needs no line end.
    """
    held = bytearray()
    is_cut = False
    while chunk := await read():
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            held += piece
            if held.strip() and not is_cut:
                yield bytes(held.strip())
            held.clear()
            is_cut = False
        if not is_cut:
            held += rest
        if len(held) > MAX_LINE_BYTES:
            # The receiver refuses this part because of its size, so the client gets an answer. The
            # rest of the line is dropped: otherwise the buffer could grow without limit.
            yield bytes(held)
            held.clear()
            is_cut = True
    if held.strip():
        yield bytes(held.strip())


async def _write(descriptor: int, outbox: QueueOutbox) -> None:
    """Write frames until the outbox is closed or the reader has closed the pipe."""
    calls = BlockingCalls("arp-stdout")
    with suppress(OSError):
        while (frame := await outbox.dequeue()) is not None:
            await calls.run(partial(_write_whole, descriptor, frame + b"\n"))
            outbox.record_sent(frame)


def _write_whole(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# -- blocking calls --------------------------------------------------------------------------------


class BlockingCalls:
    """Runs blocking calls one after the other in a separate daemon thread."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread; return its value or raise its exception.

        Cancel: Safe; the function itself continues, and its result is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def call() -> None:
            try:
                value = function()
            except Exception as error:  # noqa: BLE001  # passed on to the caller
                _report(loop, future, future.set_exception, error)
            else:
                _report(loop, future, future.set_result, value)

        self._calls.put(call)
        return await future

    def end(self) -> None:
        """End the thread after the queued calls."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _report(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    set_outcome: Callable[[Any], None],
    outcome: object,
) -> None:
    def report() -> None:
        if not future.done():
            set_outcome(outcome)

    with suppress(RuntimeError):  # the loop is closed, so no caller waits
        loop.call_soon_threadsafe(report)
