"""Clones a repository into a project.

Theory of operation. The URL was checked before (`check_repo_url`), and is checked again here. git
receives it after `--`, with its own environment: no user configuration, only the protocol of the
URL, no hooks, no submodules, no prompts, no links. Time and size are limited.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from arp.process.program import TIMED_OUT, ProgramStart, run_program
from arp.tools.errors import CapacityExceeded, RuntimeMissing, ToolCallFailed, ToolTimeout
from arp.tools.projects.project_disk import disk_use
from arp.tools.projects.projects import LocalProjects
from arp.tools.tasks.task_specs import check_repo_url

CLONE_S: Final = 300.0
"""Time limit of a clone, in seconds."""
MAX_CLONE_BYTES: Final = 512 << 20
NOT_COPIED: Final = frozenset({".git", ".venv", ".home"})
"""Directories of a clone that are not copied: repository metadata, or names that we use
ourselves."""
MAX_REASON: Final = 1_000
"""Maximum length of git's output in an error, in characters."""
_SAFE: Final = (
    "protocol.allow=never",
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "http.followRedirects=false",
    "credential.helper=",
    "transfer.fsckObjects=true",
)
"""Settings of git that keep an untrusted repository from running programs or using other hosts."""


@asynccontextmanager
async def cloned(
    url: str, hosts: Sequence[str], local_folders: Sequence[Path]
) -> AsyncIterator[Path]:
    """Clone a repository into a temporary folder, and yield the folder.

    Args:
        url: URL of the repository.
        hosts: Hosts from which repositories may be cloned.
        local_folders: Folders of this machine from which repositories may be cloned.

    Raises:
        ToolRefused: The URL may not be cloned.
        RuntimeMissing: git is not installed.
        ToolCallFailed, ToolTimeout, CapacityExceeded: It could not be cloned.

    Cancel: Safe.
    """
    address = check_repo_url(url, hosts, local_folders)
    git = shutil.which("git")
    if git is None:
        raise RuntimeMissing("git is not installed; Debian: apt-get install git")
    protocol = "file" if address.startswith("/") else "https"
    settings = [*_SAFE, f"protocol.{protocol}.allow=always"]
    command = [git, *(part for one in settings for part in ("-c", one)), "clone", "--quiet"]
    command += ["--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules"]
    source = f"file://{address}" if protocol == "file" else address
    scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="arp-clone-")
    try:
        folder = Path(scratch) / "work"
        await _run([*command, "--template=", "--", source, str(folder)], scratch)
        if await asyncio.to_thread(_size_of, folder) > MAX_CLONE_BYTES:
            raise CapacityExceeded(f"{url} has more than {MAX_CLONE_BYTES >> 20} MB")
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, True)


def copy_into(folder: Path, projects: LocalProjects, project_dir: Path) -> int:
    """Copy the files of a clone into a project, without links; return their number.

    Raises:
        ToolAgentError: A file cannot be written.
    """
    project = projects.project_of(project_dir)
    projects.disk_limit(project).check_room(disk_use(folder))
    files = projects.files(project)
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in NOT_COPIED]
        for name in names:
            path = Path(root) / name
            if name not in NOT_COPIED and path.is_file() and not path.is_symlink():
                files.write(str(path.relative_to(folder)), path.read_bytes())
                count += 1
    return count


async def _run(command: list[str], home: str) -> None:
    environment = {
        "PATH": os.defpath,
        "HOME": home,
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "/bin/false",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    try:
        result = await run_program(ProgramStart(command, environment), CLONE_S)
    except OSError as error:
        raise ToolCallFailed(f"git cannot be started: {error}") from error
    if result.exit_code == TIMED_OUT:
        raise ToolTimeout(f"the repository was not cloned within {CLONE_S:g} s")
    if result.exit_code:
        text = result.stderr.strip()[-MAX_REASON:]
        raise ToolCallFailed(f"the repository cannot be cloned: {text}")


def _size_of(folder: Path) -> int:
    return sum(
        path.lstat().st_size
        for root, _, names in os.walk(folder)
        for path in (Path(root) / name for name in names)
    )
