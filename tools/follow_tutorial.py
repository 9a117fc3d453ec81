"""Follow docs/tutorial.md line by line, as a new user does, and fail if the page is wrong.

    python -m tools.follow_tutorial FOLDER            with the `arp` of this environment
    python -m tools.follow_tutorial FOLDER --install  install first, as the page says

FOLDER is a clone of the repository (with `--install`), or any empty folder. Each block of Python is
saved in the file that the previous sentence names. Each line of a block of `sh` is executed, and
its output is compared with the block of `text` that follows, in which `…` matches anything. A
server runs until another one is started or the page ends.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"(?:Save this as|Replace) `([\w.-]+)`:\s*$")
PORT = "8080"
INSTALLING = ("python3 -m venv", "pip install")
START_S = 30.0
COMMAND_S = 300.0


class Mismatch(Exception):
    """The page describes something that does not happen."""


class Follower:
    """A reader at the keyboard.

    Args:
        folder: Working directory at the start.
        installs: Whether the commands for the installation are executed.
        environment: Environment variables of the shell.
    """

    def __init__(self, folder: Path, *, installs: bool, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._installs = installs
        self._environment = dict(environment)
        self._server: subprocess.Popen[str] | None = None
        self._port = _free_port()
        self._printed = ""

    def follow(self, page: str) -> int:
        """Follow a page; return the number of executed commands.

        Raises:
            Mismatch: A command fails, or its output differs from the page.
        """
        count, at = 0, 0
        try:
            for block in FENCE.finditer(page):
                before, (language, code) = page[at : block.start()], block.groups()
                at = block.end()
                if language == "python":
                    self._save(before, code)
                elif language == "sh":
                    for line in code.splitlines():
                        self._type(line)
                        count += 1
                elif language == "text":
                    self._compare(code)
        finally:
            self.stop()
        return count

    def _save(self, before: str, code: str) -> None:
        named = SAVED.search(before)
        if named is None:
            raise Mismatch(f"a block of Python has no file: …{before[-80:]!r}")
        (self.folder / named[1]).write_text(code, encoding="utf-8")

    def _type(self, line: str) -> None:
        words = shlex.split(line.replace(PORT, str(self._port)), comments=True)
        if words[:1] == ["cd"]:
            self.folder = self.folder / words[1]
        elif words[:1] == ["."]:
            self._activate(self.folder / Path(words[1]).parent)
        elif words[:2] == ["arp", "serve"]:
            self._serve(words)
        elif self._installs or not line.startswith(INSTALLING):
            self._run(line, words)

    def _activate(self, binaries: Path) -> None:
        if self._installs:
            self._environment["PATH"] = f"{binaries}{os.pathsep}{self._environment['PATH']}"

    def _run(self, line: str, words: list[str]) -> None:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        self._printed = done.stdout
        if done.returncode != 0:
            raise Mismatch(f"$ {line}\n{done.stdout}{done.stderr}\nexit code {done.returncode}")

    def _serve(self, words: list[str]) -> None:
        """Start a server, and wait until it reports that it is ready."""
        self.stop()
        self._server = subprocess.Popen(
            [*words, "--port", str(self._port)],
            cwd=self.folder,
            env={**self._environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        shown, until = "", time.monotonic() + START_S
        while f":{self._port}" not in shown:
            ready = select.select([self._server.stdout], [], [], max(0.0, until - time.monotonic()))
            line = self._server.stdout.readline() if ready[0] else ""
            if not line:
                raise Mismatch(f"$ {shlex.join(words)}\n{shown}\nit did not become ready")
            shown += line

    def stop(self) -> None:
        """Stop the server as Ctrl-C in its terminal would."""
        server, self._server = self._server, None
        if server is not None:
            os.killpg(server.pid, signal.SIGINT)
            server.communicate(timeout=START_S)

    def _compare(self, expected: str) -> None:
        parts = (re.escape(part) for part in expected.strip().split("…"))
        if re.search(".*?".join(parts), self._printed, re.DOTALL) is None:
            raise Mismatch(f"the page says:\n{expected}\nbut this is printed:\n{self._printed}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def environment_of(interpreter: str) -> dict[str, str]:
    """Return the environment of a shell that finds the commands beside an interpreter."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARP_")}
    kept["PATH"] = f"{Path(interpreter).parent}{os.pathsep}{kept.get('PATH', '')}"
    return kept


def main(arguments: list[str]) -> int:
    """Follow the page; return the exit code."""
    installs = "--install" in arguments
    folder = Path(next(one for one in arguments if not one.startswith("-")))
    environment = dict(os.environ) if installs else environment_of(sys.executable)
    follower = Follower(folder, installs=installs, environment=environment)
    try:
        count = follower.follow(PAGE.read_text(encoding="utf-8"))
    except Mismatch as error:
        print(f"tutorial: {error}", file=sys.stderr)
        return 1
    print(f"tutorial: {count} commands did what the page says")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
