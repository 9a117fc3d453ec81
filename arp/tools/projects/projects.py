"""`LocalProjects`: the uv or venv projects of local tools, and commands that run in them.

Theory of operation. A project is a directory in `projects` of the data directory, with a
`pyproject.toml` and a `.venv`, and a row in `projects.json` (`project_table`). The row holds its
user and its Python, because the project's own files can be changed by its programs. If we run as
root, each project has its own user, so that the limits of one do not count for another. A project
that could not be finished is removed; if our process was killed, that happens at the next start
(`clean_up`).

A command is split into words by the rules of a shell, but no shell runs it: `;`, `$()` and `>` are
arguments. It runs with the project's `.venv/bin` first in its `PATH`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from arp.process.bounded_output import BoundedOutput
from arp.process.program import ProgramResult, ProgramStart
from arp.process.sandbox import (
    Confinement,
    ProcessLimits,
    check_environment,
    sandbox_works,
)
from arp.tools.errors import (
    InvalidToolMeta,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    ToolRefused,
    UnknownTool,
)
from arp.tools.projects.program import run_in_project
from arp.tools.projects.project_disk import MIB, OVERFLOW, DiskLimit, DiskUse
from arp.tools.projects.project_files import ProjectFiles
from arp.tools.projects.project_look import ProjectLook, look_at
from arp.tools.projects.project_table import PROJECTS, Project, ProjectTable
from arp.tools.registry.models import check_tool_id
from arp.tools.settings import LiveSettings, package_environment

logger = logging.getLogger(__name__)

LOG_FILE: Final = "last_run.log"
MAX_LOG: Final = 2**20
"""Maximum size in bytes of each output in the log."""
MAX_COMMAND: Final = 8_192
"""Maximum length of a command in characters."""
MAX_TIMEOUT_S: Final = 3_600.0
DEFAULT_TIMEOUT_S: Final = 120.0
CREATE_S: Final = 120.0
INSTALL_S: Final = 900.0
"""Time limit of an installation, in seconds. It is long because some packages are gigabytes."""
BUILD_LIMITS: Final = ProcessLimits(memory_mb=4096, file_mb=8192, open_files=4096)
"""Limits of build commands; a running tool has its own limits."""

Result = TypeVar("Result")

_PYTHON_VERSION: Final = re.compile(r"3\.\d{1,2}(\.\d{1,2})?")


class LocalProjects:
    """Projects of one data directory.

    Args:
        settings: Data directory, and whether a sandbox is used.
        packages: Further variables for the installation of packages, such as `UV_FIND_LINKS`;
            `None` means those of our own environment that say where packages come from.
        readable: Further paths that the installation of packages may read, such as certificates.
    """

    def __init__(
        self,
        settings: LiveSettings,
        packages: Mapping[str, str] | None = None,
        readable: tuple[Path, ...] = (),
    ) -> None:
        self._settings = settings
        self.root = Path(os.path.abspath(settings.data_dir)) / PROJECTS
        self._table = ProjectTable(settings.data_dir)
        self._packages = package_environment() if packages is None else dict(packages)
        self._readable = (*readable, *_paths_in(self._packages))

    def check(self) -> None:
        """Check that projects can be created here.

        Raises:
            RuntimeMissing: A sandbox is required and does not work, or uv and venv are missing.
        """
        self._sandboxed()
        if find_uv() is None and importlib.util.find_spec("ensurepip") is None:
            raise RuntimeMissing("uv is not installed, nor is venv; run: pip install uv")

    def clean_up(self) -> list[str]:
        """Remove unfinished projects of processes that have ended; return their names."""
        unfinished = self._table.unfinished()
        for one in unfinished:
            self._undo(one.name, one.mark)
        return [one.name for one in unfinished]

    async def create(
        self, name: str, python_version: str = "", note: Callable[[Path], None] = lambda _: None
    ) -> Path:
        """Create a project with a `.venv`; return its directory.

        Args:
            name: Letters, digits, `_`, `-` and `.`.
            python_version: Version such as `3.12`; empty means our own.
            note: Called with the directory before the project counts as finished. It records the
                owner, so that no project is without an owner if this process is killed.

        Raises:
            InvalidToolMeta: The name or the version is invalid.
            ToolConflict: The project exists already.
            RuntimeMissing: This Python is not installed.

        Cancel: Safe: a project that was begun is removed.
        """
        check_tool_id(name)
        python = await asyncio.to_thread(_interpreter, python_version)
        directory = self.root / name
        with self._table.making() as mark:
            try:
                # A thread that is abandoned after a cancellation could create the project after
                # `_undo` has removed it, so the thread is always awaited.
                project = await _finish_in_thread(self._begin, name, python, mark)
                await self._make_venv(project)
                note(directory)
                self._table.finish(name)
            except BaseException:
                await _finish_in_thread(self._undo, name, mark)
                raise
        return directory

    async def run(
        self, project_dir: str | Path, command: str, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ProgramResult:
        """Run a command in a project, and write `last_run.log`.

        Args:
            project_dir: Directory from `create`.
            command: Command, split into words by the rules of a shell; no shell runs it.
            timeout_s: Time limit in seconds, at most an hour. A command that exceeds it is ended,
                with exit code 124.

        Raises:
            UnknownTool: There is no such project.
            InvalidToolMeta: The command cannot be split, or is too long.

        Cancel: Safe: the command is ended.
        """
        project = self.project_of(project_dir)
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise InvalidToolMeta(f"timeout is {timeout_s:g}; it is 1 to {MAX_TIMEOUT_S:g} seconds")
        start = self.program(project, command, {}, BUILD_LIMITS)
        result = await run_in_project(start, timeout_s)
        self.write_log(project, command, result)
        return result

    def write_log(self, project: Project, command: str, result: ProgramResult) -> None:
        """Write `last_run.log`; a long output is reduced to its beginning and end."""
        kept = [BoundedOutput(MAX_LOG), BoundedOutput(MAX_LOG)]
        for output, text in zip(kept, (result.stdout, result.stderr), strict=True):
            output.add(text.encode())
        shown = ProgramResult(result.exit_code, kept[0].text(), kept[1].text())
        try:
            self.files(project).write(LOG_FILE, run_log(command, shown))
        except ToolAgentError as error:  # the command may have put a directory or a link there
            logger.warning("project %s: %s cannot be written: %s", project.name, LOG_FILE, error)

    async def add_dependency(
        self, project_dir: str | Path, package: str, dev: bool = False
    ) -> ProgramResult:
        """Add a package to a project and install it.

        Args:
            project_dir: Directory from `create`.
            package: Name with optional extras and versions. The caller validates untrusted input;
                this method only refuses options, addresses and paths.
            dev: Whether it is for development only.

        Raises:
            UnknownTool: There is no such project.
            ToolRefused: The package is an option, an address or a path.
            ToolCallFailed: It could not be installed; the message has the end of the output.

        Cancel: Safe.
        """
        project = self.project_of(project_dir)
        if not re.match(r"[A-Za-z0-9]", package) or re.search(r"[\s@/\\;]", package):
            raise ToolRefused(f"package {package!r:.80} is refused; write a name, pillow>=11")
        uv = find_uv()
        if uv is not None:
            words = [str(uv), "add", "--no-progress", "--no-config", *(["--dev"] if dev else [])]
        else:
            words = [".venv/bin/python", "-m", "pip", "install", "--no-input"]
        start = self._program(project, [*words, "--", package], self._packages, BUILD_LIMITS)
        result = await run_in_project(start, INSTALL_S)
        if result.exit_code:
            end = (result.stderr or result.stdout)[-1_500:].strip()
            raise ToolCallFailed(f"{package} could not be added (exit {result.exit_code}): {end}")
        if uv is None:
            self._note_requirement(project, package)
        return result

    def write_file(self, path: str, content: str) -> tuple[Path, int]:
        """Write a file of a project; return its path and its size in bytes.

        Args:
            path: Absolute path, or a path below the directory of all projects: `NAME/main.py`.
            content: Text, written as UTF-8.

        Raises:
            ToolRefused: The path is not in a project, or leads through a link.
            CapacityExceeded: The project has no room for it.
            InvalidToolMeta: The content is too long (`project_files.MAX_WRITE`), or the path
                belongs to something other than a file.
        """
        project, name = self.locate(path)
        files, data = self.files(project), content.encode("utf-8", "surrogatepass")
        old_bytes = files.size_of(name)
        if old_bytes is None or len(data) > old_bytes:
            self.disk_limit(project).check_room(
                DiskUse(len(data) - (old_bytes or 0), int(old_bytes is None))
            )
        return self.root / project.name / name, files.write(name, data)

    def read_file(self, path: str) -> str:
        """Return the text of a file of a project; bytes that are not UTF-8 are replaced.

        Raises:
            ToolRefused: The path is not in a project or leads through a link, or the file is not a
                regular file of the project's user.
            UnknownTool: There is no such file.
            InvalidToolMeta: The file is too large (`project_files.MAX_READ`).
        """
        project, name = self.locate(path)
        return self.files(project).read(name).decode(errors="replace")

    def locate(self, path: str) -> tuple[Project, str]:
        """Return the project that contains a path, and the rest of the path.

        The disk is not accessed: `..` is refused, and links are checked when the file is opened.

        Raises:
            ToolRefused: The path is not in a project.
        """
        given = Path(path)
        if ".." in given.parts or "\0" in path:
            raise ToolRefused(f"path {path!r:.200} is refused: it has '..'")
        try:
            name, *rest = (given.relative_to(self.root) if given.is_absolute() else given).parts
            return self.project_of(name), "/".join(rest)
        except (ValueError, UnknownTool) as error:
            raise ToolRefused(
                f"path {path!r:.200} is refused: it is in no project below {self.root}"
            ) from error

    def look(self, project: Project) -> ProjectLook:
        """Return a snapshot of a project; blocks the thread while it reads the files.

        Raises:
            ToolRefused: An entry cannot be approved; the message names it and says why.
        """
        uv = find_uv()
        readable = [Path(project.prefix), *self._readable, *([uv] if uv is not None else [])]
        uid = project.uid if os.geteuid() == 0 else None
        most_bytes = OVERFLOW * self.disk_limit(project).bytes
        root = self.root / project.name
        return look_at(root, uid=uid, readable=readable, most_bytes=most_bytes)

    def disk_limit(self, project: Project) -> DiskLimit:
        """Return the disk limit of a project."""
        now = self._settings.current
        return DiskLimit(self.root / project.name, now.project_disk_mb * MIB, now.project_files)

    def files(self, project: Project) -> ProjectFiles:
        """Return the files of a project."""
        return ProjectFiles(self.root / project.name, project.uid if os.geteuid() == 0 else None)

    def projects(self) -> list[Project]:
        """Return all projects, in order of creation."""
        return self._table.projects()

    def project_of(self, project_dir: str | Path) -> Project:
        """Return a project by its directory or its name.

        Raises:
            UnknownTool: There is no such project.
        """
        path = Path(project_dir)
        name = path.name
        if ".." not in path.parts and (str(project_dir) == name or path.parent == self.root):
            for project in self.projects():
                if project.name == name:
                    return project
        raise UnknownTool(
            f"{str(project_dir)!r:.200} is no project of ours; they are below {self.root}, "
            "made by create_uv_project"
        )

    def remove(self, project_dir: str | Path) -> None:
        """Remove a project and all its files. May be repeated after an error.

        Raises:
            UnknownTool: There is no such project.
            ToolCallFailed: Some of its files still exist, so its row is kept.
        """
        project = self.project_of(project_dir)
        if not self._delete(project.name):
            raise ToolCallFailed(
                f"some files of {self.root / project.name} cannot be removed; try it again, or "
                "remove them by hand"
            )

    def program(
        self,
        project: Project,
        command: str,
        env: Mapping[str, str],
        limits: ProcessLimits,
        network: bool = True,
    ) -> ProgramStart:
        """Return the start options of a command of a project.

        Args:
            project: Project that the command runs in.
            command: Program and its arguments.
            env: Further variables.
            limits: Limits of its resources.
            network: Whether it has network access. If the sandbox cannot deny access, it is
                granted, unless a sandbox is required.

        Raises:
            InvalidToolMeta: The command cannot be split, or is too long.
            ToolRefused: A variable changes how programs are loaded.
            RuntimeMissing: A sandbox is required and does not work.
        """
        refused = check_environment(env)
        if refused:
            raise ToolRefused(f"env: {refused}")
        start = self._program(project, _words(command), env, limits)
        if network or not start.sandboxed:
            return start
        return self._without_network(start)

    def _program(
        self,
        project: Project,
        words: list[str],
        env: Mapping[str, str],
        limits: ProcessLimits,
    ) -> ProgramStart:
        directory = self.root / project.name
        sandboxed = self._sandboxed()
        if not sandboxed and project.uid is not None and os.geteuid() == 0:
            _check_reachable(directory, project)
        uv = find_uv()
        path = [str(directory / ".venv" / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
        readable = [Path(project.prefix), *self._readable]
        if uv is not None:
            readable.append(uv)
            path.append(str(uv.parent))
        environment = {
            "PATH": ":".join(path),
            "HOME": str(directory / ".home"),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "UV_CACHE_DIR": str(directory / ".home" / "uv-cache"),
            "UV_PYTHON_DOWNLOADS": "never",
            "VIRTUAL_ENV": str(directory / ".venv"),
            **env,
        }
        shown = tuple(one for one in readable if one.exists())
        disk = self.disk_limit(project)
        file_mb = min(limits.file_mb, disk.bytes // MIB)
        limits = msgspec.structs.replace(limits, file_mb=file_mb)
        confinement = Confinement(directory, (directory,), shown, project.uid, limits)
        return ProgramStart(
            words,
            environment,
            confinement=confinement,
            sandboxed=sandboxed,
            usage_limits=(disk,),
        )

    def _without_network(self, start: ProgramStart) -> ProgramStart:
        assert start.confinement is not None
        if sandbox_works(network=False):
            cut_off = msgspec.structs.replace(start.confinement, network=False)
            return msgspec.structs.replace(start, confinement=cut_off)
        if self._settings.current.sandbox == "require":
            raise RuntimeMissing(
                "bubblewrap is required (TOOL_AGENT_SANDBOX=require) and cannot take the network "
                'away from tools here; allow it with TOOL_AGENT_NETWORK_TOOLS=["*"]'
            )
        return start

    def _sandboxed(self) -> bool:
        wanted = self._settings.current.sandbox
        works = wanted != "off" and sandbox_works()
        if wanted == "require" and not works:
            raise RuntimeMissing(
                "bubblewrap is required (TOOL_AGENT_SANDBOX=require) and does not work here; "
                "Debian: apt-get install bubblewrap"
            )
        return works

    def _begin(self, name: str, python: tuple[str, str], mark: str) -> Project:
        """Write the row of a project, and create its directory with everything but its `.venv`."""
        project = self._table.claim(name, python, mark)
        self._make(project)
        return project

    def _undo(self, name: str, mark: str) -> None:
        """Remove a project that could not be finished, if it was begun."""
        found = self._table.find(name)
        if found is None or found.mark != mark:
            return  # `_begin` refused the name, because it belongs to another project
        if not self._delete(name):
            logger.warning("%s cannot be removed; the next start tries again", self.root / name)

    def _delete(self, name: str) -> bool:
        """Remove the files of a project, then its row; return whether everything is removed."""
        directory = self.root / name
        shutil.rmtree(directory, ignore_errors=True)
        if os.path.lexists(directory):
            return False
        self._table.forget(name)
        return True

    def _make(self, project: Project) -> None:
        directory = self.root / project.name
        self.root.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
        if project.uid is not None:
            os.chown(directory, project.uid, project.uid)
        files = self.files(project)
        files.make_directory(".home")
        files.write("pyproject.toml", _pyproject(project))

    async def _make_venv(self, project: Project) -> None:
        uv = find_uv()
        if uv is not None:
            words = [str(uv), "venv", "--no-config", "--quiet", "--python", project.python, ".venv"]
        else:
            words = [project.python, "-m", "venv", ".venv"]
        start = self._program(project, words, {}, BUILD_LIMITS)
        result = await run_in_project(start, CREATE_S)
        if result.exit_code:
            raise ToolCallFailed(f"no .venv could be made: {result.stderr[-500:].strip()}")

    def _note_requirement(self, project: Project, package: str) -> None:
        files = self.files(project)
        try:
            text = files.read("requirements.txt").decode(errors="replace")
        except ToolAgentError:
            text = ""
        files.write("requirements.txt", f"{text}{package}\n")


async def _finish_in_thread(function: Callable[..., Result], *args: Any) -> Result:
    """Run a function in a thread; after a cancellation wait for its end, then raise."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        running.exception()  # prevents the warning about an exception that was never retrieved
        raise


def run_log(command: str, result: ProgramResult) -> str:
    """Return the text of `last_run.log` for a command.

    Source: internal_api.md 10.
    """
    parts = [
        f"Command: {command}\nExit Code: {result.exit_code}\n",
        f"--- STDOUT ---\n{_ended(result.stdout)}--- STDERR ---\n{_ended(result.stderr)}",
    ]
    return "".join(parts)


def find_uv() -> Path | None:
    """Return the path of uv: beside our own Python, or on `PATH`; `None` if it is not installed."""
    beside = Path(sys.executable).with_name("uv")
    if beside.is_file():
        return beside
    found = shutil.which("uv")
    return None if found is None else Path(os.path.realpath(found))


def _paths_in(variables: Mapping[str, str]) -> list[Path]:
    """Return the paths that environment variables name, such as certificates and wheels."""
    words = [word for value in variables.values() for word in value.split()]
    return [Path(word) for word in words if word.startswith("/") and os.path.exists(word)]


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _words(command: str) -> list[str]:
    """Split a command into words.

    Raises:
        InvalidToolMeta: It cannot be split, is empty, or is too long.
    """
    if len(command) > MAX_COMMAND or "\0" in command:
        raise InvalidToolMeta(f"a command has at most {MAX_COMMAND} characters, and no NUL")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidToolMeta(f"command {command!r:.120} cannot be split: {error}") from error
    if not words:
        raise InvalidToolMeta("the command is empty")
    return words


def _interpreter(version: str) -> tuple[str, str]:
    """Return the path of a Python and its installation directory; runs that Python once.

    Raises:
        InvalidToolMeta: The version is invalid.
        RuntimeMissing: This Python is not installed.
    """
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version and not _PYTHON_VERSION.fullmatch(version):
        raise InvalidToolMeta(f"python_version {version!r:.40} is not a version; write 3.12")
    if version in ("", own, f"{own}.{sys.version_info.micro}"):
        return str(getattr(sys, "_base_executable", sys.executable)), sys.base_prefix
    found = _find_python(version)
    if found is None:
        raise RuntimeMissing(
            f"Python {version} is not installed on this machine; leave python_version out for {own}"
        )
    code = "import sys; print(sys.base_prefix)"
    done = subprocess.run(
        [found, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    return found, done.stdout.strip()


def _find_python(version: str) -> str | None:
    for beside in sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/python3")):
        if re.fullmatch(rf"{re.escape(version)}(\.\d+)?", beside.parts[-3]):
            return str(beside)  # pyenv's layout, which uv finds only through shims
    uv = find_uv()
    if uv is not None:
        words = [str(uv), "python", "find", "--no-config", "--no-project", "--no-python-downloads"]
        done = subprocess.run(
            [*words, version], capture_output=True, text=True, timeout=20, check=False, cwd="/"
        )
        return done.stdout.strip() if done.returncode == 0 else None
    return shutil.which(f"python{version}")


def _pyproject(project: Project) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-") or "tool"
    return (
        f'[project]\nname = "{name}"\nversion = "0.1.0"\nrequires-python = ">=3.8"\n'
        "dependencies = []\n\n[tool.uv]\npackage = false\n"
    )


def _check_reachable(directory: Path, project: Project) -> None:
    """Check that other users can reach a directory if no sandbox mounts it for them.

    Raises:
        RuntimeMissing: They cannot reach it.
    """
    for path in [*directory.parents, Path(project.prefix), *Path(project.prefix).parents]:
        if not path.stat().st_mode & 0o001:
            raise RuntimeMissing(
                f"programs run as user {project.uid}, who cannot go through {path}; install "
                "bubblewrap, or set TOOL_AGENT_DATA_DIR to a directory that everybody can reach"
            )
