"""Fixtures of the tests of the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.renderers.terminal.tmux import Tmux


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """A window of tmux, which is closed after the test."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux here")
    window = Tmux(tmp_path / "tmux")
    try:
        yield window
    finally:
        window.do("kill-server")
