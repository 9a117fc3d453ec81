"""Directories for private data: only for this user, and still there after a power loss."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_directory(path: Path) -> None:
    """Make the directory and those above it if they are missing, each for this user alone.

    It is durable when this returns.

    Raises:
        OSError: It cannot be made, or is not a directory.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):  # `parents=True` would leave those above open to everybody
        each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # refuses what is no directory
    for made in missing:
        sync_directory(made.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a synced file without a name is lost all the same."""
    if os.name == "nt":
        return  # Windows cannot open a directory, and journals its names itself
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
