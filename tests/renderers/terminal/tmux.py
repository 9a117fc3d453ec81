"""A window of tmux: a real terminal, which breaks its lines again when it gets narrower."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.renderers.terminal.pseudo_terminal import ROOT

WAIT_S = 10


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._call = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def do(self, *words: str) -> str:
        """Run a tmux command; return its output."""
        done = subprocess.run(
            [*self._call, *words], capture_output=True, text=True, timeout=WAIT_S, check=True
        )
        return done.stdout

    def until_shown(self, text: str) -> str:
        """Wait for a text; return all lines, also those that have scrolled away."""
        return self.until(lambda shown: text in shown)

    def until(self, is_so: Callable[[str], bool]) -> str:
        """Wait until the lines are as expected; return them, without breaks of tmux."""
        end = time.monotonic() + WAIT_S
        while not is_so(shown := self.do("capture-pane", "-p", "-J", "-S", "-")):
            assert time.monotonic() < end, shown
        return shown

    def start(self, command: Sequence[str], state: Path) -> None:
        """Start a chat with a history of its own; wait for its first line."""
        chat = f"cd {ROOT} && XDG_STATE_HOME={state} exec {shlex.join(command)}"
        self.do("new-session", "-d", "-x", "100", "-y", "30", chat)
        self.until_shown("/help")

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self.do("send-keys", "-l", text)
        self.do("send-keys", "Enter")
