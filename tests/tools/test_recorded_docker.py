"""The calls of the engine, compared with a recording of a real one; this needs no Docker.

That a real engine still does what is recorded is a test of `test_docker.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from arp.tools.errors import RuntimeMissing
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings
from tests.tools.docker_recording import FILE, Replay, read_recording, serving
from tests.tools.docker_story import DockerStory


async def test_every_call_of_the_engine_is_as_recorded_and_its_answer_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = DockerStory(tmp_path, monkeypatch)
    replay = Replay(read_recording(), story.hidden)
    with serving(tmp_path / "engine.sock", replay) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        try:
            await story.happens()
        finally:
            replay.check()


async def test_a_request_that_is_not_as_recorded_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above sees what it looks for: here the body of the first `create` differs."""
    story = DockerStory(tmp_path, monkeypatch)
    exchanges = read_recording()
    first = next(one for one in exchanges if one["request"]["path"].endswith("/create"))
    first["request"]["body"]["HostConfig"]["PidsLimit"] = 511
    replay = Replay(exchanges, story.hidden)
    with serving(tmp_path / "engine.sock", replay) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        with pytest.raises(AssertionError):
            await story.happens()
        with pytest.raises(AssertionError, match=r"'PidsLimit': 512.* and not .*'PidsLimit': 511"):
            replay.check()


async def test_a_missing_engine_is_an_error_of_docker_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    docker = ToolService(LiveSettings(ToolSettings(data_dir=tmp_path / "data"))).docker
    with pytest.raises(RuntimeMissing, match=r"no container engine answers at unix:.*DOCKER_HOST"):
        await docker.check()


def test_the_recording_has_each_kind_of_call_and_refusal() -> None:
    kinds = Counter(
        (one["request"]["method"], kind_of(one["request"]["path"]), one["answer"]["status"])
        for one in read_recording()
    )
    assert kinds >= Counter(
        [
            ("GET", "_ping", 200),
            ("POST", "containers/create", 201),
            ("POST", "containers/create", 404),  # no such image
            ("POST", "containers/*/start", 204),
            ("POST", "containers/*/start", 500),  # the port is taken
            ("POST", "containers/*/stop", 204),
            ("POST", "containers/*/exec", 201),
            ("POST", "containers/*/exec", 409),  # it sleeps
            ("POST", "exec/*/start", 101),  # the connection is the stream of its output
            ("POST", "exec/*/start", 200),  # in the background
            ("GET", "exec/*/json", 200),
            ("GET", "containers/*/json", 200),
            ("GET", "containers/*/json", 404),  # somebody removed it
            ("GET", "containers/json", 200),
            ("POST", "commit", 201),
            ("DELETE", "containers/*", 204),
            ("DELETE", "images/*", 200),
        ]
    )
    for place in ("/tmp/pytest", "/home", "/root", "/var/lib", "/usr", "engine.sock"):
        assert place not in FILE.read_text(encoding="utf-8")


def kind_of(path: str) -> str:
    """Return a path without the version of the API and what it names."""
    path = re.sub(r"^/(v[0-9.]+/)?", "", path)
    return re.sub(r"(?<=/)([0-9a-f]{64}|arp.*)(?=/|$)", "*", path)
