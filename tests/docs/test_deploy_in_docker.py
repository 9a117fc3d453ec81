"""The Dockerfile on the page about deploying makes an image that serves: on a real engine."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs import commands
from tests.docs.pages import ROOT, blocks
from tests.docs.python_image import CHANGES, NAME, python_image
from tests.docs.test_deploy_page import APP
from tests.tools.engine import Engine

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.timeout(240)]

TOKEN = "a-long-secret-of-the-container"
READY_S = 60.0
STOP_S = 10.0


@pytest.fixture(scope="module")
def engine(
    requires: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """An engine with the image from which the Dockerfile begins."""
    started = Engine.start(requires("docker"), tmp_path_factory.mktemp("engine"))
    try:
        changes = [word for change in CHANGES for word in ("--change", change)]
        command = ["docker", "import", *changes, "-", NAME]
        subprocess.run(command, input=python_image(), env=environment(started), check=True)
        yield started
    finally:
        started.stop()


def environment(engine: Engine) -> dict[str, str]:
    """Return that of a shell in which the token is set."""
    more = {"DOCKER_HOST": engine.host, "ARP_TOKEN": TOKEN, "DOCKER_BUILDKIT": "0"}
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **more}


def project_in(folder: Path) -> None:
    """Write what lies beside the Dockerfile: the app, and a wheel."""
    (block,) = [one for one in blocks("text", page="deploy.md") if one.text.startswith("FROM ")]
    (folder / "Dockerfile").write_text(block.code)
    (folder / "app.py").write_text(APP)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", f"{folder}/dist"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)


def test_the_image_serves_its_users_and_keeps_its_ledger(engine: Engine, tmp_path: Path) -> None:
    project_in(tmp_path)
    shell = environment(engine)

    def docker(*words: str) -> str:
        done = subprocess.run(
            ["docker", *words], cwd=tmp_path, env=shell, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    (block,) = [one for one in blocks("sh", page="deploy.md") if "docker" in one.text]
    build, start = commands.commands(block.code)
    docker(*build[1:])
    with engine.in_its_network(), httpx.Client(base_url="http://127.0.0.1:8080") as client:
        for count in (1, 2):
            running = subprocess.Popen(start, cwd=tmp_path, env=shell)
            becomes_ready(client, running)
            (container,) = docker("ps", "--quiet").split()
            assert client.get("/_api/chats").status_code == 401
            client.headers["authorization"] = f"Bearer {TOKEN}"
            said = {"message": "Hello", "session_id": f"number-{count}"}
            assert client.post("/desk", json=said).json()["text"] == "Good morning"
            assert len(client.get("/_api/chats").json()) == count
            del client.headers["authorization"]
            assert (
                docker("exec", container, "python", "-c", "import os; print(os.getuid())")
                == "10001"
            )
            checked = docker("inspect", "--format", "{{json .Config.Healthcheck.Test}}", container)
            docker("exec", container, *shlex.split(checked.strip("[]").replace(",", " "))[1:])
            began = time.monotonic()
            docker("stop", "--time", str(int(STOP_S)), container)
            assert time.monotonic() - began < STOP_S
            assert running.wait(STOP_S) == 0


def becomes_ready(client: httpx.Client, running: subprocess.Popen[bytes]) -> None:
    """Wait until the container answers."""
    until = time.monotonic() + READY_S
    while True:
        assert running.poll() is None
        assert time.monotonic() < until
        try:
            if client.get("/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)  # nothing tells when a port is published
