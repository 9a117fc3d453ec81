"""Directories for one user alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from arp.store.directory import make_private_directory


def test_missing_directories_are_made_and_present_ones_left_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path / "a" / "b" / "c")
    make_private_directory(tmp_path / "a" / "b" / "c")
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_file_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_directory(tmp_path / "file")
    with pytest.raises(OSError, match="Not a directory"):
        make_private_directory(tmp_path / "file" / "below")
