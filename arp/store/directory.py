"""Directories that hold what people said: private, and still there after a power loss."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_directory(path: Path) -> None:
    """Makes the directory and those above it if they are missing, and makes that durable.

    Raises:
        OSError: It cannot be made, or is not a directory.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for made in missing:
        sync_directory(made.parent)


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable: a synced file without a name is lost all the same."""
    if os.name == "nt":
        return  # Windows cannot open a directory, and journals its names itself
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
