"""`StopSignals`: SIGTERM and SIGINT, handled in a thread.

Theory of operation. A signal handler runs between any two instructions of the main thread, even
while that thread holds a lock or runs the handler of the previous signal. So a handler must not
acquire a lock, not even the one in `threading.Event.set`: it could wait forever. The handler here
only writes the number of its signal to a pipe. A thread reads the pipe and calls the callback,
which may do anything.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that ask a process to stop."""


class StopSignals:
    """Handles the signals that ask this process to stop, from its construction on.

    It handles signals only if it is created in the main thread, because Python allows no other.

    Args:
        on_signal: Receives the numbers of the signals, one after the other, in a separate thread.
    """

    def __init__(self, on_signal: Callable[[int], None]) -> None:
        self._on_signal = on_signal
        self._write_end = -1
        if threading.current_thread() is not threading.main_thread():
            return
        read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        threading.Thread(
            target=self._read, args=(read_end,), name="arp-signals", daemon=True
        ).start()
        for number in STOPPING:
            signal.signal(number, self._handle)

    @property
    def are_handled(self) -> bool:
        """Whether signals are handled here now."""
        return self._write_end >= 0

    def close(self) -> None:
        """End the thread. Signals are then ignored until other code sets handlers."""
        write_end, self._write_end = self._write_end, -1  # the handler must not write to it now
        if write_end >= 0:
            os.close(write_end)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        write_end = self._write_end
        if write_end >= 0:
            with suppress(OSError):  # the pipe is full of signals that the thread will report
                os.write(write_end, bytes((number,)))

    def _read(self, read_end: int) -> None:
        try:
            while numbers := os.read(read_end, 256):
                for number in numbers:
                    self._on_signal(number)
        finally:
            os.close(read_end)


@contextmanager
def handlers_restored() -> Iterator[None]:
    """Restore the signal handlers at the end of a block."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore signals, so that they cannot change the exit code of a process that is ending."""
    if threading.current_thread() is threading.main_thread():
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
