"""What was typed before, kept from one run to the next."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


def history_path(environ: Mapping[str, str]) -> Path:
    """Return `$XDG_STATE_HOME/arp/history`, else `~/.local/state/arp/history`."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the XDG specification: a relative path is to be ignored
        state = str(Path(environ.get("HOME") or Path.home()) / ".local" / "state")
    return Path(state) / "arp" / "history"


def open_history(path: Path) -> History:
    """Open a history for its owner's eyes; one in memory where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
