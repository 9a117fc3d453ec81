"""The fixtures, in a pytest of a project that has the package installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

TESTS = """
import pytest
from arp import App, Turn

app = App()


@app.agent
async def echo(turn: Turn) -> None:
    await turn.say(f"{turn.user.name}: {turn.text}")


@pytest.mark.asyncio
async def test_it_answers(arp_session, arp_snapshot):
    user = await arp_session(app, user="ann")
    arp_snapshot(await user.say("hi"))


@pytest.mark.asyncio
async def test_two(arp_serve):
    served = await arp_serve(app)
    async with served.session(user="ann") as ann, served.session(user="bob") as bob:
        assert (await ann.say("hi")).text == "ann: hi"
        assert (await bob.say("hi")).text == "bob: hi"
"""

LOADED = """
import sys
import arp.testbed.pytest_plugin
heavy = ("arp.app", "arp.server", "arp.client", "starlette", "httpx", "msgspec", "uvicorn")
print([name for name in heavy if name in sys.modules])
"""


# Plugins that only this repository has; they take longer to load than the tests run.
WITHOUT = [
    word
    for name in ("cacheprovider", "schemathesis", "hypothesispytest", "langsmith_plugin", "xdist")
    for word in ("-p", f"no:{name}")
]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *WITHOUT, "-q", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_plugin_is_registered_and_loads_nothing_but_pytest() -> None:
    (found,) = [one for one in entry_points(group="pytest11") if one.name == "arp"]
    assert found.value == "arp.testbed.pytest_plugin"
    command = [sys.executable, "-c", LOADED]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout == "[]\n"


def test_fixtures_serve_apps_and_compare_snapshots(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_echo.py").write_text(TESTS)
    first = run(tmp_path)
    assert "1 failed, 1 passed" in first.stdout, first.stdout + first.stderr
    file = tmp_path / "snapshots" / "test_it_answers.txt"
    assert f"{file} was missing and is written now" in first.stdout.replace("\n", "")
    assert file.read_text() == "> hi\nann: hi\n= completed\n"
    assert "2 passed" in run(tmp_path).stdout

    file.write_text("> hi\nann: hello\n= completed\n")
    failed = run(tmp_path)
    assert "\n  > hi\n- ann: hello\n+ ann: hi\n  = completed\n" in failed.stdout
    assert "pytest --arp-update writes" in failed.stdout
    assert "2 passed" in run(tmp_path, "--arp-update").stdout
    assert "ann: hi" in file.read_text()
