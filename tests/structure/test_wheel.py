"""What `pip install agent-rendering-protocol` gives is complete."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.structure.source_tree import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    place: Path = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = place.glob("agent_rendering_protocol-*-py3-none-any.whl")
    return zipfile.ZipFile(built)


def test_every_python_file_and_the_page_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    shipped = set(wheel.namelist())
    wanted = {
        path.relative_to(top).as_posix()
        for top, package in ((ROOT, "arp"), (ROOT / "renderers", "arp_terminal"))
        for path in (top / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"arp/py.typed", "arp_terminal/py.typed", "arp/server/static/index.html"} <= wanted
    assert not wanted - shipped


def test_wheel_alone_has_the_protocol_as_data(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """The gRPC service, the object dialect and the cases, as they are served at `/schemas/`."""
    wanted = {"arp.proto", "arp-core.protocol.yaml"}
    wanted |= {f"cases/{path.name}" for path in (ROOT / "schemas" / "cases").glob("*.json")}
    assert len(wanted) > 4
    for name in wanted:
        shipped = wheel.read(f"arp/server/protocol/{name}")
        assert shipped == (ROOT / "schemas" / name).read_bytes()
    wheel.extractall(tmp_path)
    program = (
        "import arp, json; from arp.server.routes.schemas import documents;"
        "print(json.dumps([arp.__file__, *documents()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    place, *served = json.loads(done.stdout)
    assert Path(place).is_relative_to(tmp_path)
    assert wanted <= set(served)


def test_nothing_but_the_packages_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0].split("-")[0] for name in wheel.namelist()}
    assert tops == {"arp", "arp_terminal", "agent_rendering_protocol"}


def test_the_command_and_the_renderer_are_registered(wheel: zipfile.ZipFile) -> None:
    (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    lines = wheel.read(entries).decode().splitlines()
    assert "arp = arp.cli:main" in lines
    assert "terminal = arp_terminal" in lines


def test_the_licence_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    (licence,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
    assert b"Apache License" in wheel.read(licence)
