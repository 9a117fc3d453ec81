"""Directories for private data: readable by this user only, and durable."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents, with access for this user only.

    The new directories are durable when the function returns.

    Raises:
        OSError: The directory cannot be created, or the path is not a directory.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):  # `parents=True` would ignore the mode for the parents
        each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)  # raises if the path exists and is not a directory
    for created in missing:
        sync_directory(created.parent)


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable, because syncing a file does not sync its name."""
    if os.name == "nt":
        return  # Windows cannot open a directory, and its file system journals the entries
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
