"""`confined`: the command that runs a program with limits, in a sandbox, without rights.

Theory of operation. Three layers, each where it is possible:

1. `limits` sets limits of the system, and changes the user where we are root. A limit of processes
   counts those of a user, so that each project should have a user of its own.
2. bubblewrap shows the program its own directories, the system's programs read-only, an empty
   `/tmp` and its own processes; everything in it ends with it. As root bubblewrap itself keeps its
   rights and `limits` gives them up inside, so that directories which the other user could not
   reach can be shown all the same. Without root it makes a user namespace.
3. Where bubblewrap is missing or does not work, `supervise` ends what the program leaves.

The network is the machine's own in all of them: a tool is called on a port of 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from arp.process import limits
from arp.process.supervise import supervised

FIRST_UID: Final = 61_184
LAST_UID: Final = 65_519
"""The range that systemd uses for users that exist only while a service runs."""

_PYTHON: Final[str] = getattr(sys, "_base_executable", sys.executable)
"""Without the packages of a venv: what a sandbox shows of us is the standard library."""

MIB: Final = 2**20
TRIAL_S: Final = 10.0
"""So long bubblewrap may take to show that it works."""

LOADER_NAMES: Final = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|BASH_ENV|BASH_FUNC_.*|ENV"
    r"|IFS|PS4|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PATH|HOME|PYTHON.*|PERL5?(LIB|OPT|DB).*|RUBY(LIB|OPT)"
    r"|NODE_OPTIONS|NODE_PATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|GIT_.*"
    r"|SSH_.*|UV_.*|PIP_.*|VIRTUAL_ENV|EDITOR|PAGER|GEM_(HOME|PATH)|TMPDIR",
    re.IGNORECASE,
)
"""Names of an environment by which a program can be made to load or run something else."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")

SYSTEM_DIRECTORIES: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)
"""What programs read to find names, libraries and certificates."""


class ProcessLimits(msgspec.Struct, frozen=True):
    """What each process may use at most."""

    memory_mb: int = 512
    """Of its own data, per process (`RLIMIT_DATA`)."""
    processes: int = 256
    """Processes and threads of the user together."""
    file_mb: int = 1024
    """Of one file that it writes."""
    open_files: int = 1024
    cpu_s: int = 0
    """Seconds of CPU time; 0: no limit."""

    def rlimits(self) -> dict[str, int]:
        """Return them by the names of the module `resource`."""
        found = {
            "RLIMIT_DATA": self.memory_mb * MIB,
            "RLIMIT_FSIZE": self.file_mb * MIB,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_CORE": 0,
        }
        if self.cpu_s:
            found["RLIMIT_CPU"] = self.cpu_s
        return found


class Confinement(msgspec.Struct, frozen=True):
    """How a program is confined."""

    cwd: Path
    """Where it works; it must exist."""
    writable: Sequence[Path] = ()
    """Directories that it may change."""
    readable: Sequence[Path] = ()
    """Files and directories that it may read besides those of the system."""
    uid: int | None = None
    """The user and the group that it runs as, where we are root; `None`: ours."""
    limits: ProcessLimits = ProcessLimits()


def confined(command: Sequence[str], how: Confinement, sandboxed: bool) -> list[str]:
    """Return a command that runs `command` confined; it is started in the thread of the loop.

    Args:
        command: The program and its arguments.
        how: What it may reach and use.
        sandboxed: Whether bubblewrap is used; see `sandbox_works`.
    """
    settings: dict[str, object] = {"cwd": str(how.cwd), "rlimits": how.limits.rlimits()}
    if how.uid is not None and os.geteuid() == 0:
        settings |= {"uid": how.uid, "gid": how.uid}
    elif not sandboxed:
        settings["rlimits"] = _beside_our_own(how.limits)
    limited = [_PYTHON, "-I", "-S", limits.__file__, json.dumps(settings), *command]
    if not sandboxed:
        return supervised(limited)
    return [*_bubblewrap(how), *limited]


def check_environment(environment: Mapping[str, str]) -> str | None:
    """Return why these variables cannot be given to a program by somebody else; `None` if they can.

    Refused are names by which a program loads or runs something else, such as `LD_PRELOAD`.
    """
    for name, value in environment.items():
        if not _NAME.fullmatch(name):
            return f"{name!r:.60} is no name of a variable"
        if LOADER_NAMES.fullmatch(name):
            return f"{name} changes how programs are found or loaded"
        if "\0" in value or len(value) > 32_768:
            return f"the value of {name} has a NUL or is longer than 32,768 characters"
    return None


def free_uid(taken: set[int]) -> int | None:
    """Return a user id that is not in `taken`; `None` if we are not root, or all are taken."""
    if os.geteuid() != 0:
        return None
    return next((uid for uid in range(FIRST_UID, LAST_UID + 1) if uid not in taken), None)


@cache
def sandbox_works() -> bool:
    """Return whether bubblewrap is there and can make a sandbox; tried once."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return False
    here = Confinement(cwd=Path("/"), uid=FIRST_UID if os.geteuid() == 0 else None)
    command = confined(["/bin/sh", "-c", "exit 7"], here, sandboxed=True)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 7


def _bubblewrap(how: Confinement) -> list[str]:
    """Return the part of the command that makes the sandbox."""
    program = shutil.which("bwrap") or "bwrap"
    parts = [program, "--die-with-parent", "--new-session"]
    parts += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if os.geteuid() == 0:
        capabilities = ("CAP_SETUID", "CAP_SETGID") if how.uid is not None else ()
        parts += ["--cap-drop", "ALL"]
        for capability in capabilities:
            parts += ["--cap-add", capability]
    else:
        parts += ["--unshare-user"]
    for directory in SYSTEM_DIRECTORIES:
        parts += _system_directory(directory)
    parts += ["--perms", "0755", "--dir", "/etc"]
    for file in SYSTEM_FILES:
        parts += ["--ro-bind-try", file, file]
    parts += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
    made = {"/", "/tmp", "/usr", "/etc"}
    python = [Path(sys.base_prefix), Path(limits.__file__)]
    for path in sorted({*python, *how.readable}, key=lambda one: len(one.parts)):
        parts += [*_parents(path, made), "--ro-bind-try", str(path), str(path)]
    for path in how.writable:
        parts += [*_parents(path, made), "--bind", str(path), str(path)]
    return [*parts, "--chdir", "/", "--"]  # `limits` goes where only the other user can


def _system_directory(directory: str) -> list[str]:
    path = Path(directory)
    if path.is_symlink():
        return ["--symlink", os.readlink(path), directory]
    return ["--ro-bind", directory, directory] if path.is_dir() else []


def _parents(path: Path, made: set[str]) -> list[str]:
    """Return what makes the directories above a path, so that every user can go through them."""
    parts = []
    for parent in reversed(path.parents):
        if str(parent) not in made and not str(parent).startswith("/usr/"):
            made.add(str(parent))
            parts += ["--perms", "0755", "--dir", str(parent)]
    return parts


def _beside_our_own(limits: ProcessLimits) -> dict[str, int]:
    """Return limits for a program that runs as our own user, whose other processes count too."""
    found = limits.rlimits()
    del found["RLIMIT_NPROC"]
    if sys.platform == "linux":  # elsewhere nobody says how many there are
        found["RLIMIT_NPROC"] = limits.processes + _tasks_of_user()
    return found


def _tasks_of_user() -> int:
    """Return how many processes and threads our user has now."""
    count = 0
    for status in Path("/proc").glob("[0-9]*"):
        try:
            if status.stat().st_uid == os.geteuid():
                count += len(os.listdir(status / "task"))
        except OSError:  # it has just ended
            continue
    return count
