"""Directories for one user alone."""

from __future__ import annotations

import stat
from pathlib import Path

from arp.store.directory import make_private_directory


def test_missing_directories_are_made_and_present_ones_left_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path / "a" / "b")
    make_private_directory(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
