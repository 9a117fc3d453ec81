"""That no process of an agent outlives what started it.

On Linux. Elsewhere an agent ends at the end of its input, after the command that it runs.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def ended_with_us(command: Sequence[str]) -> list[str]:
    """Return a command whose process gets SIGTERM when this one ends, even by SIGKILL.

    To be started in the thread of the loop: the signal comes when that thread ends.
    """
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "TERM", "--", *command] if setpriv else list(command)


def kill_marked(marks: Mapping[str, str]) -> list[int]:
    """Kill each process that has all these variables in its environment; return their ids.

    What a killed agent has started belongs to no one any more, and is in sessions of its own.
    """
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    killed = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            variables = (directory / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(directory.name)
        if wanted and wanted.issubset(variables) and pid != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
    return killed
