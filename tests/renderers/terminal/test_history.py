"""What was typed is kept for its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

from prompt_toolkit.history import FileHistory, InMemoryHistory

from arp_terminal.programs.chat_terminal import history_path, open_history


def test_the_history_lies_where_state_belongs() -> None:
    assert history_path({"HOME": "/home/ada"}) == Path("/home/ada/.local/state/arp/history")
    assert history_path({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/arp/history")
    assert history_path({"HOME": "/h", "XDG_STATE_HOME": "relative"}) == Path(
        "/h/.local/state/arp/history"
    )


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "arp" / "history"
    assert isinstance(open_history(path), FileHistory)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_where_it_cannot_be_written_it_lives_in_memory(tmp_path: Path) -> None:
    (tmp_path / "arp").touch()
    assert isinstance(open_history(tmp_path / "arp" / "history"), InMemoryHistory)
