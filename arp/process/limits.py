"""Drop privileges, set limits, and execute another program. On Unix.

    python -I -S limits.py JSON PROGRAM ARGUMENT…

JSON has `cwd`, `rlimits` (name → value of both the soft and the hard limit), and optionally the
`uid` and `gid` of another user, which only root can set. If anything cannot be set, this program
ends with status 126: a program never starts with more privileges than intended. It imports the
standard library only, so that it starts in milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_NO_NEW_PRIVS = 38
"""Option of prctl(2), from <linux/prctl.h>. With it, no setuid program restores privileges."""
REFUSED = 126
"""Exit status with which a shell reports a program that it found but cannot start."""


def main(settings: dict[str, Any], command: Sequence[str]) -> None:
    """Drop privileges and execute `command`; does not return.

    Raises:
        OSError, ValueError: A limit or a user cannot be set, or the program cannot be executed.
    """
    environment = given_environment()  # first, because another user cannot read it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "uid" in settings:
        os.setgroups([])
        os.setresgid(settings["gid"], settings["gid"], settings["gid"])
        set_rlimits(settings["rlimits"])
        os.setresuid(settings["uid"], settings["uid"], settings["uid"])
    else:
        set_rlimits(settings["rlimits"])
    os.chdir(settings["cwd"])
    os.umask(0o077)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and the program inherits that
    os.execvpe(command[0], list(command), environment)


def set_rlimits(rlimits: dict[str, int]) -> None:
    """Set resource limits; a value above the hard limit becomes the hard limit."""
    for name, wanted in rlimits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(number, (value, value))


def given_environment() -> dict[bytes, bytes]:
    """Return the environment with which this process was started.

    `os.environ` may have more: without a locale, Python adds `LC_CTYPE` for its child processes.
    """
    with suppress(OSError):
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
        named = (entry.partition(b"=") for entry in entries if entry)
        return {name: value for name, _, value in named}
    return dict(os.environb)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]), sys.argv[2:])
    except (OSError, ValueError) as failed:
        os.write(2, f"{sys.argv[2]} cannot be started: {failed}\n".encode())
    os._exit(REFUSED)
