"""A program starts with exactly the rights, limits and environment that it was given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arp.process import limits
from arp.process.sandbox import check_environment, free_uid

LIMITS = Path(limits.__file__)


def started(settings: object, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program by `limits`."""
    words = [sys.executable, "-I", "-S", str(LIMITS), json.dumps(settings), *command]
    return subprocess.run(
        words,
        env={"A": "b", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_limits_and_environment_are_as_given(tmp_path: Path) -> None:
    done = started(
        {"cwd": str(tmp_path), "rlimits": {"RLIMIT_NOFILE": 55, "RLIMIT_CORE": 0}},
        *("sh", "-c", "ulimit -n; ulimit -c; pwd; env"),
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:3] == ["55", "0", str(tmp_path)]
    assert "A=b" in done.stdout
    assert "LC_CTYPE" not in done.stdout


@pytest.mark.root
def test_the_user_is_another_one_without_any_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    settings = {"cwd": "/", "rlimits": {}, "uid": 61190, "gid": 61190}
    done = started(
        settings, *("sh", "-c", "id; grep -E 'Cap(Eff|Prm|Amb)|NoNew' /proc/self/status")
    )
    assert done.stdout.split("\n")[0] == "uid=61190 gid=61190 groups=61190"
    assert "NoNewPrivs:\t1" in done.stdout
    values = [line.split()[1] for line in done.stdout.split("\n") if line.startswith("Cap")]
    assert values == ["0" * 16] * 3


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        ({"cwd": "/no/such/place", "rlimits": {}}, "true"),
        ({"cwd": "/", "rlimits": {}}, "/no/such/program"),
        ({"cwd": "/", "rlimits": {"RLIMIT_NOFILE": -5}}, "true"),
    ],
)
def test_what_cannot_be_set_starts_nothing(settings: object, command: str) -> None:
    done = started(settings, command)
    assert done.returncode == 126
    assert f"{command} cannot be started" in done.stderr


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "ld_audit", "IFS"]
)
def test_names_that_change_what_is_loaded_are_refused(name: str) -> None:
    assert check_environment({name: "x"}) is not None


def test_plain_names_are_given() -> None:
    assert check_environment({"MODEL": "small", "PORT": "1", "API_KEY": "x", "_X1": ""}) is None


@pytest.mark.root
def test_a_user_is_free_that_nobody_has() -> None:
    assert free_uid(set()) == 61184
    assert free_uid({61184, 61185}) == 61186
    assert free_uid(set(range(61184, 65520))) is None
