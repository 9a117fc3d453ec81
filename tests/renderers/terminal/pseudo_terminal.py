"""A program at a pseudo terminal, and what a person would see there."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import pyte

from tests.renderers.terminal.drawing import PROMPT

ROOT = Path(__file__).parents[3]
SCRIPTED = [sys.executable, str(Path(__file__).with_name("scripted_chat.py"))]
WAIT_S = 30.0
NOTHING: Mapping[str, str] = MappingProxyType({})


class PseudoTerminal:
    """Runs a command; `output` is every byte that it wrote, `screen` what they make."""

    def __init__(
        self,
        command: Sequence[str],
        state: Path,
        env: Mapping[str, str] = NOTHING,
        *,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self.output = b""
        self.screen: Any = pyte.HistoryScreen(size[1], size[0], history=5000, ratio=0.5)
        self._stream: Any = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self._slave = slave
        self._set_size(*size)
        self.modes = termios.tcgetattr(slave)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(state),
            "XDG_STATE_HOME": str(state),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "XTERM_VERSION": "pyte",  # which, as xterm, breaks no lines anew
            **env,
        }
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    # -- what a person does ----------------------------------------------------------------------

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        self._set_size(rows, columns)
        self.screen.resize(rows, columns)
        self.process.send_signal(28)  # SIGWINCH

    # -- what a person sees ----------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """The lines in sight, without blanks at their ends."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n")

    @property
    def paper(self) -> list[str]:
        """Every line, those that have scrolled away too."""
        above = [
            "".join(row[column].data for column in range(self.screen.columns)).rstrip()
            for row in self.screen.history.top
        ]
        return [*above, *self.shown.split("\n")]

    def until(self, is_so: Callable[[], bool], wait_s: float = WAIT_S) -> None:
        """Reads until something is so; fails after `wait_s` with what is in sight."""
        end = time.monotonic() + wait_s
        while not is_so():
            left = end - time.monotonic()
            if left <= 0 or (not self.read(left) and not is_so()):
                raise AssertionError(f"it did not come to be; in sight:\n{self.shown}")

    def until_shown(self, text: str) -> None:
        self.until(lambda: text in self.shown)

    def until_at_rest(self, last: str = "", wait_s: float = WAIT_S) -> None:
        """Reads until `last` is shown and a whole frame without a running turn stands there."""
        self.until(
            lambda: (
                last in self.shown
                and "Ctrl-C stops" not in self.shown
                and self.shown.endswith(f"\n{PROMPT}")
            ),
            wait_s,
        )

    def until_ended(self) -> int:
        """Reads to the end; gives the exit code."""
        end = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0):
            pass
        return self.process.wait(WAIT_S)

    def read(self, timeout_s: float) -> bool:
        """Takes what was written; `False` if nothing came."""
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if not ready:
            return False
        data = os.read(self._master, 65536)
        self.output += data
        self._show(data)
        return bool(data)

    def _show(self, data: bytes) -> None:
        self._stream.feed(data)

    def modes_now(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def _set_size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
