"""A fake model server and the CLIs that are aimed at it, each with a home of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime import clis
from tests.runtime.clis import Cli
from tests.runtime.model_server import ModelServer

OPENCODE_S = 180
"""So long a test with OpenCode may take: on a loaded machine it starts in half a minute."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs_it = "opencode_cli" in getattr(item, "fixturenames", ())
        needs_it = needs_it or item.get_closest_marker("opencode") is not None
        if needs_it and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(OPENCODE_S))


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """Run a fake model server for one test."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def claude_cli(model_server: ModelServer, tmp_path: Path, requires: Callable[[str], str]) -> Cli:
    """Return Claude Code for one test."""
    requires("claude")
    return clis.claude(model_server, tmp_path / "claude")


@pytest.fixture
def codex_cli(model_server: ModelServer, tmp_path: Path, requires: Callable[[str], str]) -> Cli:
    """Return Codex for one test."""
    requires("codex")
    return clis.codex(model_server, tmp_path / "codex")


@pytest.fixture
def opencode_cli(model_server: ModelServer, tmp_path: Path, requires: Callable[[str], str]) -> Cli:
    """Return OpenCode for one test."""
    requires("opencode")
    return clis.opencode(model_server, tmp_path / "opencode")
