"""A fake model server and the CLIs that are aimed at it, each with a home of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime import clis
from tests.runtime.clis import Cli
from tests.runtime.model_server import ModelServer


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
