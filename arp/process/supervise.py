"""Run a program so that nothing which it has started outlives it, or us. On Linux.

    python -I -S supervise.py HOST PROGRAM ARGUMENT…    # HOST: the process id of who starts it

It stands between us and an agent. Only the parent of a process gets what that process leaves when
it is killed, so this one becomes the parent of every orphan below it ("subreaper"). It ends when
the program has ended, or by SIGTERM, which comes also when we end in whatever way; and it takes
with it all that is left. Standard input and output are the program's own. If this process itself is
killed, the program is too. It imports nothing that is not in Python, so that it starts in
milliseconds.
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
"""How long the program may take to end after SIGTERM, before it is killed."""
LEFTOVERS_S = 2.0
"""How long what is left may take to die; a process in the kernel cannot at once."""

AWAITED = {signal.SIGTERM, signal.SIGCHLD}


def supervised(command: Sequence[str]) -> list[str]:
    """Return a command that runs this one so; the same command where that cannot be.

    To be started in the thread of the loop: what counts as our end is the end of that thread.
    """
    if sys.platform != "linux" or not sys.executable:
        return list(command)
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(host: int, command: Sequence[str]) -> int:
    """Run a command and return its status, as `os.waitpid` has it."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    program = start(command, libc)
    for stream in (0, 1, 2):
        os.close(stream)  # Or their readers would not see that the program has closed them.
    if os.getppid() != host:
        os.kill(os.getpid(), signal.SIGTERM)  # The host ended before we could be told.
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
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and the program would too.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        if os.getppid() == supervisor:
            os.execvpe(command[0], list(command), environment)
    except OSError as failed:
        os.write(2, f"{command[0]} cannot be started: {failed.strerror}\n".encode())
    os._exit(127)


def given_environment() -> dict[bytes, bytes]:
    """Return the environment with which this process was started.

    `os.environ` may have more: without a locale, Python adds `LC_CTYPE` for what it starts.
    """
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    named = (entry.partition(b"=") for entry in entries if entry)
    return {name: value for name, _, value in named}


def wait_for(program: int) -> int:
    """Return the status of a program when it has ended; SIGTERM is passed on to it."""
    kill_at = float("inf")
    while True:
        got = signal.sigtimedwait(AWAITED, max(0.0, min(kill_at - time.monotonic(), 60.0)))
        if got is not None and got.si_signo == signal.SIGTERM:
            kill_at = min(kill_at, time.monotonic() + GRACE_S)
            os.kill(program, signal.SIGTERM)
        elif time.monotonic() >= kill_at:
            os.kill(program, signal.SIGKILL)
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                return ended[1]


def end_leftovers() -> None:
    """Kill all children, and theirs, which become ours when they have lost their parents."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    deadline = time.monotonic() + LEFTOVERS_S
    with suppress(ChildProcessError, FileNotFoundError):
        while time.monotonic() < deadline:
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.005)


def end_as(status: int) -> None:
    """End in the way in which a process with this status did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    end_as(main(int(sys.argv[1]), sys.argv[2:]))
