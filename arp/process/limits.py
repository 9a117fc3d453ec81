"""Give up rights, set limits, and become another program. On Unix.

    python -I -S limits.py JSON PROGRAM ARGUMENT…

JSON has `cwd`, `rlimits` (name → value, soft and hard), and `uid` and `gid` if the user is to be
another one, which only root can do. Whatever cannot be set ends this program with status 126: a
program never starts with more rights than it was to have. It imports nothing that is not in Python,
so that it starts in milliseconds.
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
"""Number of prctl(2), in <linux/prctl.h>: no setuid program gives rights back."""
REFUSED = 126
"""As of a shell that may not start a program."""


def main(settings: dict[str, Any], command: Sequence[str]) -> None:
    """Give up rights and become `command`; return only if that failed."""
    environment = given_environment()  # another user may not read it any more
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
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and the program would too.
    os.execvpe(command[0], list(command), environment)


def set_rlimits(rlimits: dict[str, int]) -> None:
    """Set limits; one that is above the hard limit is the hard limit."""
    for name, wanted in rlimits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(number, (value, value))


def given_environment() -> dict[bytes, bytes]:
    """Return the environment with which this process was started.

    `os.environ` may have more: without a locale, Python adds `LC_CTYPE` for what it starts.
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
