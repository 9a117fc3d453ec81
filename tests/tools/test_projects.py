"""Projects: uv or venv, commands that are confined, and files that links cannot lead away from."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from arp.process.program import ProgramResult, run_program
from arp.process.sandbox import ProcessLimits, sandbox_works
from arp.tools.errors import (
    InvalidToolMeta,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    ToolConflict,
    ToolRefused,
    UnknownTool,
)
from arp.tools.projects import projects as projects_module
from arp.tools.projects.project_files import MAX_READ, ProjectFiles
from arp.tools.projects.projects import LocalProjects, run_log
from tests.support.waiting import becomes
from tests.tools.local_tools import processes_of, settings_in


@pytest.fixture
def projects(tmp_path: Path, copied_venvs: None) -> LocalProjects:
    return LocalProjects(settings_in(tmp_path))


async def test_a_project_is_made_and_runs_its_own_python(tmp_path: Path) -> None:
    projects = LocalProjects(settings_in(tmp_path))
    made = await projects.create("demo")
    assert made == projects.root / "demo"
    assert (made / "pyproject.toml").is_file()
    code = "import sys, os; print(sys.prefix); print(os.getcwd())"
    done = await projects.run(made, f'python -c "{code}"')
    assert done == ProgramResult(0, f"{made}/.venv\n{made}\n", "")
    assert (made / "last_run.log").read_text() == (
        f'Command: python -c "{code}"\nExit Code: 0\n--- STDOUT ---\n{made}/.venv\n{made}\n'
        "--- STDERR ---\n"
    )


def test_the_log_has_the_format_of_the_document() -> None:
    """Section 10."""
    result = ProgramResult(
        0, "Server started on port 8080\n", "WARNING: Using development server\n"
    )
    assert run_log("python main.py", result) == (
        "Command: python main.py\n"
        "Exit Code: 0\n"
        "--- STDOUT ---\n"
        "Server started on port 8080\n"
        "--- STDERR ---\n"
        "WARNING: Using development server\n"
    )


async def test_each_project_has_a_user_of_its_own(projects: LocalProjects) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the rights of root")
    for name in ("a", "b"):
        await projects.create(name)
    users = [(await projects.run(name, "id -u")).stdout.strip() for name in ("a", "b")]
    assert users == ["61184", "61185"]
    projects.remove("a")
    await projects.create("c")
    assert (await projects.run("c", "id -u")).stdout == "61184\n"


async def test_a_project_sees_nothing_of_others_nor_of_us(
    projects: LocalProjects, tmp_path: Path
) -> None:
    if not sandbox_works():
        pytest.skip("needs bubblewrap (apt-get install bubblewrap)")
    for name in ("a", "b"):
        await projects.create(name)
    (tmp_path / "secret").write_text("secret")
    for command in (
        f"cat {tmp_path}/secret",
        f"ls {projects.root}/b",
        "cat /etc/shadow",
        "cat /proc/1/environ",
        "touch /usr/x",
        "touch ../x",
        "touch /etc/x",
    ):
        done = await projects.run("a", command)
        assert done.exit_code != 0, command
        assert "secret" not in done.stdout
    done = await projects.run("a", "ls /proc")
    assert len([name for name in done.stdout.split() if name.isdecimal()]) == 2


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "-x", "x\0", ".hidden", "a b", "é"])
async def test_names_that_could_be_something_else_are_refused(
    projects: LocalProjects, name: str
) -> None:
    with pytest.raises(InvalidToolMeta):
        await projects.create(name)


async def test_a_project_is_made_once(projects: LocalProjects) -> None:
    await projects.create("demo")
    with pytest.raises(ToolConflict, match="already"):
        await projects.create("demo")
    (projects.root / "there").mkdir()
    with pytest.raises(ToolConflict, match="no project of ours"):
        await projects.create("there")
    assert [project.name for project in projects.projects()] == ["demo"]
    assert (projects.root / "demo" / ".venv").is_dir()


@pytest.mark.parametrize(
    ("version", "error"),
    [("3", InvalidToolMeta), ("--help", InvalidToolMeta), ("3.1", RuntimeMissing)],
)
async def test_a_python_that_is_not_there_is_an_error(
    projects: LocalProjects, version: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await projects.create("demo", version)
    assert projects.projects() == []


async def test_without_uv_a_project_is_made_by_venv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "find_uv", lambda: None)
    projects = LocalProjects(settings_in(tmp_path))
    made = await projects.create("demo")
    done = await projects.run(made, "python -c 'import sys; print(sys.prefix)'")
    assert done.stdout == f"{made}/.venv\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one wheel, `greeting`, so that no index is asked."""
    import zipfile

    folder = tmp_path_factory.mktemp("wheels")
    folder.chmod(0o755)
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting.py", "WORDS = 'hello'\n")
        info = "greeting-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return folder


async def test_a_package_is_added(tmp_path: Path, wheels: Path) -> None:
    packages = {"UV_OFFLINE": "1", "UV_FIND_LINKS": str(wheels), "UV_NO_INDEX": "1"}
    projects = LocalProjects(settings_in(tmp_path), packages, (wheels,))
    made = await projects.create("demo")
    await projects.add_dependency(made, "greeting>=1.0")
    done = await projects.run(made, "python -c 'import greeting; print(greeting.WORDS)'")
    assert done.stdout == "hello\n"
    assert '"greeting>=1.0"' in (made / "pyproject.toml").read_text()
    with pytest.raises(ToolCallFailed, match="nothing-of-this-name could not be added"):
        await projects.add_dependency(made, "nothing-of-this-name")


@pytest.mark.parametrize(
    "package",
    [
        *("--index-url=http://x", "-e .", "git+https://x/y", "./x", "/x", "http://x/y.whl", ""),
        *("x @ http://y", "x; touch pwned", "$(id)", "file:///etc", "x\ny", "..", "C:\\x"),
    ],
)
async def test_packages_that_are_something_else_are_refused(
    projects: LocalProjects, package: str
) -> None:
    await projects.create("demo")
    with pytest.raises(ToolRefused, match="package"):
        await projects.add_dependency("demo", package)


BOMB = """
import os, sys, time
born = 0
for _ in range(500):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        born += 1
    except OSError as error:
        print(born, error.strerror, flush=True)
        break
time.sleep(60)
"""


@pytest.mark.root
async def test_a_fork_bomb_is_limited_and_all_its_processes_end(
    projects: LocalProjects, tmp_path: Path
) -> None:
    await projects.create("demo")
    projects.write_file("demo/bomb.py", BOMB)
    project = projects.project_of("demo")
    limits = ProcessLimits(processes=40)
    start = projects.program(project, "python -S bomb.py", {}, limits)
    done = await run_program(start, 3)
    assert done.exit_code == 124
    born, _, why = done.stdout.partition(" ")
    assert int(born) <= 40
    assert "temporarily unavailable" in why
    await becomes(lambda: processes_of(tmp_path) == [])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = bytearray(600 * 2**20)", "MemoryError"),
        ("f = open('big', 'wb'); f.truncate(3 * 2**20)", "File too large"),
        ("x = [open('/dev/null') for _ in range(100)]", "Too many open files"),
    ],
)
async def test_memory_files_and_descriptors_are_limited(
    projects: LocalProjects, code: str, error: str
) -> None:
    await projects.create("demo")
    projects.write_file(
        "demo/greedy.py", f"import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{code}\n"
    )
    limits = ProcessLimits(memory_mb=256, file_mb=2, open_files=50)
    start = projects.program(projects.project_of("demo"), "python -S greedy.py", {}, limits)
    done = await run_program(start, 20)
    assert done.exit_code == 1
    assert error in done.stderr


FAMILY = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.setsid()
        data = bytearray(b"x") * (30 << 20)
        time.sleep(float(sys.argv[2]))
        os._exit(0)
for _ in range(int(sys.argv[1])):
    os.wait()
print("all ended by themselves")
"""
"""Children that each have 30 MiB, in sessions of their own, for a time."""


async def test_processes_that_are_above_the_limit_together_are_ended(
    projects: LocalProjects, tmp_path: Path
) -> None:
    await projects.create("demo")
    projects.write_file("demo/family.py", FAMILY)
    project = projects.project_of("demo")
    limits = ProcessLimits(memory_mb=100)
    start = projects.program(project, "python -S family.py 5 60", {}, limits)
    done = await run_program(start, 20)
    assert done.exit_code == -signal.SIGKILL
    assert "used 1" in done.stderr
    assert "MiB of memory together; their limit is 100 MiB, so all were ended" in done.stderr
    await becomes(lambda: processes_of(tmp_path) == [])
    start = projects.program(project, "python -S family.py 2 0.3", {}, limits)
    assert await run_program(start, 20) == ProgramResult(0, "all ended by themselves\n", "")


@pytest.mark.skipif(not sandbox_works(), reason="only bubblewrap has directories of its own")
@pytest.mark.parametrize("directory", ["/tmp", "/dev/shm"])
async def test_files_in_memory_are_limited(projects: LocalProjects, directory: str) -> None:
    await projects.create("demo")
    limits = ProcessLimits(memory_mb=8)
    words = f"dd if=/dev/zero of={directory}/big bs=1M count=20"
    done = await run_program(projects.program(projects.project_of("demo"), words, {}, limits), 20)
    assert "No space left on device" in done.stderr


async def test_a_required_sandbox_that_cannot_block_the_network_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "sandbox_works", lambda network=True: network)
    for sandbox, error in (("auto", None), ("require", "cannot take the network away")):
        projects = LocalProjects(settings_in(tmp_path / sandbox, sandbox=sandbox))
        await asyncio.to_thread(projects._table.claim, "demo", ("python3", "/usr"))
        project = projects.project_of("demo")
        assert projects.program(project, "id", {}, ProcessLimits()).has_network
        if error is None:
            assert projects.program(project, "id", {}, ProcessLimits(), False).has_network
            continue
        with pytest.raises(RuntimeMissing, match=error):
            projects.program(project, "id", {}, ProcessLimits(), False)


async def test_commands_of_other_directories_are_refused(
    projects: LocalProjects, tmp_path: Path
) -> None:
    await projects.create("demo")
    (projects.root / "stranger").mkdir()
    for directory in ("/", "/etc", str(tmp_path), "stranger", "demo/..", "../demo", "", "gone"):
        with pytest.raises(UnknownTool):
            await projects.run(directory, "id")


@pytest.mark.parametrize("wrong_s", [0, -1, 1e9, float("nan")])
async def test_a_timeout_has_bounds(projects: LocalProjects, wrong_s: float) -> None:
    await projects.create("demo")
    with pytest.raises(InvalidToolMeta, match="timeout"):
        await projects.run("demo", "id", wrong_s)


async def test_without_a_sandbox_an_unreachable_directory_is_reported(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs the rights of root")
    os.chmod(tmp_path, 0o700)
    projects = LocalProjects(settings_in(tmp_path, sandbox="off"))
    with pytest.raises(RuntimeMissing, match="who cannot go through"):
        await projects.create("demo")
    assert projects.projects() == []


async def test_a_sandbox_that_is_required_and_missing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "sandbox_works", lambda: False)
    projects = LocalProjects(settings_in(tmp_path, sandbox="require"))
    with pytest.raises(RuntimeMissing, match="apt-get install bubblewrap"):
        projects.check()
    with pytest.raises(RuntimeMissing):
        await projects.create("demo")


MAKES_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from arp.tools.projects.projects import LocalProjects
from tests.tools.local_tools import settings_in

async def make_venv(projects, project):
    print("making", flush=True)
    await asyncio.Event().wait()

LocalProjects._make_venv = make_venv
asyncio.run(LocalProjects(settings_in(Path(sys.argv[1]))).create("begun"))
"""


async def test_project_whose_maker_was_killed_is_removed_by_the_next_start(
    projects: LocalProjects, tmp_path: Path
) -> None:
    """Not one that is finished, nor one that a process still makes."""
    await projects.create("finished")
    words = [sys.executable, "-c", MAKES_UNTIL_KILLED, str(tmp_path)]
    maker = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    try:
        assert maker.stdout is not None
        assert await maker.stdout.readline() == b"making\n"
        assert (projects.root / "begun" / "pyproject.toml").is_file()
        assert projects.clean_up() == []
    finally:
        maker.kill()
        await maker.communicate()
    assert projects.clean_up() == ["begun"]
    assert [one.name for one in projects.projects()] == ["finished"]
    assert [one.name for one in projects.root.iterdir()] == ["finished"]
    assert list(projects.root.parent.glob(".making-*")) == []
    await projects.create("begun")


async def test_project_is_noted_before_it_counts_as_finished(projects: LocalProjects) -> None:
    """A kill behind that leaves one that its owner knows; a refusal leaves none."""
    noted: list[tuple[Path, bool]] = []

    def note(directory: Path) -> None:
        noted.append((directory, bool(projects.project_of("demo").mark)))
        if len(noted) == 1:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await projects.create("demo", note=note)
    assert projects.projects() == []
    assert not (projects.root / "demo").exists()
    made = await projects.create("demo", note=note)
    assert noted == [(made, True), (made, True)]
    assert projects.project_of("demo").mark == ""


async def test_create_that_is_cancelled_leaves_nothing(
    projects: LocalProjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a thread writes the line: that is waited for, and taken back."""
    begun, going_on = asyncio.Event(), threading.Event()
    loop, claim = asyncio.get_running_loop(), projects._table.claim

    def slow_claim(*args: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        assert going_on.wait(10)
        return claim(*args)

    monkeypatch.setattr(projects._table, "claim", slow_claim)
    creating = asyncio.create_task(projects.create("demo"))
    await begun.wait()
    creating.cancel()
    loop.call_soon(going_on.set)
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert projects.projects() == []
    assert list(projects.root.glob("*")) == []


async def test_directory_that_is_no_project_of_ours_is_left_alone(projects: LocalProjects) -> None:
    (projects.root / "there").mkdir(parents=True)
    (projects.root / "there" / "file").write_text("somebody's")
    with pytest.raises(ToolConflict, match="no project of ours"):
        await projects.create("there")
    assert (projects.root / "there" / "file").read_text() == "somebody's"


# -- files -------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> ProjectFiles:
    root = tmp_path / "root"
    root.mkdir()
    return ProjectFiles(root)


def test_files_are_written_and_read(files: ProjectFiles) -> None:
    assert files.write("a/b/c.txt", "é") == 2
    assert files.read("a/b/c.txt") == "é".encode()
    assert files.write("a/b/c.txt", "new") == 3
    assert (files.root / "a" / "b" / "c.txt").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (files.root / "a" / "b").iterdir()] == ["c.txt"]


OUTSIDE = [
    *("", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./../x", "\0", "a\0b", "//etc/x"),
    *("x" * 300, "/".join("a" * 40), "~/../../x/.."),
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out_are_refused(files: ProjectFiles, name: str) -> None:
    for act in (lambda: files.write(name, "x"), lambda: files.read(name)):
        with pytest.raises((ToolRefused, UnknownTool)):
            act()


def test_links_are_not_followed(files: ProjectFiles, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (files.root / "file").symlink_to(secret / "key")
    (files.root / "folder").symlink_to(secret)
    (files.root / "loop").symlink_to("loop")
    (files.root / "gone").symlink_to(secret / "new")
    for name in ("file", "folder/key", "loop", "loop/x", "gone"):
        with pytest.raises((ToolRefused, UnknownTool)):
            files.read(name)
        with pytest.raises(ToolRefused):
            files.write(name, "mine")
    assert (secret / "key").read_text() == "secret"
    assert [path.name for path in secret.iterdir()] == ["key"]


@pytest.mark.root
def test_a_hard_link_to_a_file_of_ours_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.chown(root, 61184, 61184)
    (tmp_path / "key").write_text("secret")
    os.link(tmp_path / "key", root / "key")
    files = ProjectFiles(root, 61184)
    with pytest.raises(ToolRefused, match="does not belong to the project"):
        files.read("key")
    files.write("key", "mine")
    assert (tmp_path / "key").read_text() == "secret"
    assert (root / "key").stat().st_uid == 61184


def test_what_is_no_file_is_not_opened(files: ProjectFiles) -> None:
    os.mkfifo(files.root / "pipe")
    (files.root / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ToolRefused, match="no regular file"):
            files.read(name)
    with pytest.raises(InvalidToolMeta):
        files.write("folder", "x")
    files.write("pipe", "x")  # nothing may run while it is there, so a file may take its place
    assert files.read("pipe") == b"x"


def test_large_files_are_refused(files: ProjectFiles) -> None:
    (files.root / "big").write_bytes(b"x" * (MAX_READ + 1))
    with pytest.raises(InvalidToolMeta, match="more than"):
        files.read("big")
    with pytest.raises(InvalidToolMeta, match="at most"):
        files.write("big", b"x" * (5 * 2**20))


MOVES = [("real", "spare"), ("link", "real"), ("real", "link"), ("spare", "real")]


def test_links_that_are_exchanged_while_we_look_lead_nowhere(tmp_path: Path) -> None:
    """A directory becomes a link and a directory again, as fast as it can."""
    root, secret = tmp_path / "root", tmp_path / "secret"
    (root / "real").mkdir(parents=True)
    secret.mkdir()
    (secret / "file").write_text("secret")
    (root / "real" / "file").write_text("mine")
    (root / "link").symlink_to(secret)
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            for old, new in MOVES:
                with suppress(OSError):  # a write has made a directory there
                    os.rename(root / old, root / new)

    exchanging = threading.Thread(target=exchange)
    exchanging.start()
    files = ProjectFiles(root)
    seen: dict[str, int] = {}
    try:
        for number in range(2000):
            try:
                text = files.read("real/file").decode()
                if number % 4 == 0:
                    files.write("real/file", "mine")
            except ToolAgentError as error:
                text = type(error).__name__
            seen[text] = seen.get(text, 0) + 1
    finally:
        stop.set()
        exchanging.join()
    assert "secret" not in seen
    assert set(seen) <= {"mine", "ToolRefused", "UnknownTool"}
    assert (secret / "file").read_text() == "secret"
    assert [path.name for path in secret.iterdir()] == ["file"]


async def test_files_of_projects_are_named_by_full_path_or_from_all_projects(
    projects: LocalProjects, tmp_path: Path
) -> None:
    made = await projects.create("demo")
    assert projects.write_file("demo/a.py", "1") == (made / "a.py", 1)
    assert projects.write_file(str(made / "b.py"), "22") == (made / "b.py", 2)
    assert projects.read_file(str(made / "a.py")) == "1"
    for path in ("a.py", "/etc/passwd", f"{tmp_path}/x", "demo/../x", "demo", str(made), "../x"):
        with pytest.raises(ToolRefused):
            projects.write_file(path, "x")
    with pytest.raises(UnknownTool):
        projects.read_file("demo/gone")


@pytest.fixture
def _plain_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user can go through, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="arp-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.root
@pytest.mark.usefixtures("_plain_umask")
async def test_without_bubblewrap_a_program_has_no_rights_and_all_its_processes_end(
    reachable: Path,
) -> None:
    """Where only `supervise` ends what a program has left."""
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("needs a Python that everybody can run (/usr/bin/python3)")
    projects = LocalProjects(settings_in(reachable, sandbox="off"))
    made: Any = projects._table.claim("demo", (python, "/usr"))
    projects._make(made)
    for parent in (projects.root.parent, projects.root):
        os.chmod(parent, 0o755)
    done = await projects.run("demo", "id -u")
    assert done == ProgramResult(0, f"{made.uid}\n", "")
    left = "sh -c 'setsid sleep 98 & setsid sleep 97 & echo begun; sleep 96'"
    done = await projects.run("demo", left, timeout_s=1)
    assert (done.exit_code, done.stdout) == (124, "begun\n")
    await becomes(lambda: processes_of(reachable) == [])
    projects.write_file("demo/family.py", FAMILY)
    limits = ProcessLimits(memory_mb=100)
    start = projects.program(projects.project_of("demo"), "python3 -S family.py 5 60", {}, limits)
    done = await run_program(start, 20)
    assert "their limit is 100 MiB, so all were ended" in done.stderr
    await becomes(lambda: processes_of(reachable) == [])
