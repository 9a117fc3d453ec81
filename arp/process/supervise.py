"""Run a program so that none of its child processes outlives it, or the caller. On Linux.

    python -I -S supervise.py HOST PROGRAM ARGUMENT…    # HOST: the process id of the caller

This process runs between the caller and the program. It is a "subreaper": every orphan below it
becomes its child. SIGTERM makes it end the program; the kernel also sends SIGTERM when the caller
ends for any reason. When the program has ended, this process kills all processes that the program
left, and ends itself. Standard input and output belong to the program. If this process is killed,
the program is killed too. It imports the standard library only, so that it starts in milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""Numbers of prctl(2), in <linux/prctl.h>."""
GRACE_S = 2.0
"""Seconds between SIGTERM and the kill of a program that has not ended."""
LEFTOVERS_S = 2.0
"""Seconds to wait for killed processes; a process in a system call may not end at once."""

AWAITED = {signal.SIGTERM, signal.SIGCHLD}


def supervised(command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` supervised; on other systems, `command` itself.

    Start it in the thread of the event loop: to the kernel, the end of the thread that starts a
    program is the end of the caller.
    """
    if sys.platform != "linux" or not sys.executable:
        return list(command)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(host: int, command: Sequence[str]) -> int:
    """Run a command and return its status, as `os.waitpid` returns it."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    program = start(command, libc)
    for stream in (0, 1, 2):
        os.close(stream)  # while this process has it open, readers do not see the program close it
    if os.getppid() != host:
        os.kill(os.getpid(), signal.SIGTERM)  # the host ended before PR_SET_PDEATHSIG was set
    status = wait_for(program)
    end_leftovers()
    return status


def start(command: Sequence[str], libc: ctypes.CDLL) -> int:
    """Start a program that does not outlive this process, and return its id."""
    environment = given_environment()
    supervisor = os.getpid()
    program = os.fork()
    if program:
        return program
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and the program inherits that
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        # Otherwise the supervisor ended before PR_SET_PDEATHSIG was set, and nothing would end the
        # program.
        if os.getppid() == supervisor:
            os.execvpe(command[0], list(command), environment)
    except OSError as failed:
        os.write(2, f"{command[0]} cannot be started: {failed.strerror}\n".encode())
    os._exit(127)


def given_environment() -> dict[bytes, bytes]:
    """Return the environment with which this process was started.

    `os.environ` may have more: without a locale, Python adds `LC_CTYPE` for its child processes.
    """
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    named = (entry.partition(b"=") for entry in entries if entry)
    return {name: value for name, _, value in named}


def wait_for(program: int) -> int:
    """Wait until a program has ended and return its status; pass SIGTERM on to it."""
    kill_at = float("inf")
    while True:
        received = signal.sigtimedwait(AWAITED, max(0.0, min(kill_at - time.monotonic(), 60.0)))
        if received is not None and received.si_signo == signal.SIGTERM:
            kill_at = min(kill_at, time.monotonic() + GRACE_S)
            os.kill(program, signal.SIGTERM)
        elif time.monotonic() >= kill_at:
            os.kill(program, signal.SIGKILL)
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                return ended[1]


def end_leftovers() -> None:
    """Kill all children; their own children then become children of this process, and so on."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    deadline = time.monotonic() + LEFTOVERS_S
    with suppress(ChildProcessError, FileNotFoundError):
        while time.monotonic() < deadline:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.005)


def end_as(status: int) -> None:
    """End this process with the same exit code or signal as a process with this status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    end_as(main(int(sys.argv[1]), sys.argv[2:]))
