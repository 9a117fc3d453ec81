"""`confined`: the command that runs a program with limits, in a sandbox, without privileges.

Theory of operation. There are three layers. Each is used where it is possible:

1. `limits` sets resource limits, and changes the user if we are root. The limit on processes
   applies to all processes of a user together, so each project should have its own user.
2. In bubblewrap the program sees only its own directories and processes, an empty `/tmp`, and
   read-only the programs of the system. When the program ends, all processes in its sandbox end.
   As root, bubblewrap keeps its privileges and `limits` drops them inside the sandbox, because
   bubblewrap must also mount directories that the other user cannot reach. Without root, bubblewrap
   creates a user namespace.
3. Without a working bubblewrap, `supervise` ends the processes that the program leaves.

The network is that of the machine, so that a server can be called on a port of 127.0.0.1. Only
bubblewrap can isolate it (`Confinement.network`): then the program has its own loopback.
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
from arp.process.memory import MIB
from arp.process.supervise import supervised

FIRST_UID: Final = 61_184
LAST_UID: Final = 65_519
"""Systemd's range of user ids for users that exist only while a service runs."""

_PYTHON: Final[str] = getattr(sys, "_base_executable", sys.executable)
"""Python outside of any virtual environment: the sandbox mounts the standard library only."""

TRIAL_S: Final = 10.0
"""Timeout in seconds of a test of bubblewrap."""

LOADER_NAMES: Final = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|BASH_ENV|BASH_FUNC_.*|ENV"
    r"|IFS|PS4|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PATH|HOME|PYTHON.*|PERL5?(LIB|OPT|DB).*|RUBY(LIB|OPT)"
    r"|NODE_OPTIONS|NODE_PATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|GIT_.*"
    r"|SSH_.*|UV_.*|PIP_.*|VIRTUAL_ENV|EDITOR|PAGER|GEM_(HOME|PATH)|TMPDIR",
    re.IGNORECASE,
)
"""Environment variables that can make a program load or run something else."""
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
"""Files that programs read to find host names, users, libraries, fonts and certificates."""


class ProcessLimits(msgspec.Struct, frozen=True):
    """Resource limits of a program."""

    memory_mb: int = 512
    """Limit in MiB of the data of each process (`RLIMIT_DATA`), and of each file system in memory,
    such as `/tmp`.

    `run_program` and `ServingProgram` enforce the same limit for all its processes together.
    """
    processes: int = 256
    """Limit of the processes and threads of its user, including those of other programs."""
    file_mb: int = 1024
    """Limit in MiB of each file that it writes."""
    open_files: int = 1024
    cpu_s: int = 0
    """CPU time of each process, in seconds; 0 means no limit."""

    def rlimits(self) -> dict[str, int]:
        """Return the limits by their names in the module `resource`."""
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
    """Limits and visible files of a program."""

    cwd: Path
    """Working directory; it must exist."""
    writable: Sequence[Path] = ()
    """Directories that the program may change."""
    readable: Sequence[Path] = ()
    """Files and directories that the program may read, in addition to those of the system."""
    uid: int | None = None
    """Id of the user and the group that the program runs as; only root can set it. `None` means
    the user of this process."""
    limits: ProcessLimits = ProcessLimits()
    network: bool = True
    """Whether the program can reach the network and ports of this machine. Without bubblewrap it
    always can."""


def confined(command: Sequence[str], confinement: Confinement, sandboxed: bool) -> list[str]:
    """Return a command that runs `command` confined; start it in the thread of the event loop.

    Args:
        command: The program and its arguments.
        confinement: What it may reach and use.
        sandboxed: Whether to use bubblewrap; see `sandbox_works`.
    """
    rlimits = confinement.limits.rlimits()
    settings: dict[str, object] = {"cwd": str(confinement.cwd), "rlimits": rlimits}
    if confinement.uid is not None and os.geteuid() == 0:
        settings |= {"uid": confinement.uid, "gid": confinement.uid}
    elif not sandboxed:
        settings["rlimits"] = _rlimits_for_own_user(confinement.limits)
    limited = [_PYTHON, "-I", "-S", limits.__file__, json.dumps(settings), *command]
    if not sandboxed:
        return supervised(limited)
    return [*_bubblewrap(confinement), *limited]


def check_environment(environment: Mapping[str, str]) -> str | None:
    """Return why a program must not get these variables from an untrusted source, or `None`.

    Variables that make a program load or run something else, such as `LD_PRELOAD`, are refused.
    """
    for name, value in environment.items():
        if not _NAME.fullmatch(name):
            return f"{name!r:.60} is not a valid name of a variable"
        if LOADER_NAMES.fullmatch(name):
            return f"{name} changes how programs are found or loaded"
        if "\0" in value or len(value) > 32_768:
            return f"the value of {name} has a NUL or is longer than 32,768 characters"
    return None


def free_uid(taken: set[int]) -> int | None:
    """Return a user id that is not in `taken`; `None` if we are not root, or none is free."""
    if os.geteuid() != 0:
        return None
    return next((uid for uid in range(FIRST_UID, LAST_UID + 1) if uid not in taken), None)


@cache
def sandbox_works(network: bool = True) -> bool:
    """Return whether bubblewrap is installed and can create a sandbox; the result is cached.

    Args:
        network: `False` tests a sandbox without network, which some machines do not allow.
    """
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return False
    uid = FIRST_UID if os.geteuid() == 0 else None
    confinement = Confinement(cwd=Path("/"), uid=uid, network=network)
    command = confined(["/bin/sh", "-c", "exit 7"], confinement, sandboxed=True)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 7


def _bubblewrap(confinement: Confinement) -> list[str]:
    """Return the part of the command that creates the sandbox."""
    program = shutil.which("bwrap") or "bwrap"
    parts = [program, "--die-with-parent", "--new-session"]
    parts += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    parts += [] if confinement.network else ["--unshare-net"]
    if os.geteuid() == 0:
        capabilities = ("CAP_SETUID", "CAP_SETGID") if confinement.uid is not None else ()
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
    parts += ["--proc", "/proc", "--dev", "/dev"]
    memory_bytes = confinement.limits.memory_mb * MIB
    for in_memory in ("/tmp", "/dev/shm"):
        size = ["--size", str(memory_bytes)] if _has_option("--size") else []
        parts += ["--perms", "1777", *size, "--tmpfs", in_memory]
    made = {"/", "/tmp", "/usr", "/etc"}
    python = [Path(sys.base_prefix), Path(limits.__file__)]
    for path in sorted({*python, *confinement.readable}, key=lambda one: len(one.parts)):
        parts += [*_parents(path, made), "--ro-bind-try", str(path), str(path)]
    for path in confinement.writable:
        parts += [*_parents(path, made), "--bind", str(path), str(path)]
    # Not the working directory: the present user may have no access to it. `limits` changes to it
    # after it has changed the user.
    return [*parts, "--chdir", "/", "--"]


@cache
def _has_option(name: str) -> bool:
    """Return whether the installed bubblewrap has an option; `--size` exists since 0.7."""
    try:
        done = subprocess.run(
            ["bwrap", "--help"], capture_output=True, text=True, timeout=TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return name in (done.stdout + done.stderr).split()


def _system_directory(directory: str) -> list[str]:
    path = Path(directory)
    if path.is_symlink():
        return ["--symlink", os.readlink(path), directory]
    return ["--ro-bind", directory, directory] if path.is_dir() else []


def _parents(path: Path, made: set[str]) -> list[str]:
    """Return options that create the parents of a path with a mode that lets every user pass.

    Nothing can be created below `/usr`, which is mounted read-only.
    """
    parts = []
    for parent in reversed(path.parents):
        if str(parent) not in made and not str(parent).startswith("/usr/"):
            made.add(str(parent))
            parts += ["--perms", "0755", "--dir", str(parent)]
    return parts


def _rlimits_for_own_user(limits: ProcessLimits) -> dict[str, int]:
    """Return the limits of a program that runs as the user of this process.

    The kernel counts all processes of the user, so the present ones are added to the limit.
    """
    found = limits.rlimits()
    del found["RLIMIT_NPROC"]
    if sys.platform == "linux":  # other systems have no `/proc` to count them
        found["RLIMIT_NPROC"] = limits.processes + _tasks_of_user()
    return found


def _tasks_of_user() -> int:
    """Return the number of processes and threads of the user of this process."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.geteuid():
                count += len(os.listdir(process / "task"))
        except OSError:  # the process has just ended
            continue
    return count
