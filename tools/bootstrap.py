"""Create `.venv` with the project installed, once; a later call returns at once.

    python3 tools/bootstrap.py run    for `make demo`: the project and its terminal renderer
    python3 tools/bootstrap.py model  for a demo with a language model: the same, and its client
    python3 tools/bootstrap.py dev    for `make test`: the same, and all tools of the tests

It needs only a Python interpreter, and its syntax is valid from Python 3.6 on: a Python older than
3.11 looks for a newer one on PATH and runs this file with it. Versions come from
requirements-dev.txt. A finished installation is recorded in `.venv/bootstrap.json`, with a digest
of everything that it depends on. The complete output of a failed command is in
`.venv/bootstrap.log`.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, List, Optional

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NEWER_PYTHONS = ["python3.{}".format(minor) for minor in (14, 13, 12, 11)]
INPUTS = ["pyproject.toml", "requirements-dev.txt", "tools/bootstrap.py"]
EXTRAS = {"run": "[terminal]", "model": "[terminal,llm]", "dev": "[dev]"}
INCLUDES = {"run": ["run"], "model": ["run", "model"], "dev": ["run", "model", "dev"]}
DURATION = {
    "run": "about half a minute",
    "model": "about half a minute",
    "dev": "one to two minutes",
}
DEBIAN_HINT = (
    "this Python cannot make virtual environments (it has no ensurepip).\n"
    "  Debian, Ubuntu:  apt-get install python3-venv\n"
    "  anywhere:        put uv on PATH\n"
    "then run the same command again."
)


class Refused(Exception):
    """The installation cannot continue; the text says what to do."""


def main(arguments: List[str]) -> int:
    """Install the wanted set if it is not installed yet; return the exit code."""
    if len(arguments) != 1 or arguments[0] not in EXTRAS:
        say("usage: python3 tools/bootstrap.py run|model|dev")
        return 2
    wanted = arguments[0]
    try:
        if is_installed(ROOT, wanted):
            return 0
        if sys.version_info[:2] < OLDEST:
            newer = newer_python()
            return subprocess.call([newer, str(Path(__file__).resolve()), wanted])
        install(ROOT, wanted)
    except Refused as refusal:
        say(str(refusal))
        return 1
    return 0


def say(text: str) -> None:
    """Print a message of this script to standard error at once, apart from a program's output."""
    print("arp: " + text, file=sys.stderr, flush=True)


def newer_python() -> str:
    """Return the path of a Python on PATH that is new enough and can be run.

    A version shim may be on PATH although it runs nothing, so each candidate is started.

    Raises:
        Refused: There is none.
    """
    check = "import sys; sys.exit(sys.version_info[:2] < {!r})".format(OLDEST)
    for name in NEWER_PYTHONS:
        path = shutil.which(name)
        if path and subprocess.call([path, "-c", check], stderr=subprocess.DEVNULL) == 0:
            return path
    raise Refused(
        "needs Python {}.{} or newer; {} is {}.{}, and none of {} is on PATH.\n"
        "Install one, or name it: make demo PYTHON=/path/to/python3".format(
            OLDEST[0], OLDEST[1], sys.executable, *sys.version_info[:2], ", ".join(NEWER_PYTHONS)
        )
    )


def digest(root: Path) -> str:
    """Return a hash that changes with the inputs, the interpreter and the location of the tree."""
    found = hashlib.sha256(str(root).encode())
    found.update(os.path.realpath(str(interpreter(root))).encode())
    for name in INPUTS:
        found.update((root / name).read_bytes())
    return found.hexdigest()


def interpreter(root: Path) -> Path:
    """Return the path of the virtual environment's Python, whether or not it exists."""
    return root / ".venv" / "bin" / "python"


def read_done(root: Path) -> Dict[str, str]:
    """Return the digests of the finished installations by set, and their location as `root`."""
    try:
        done = json.loads((root / ".venv" / "bootstrap.json").read_text())
    except (OSError, ValueError):
        return {}
    return done if isinstance(done, dict) else {}


def is_installed(root: Path, wanted: str) -> bool:
    """Return whether `wanted` is installed and up to date.

    It reads four files and starts no program.
    """
    done = read_done(root)
    return wanted in done and interpreter(root).exists() and done[wanted] == digest(root)


def install(root: Path, wanted: str) -> None:
    """Create the environment and install `wanted` into it.

    Raises:
        Refused: The environment could not be created, or a download failed twice. Nothing is
            recorded, so the next call starts from the beginning.
    """
    began = time.monotonic()
    say("installing into .venv: {} the first time, nothing later".format(DURATION[wanted]))
    done = read_done(root)
    moved = done.get("root", str(root)) != str(root)
    if moved or not is_usable(interpreter(root)):
        make_environment(root)
        done = {}
    else:
        with suppress(OSError):
            (root / ".venv" / "bootstrap.log").unlink()
    install_packages(root, EXTRAS[wanted])
    done["root"] = str(root)
    done.update(dict.fromkeys(INCLUDES[wanted], digest(root)))
    (root / ".venv" / "bootstrap.json").write_text(json.dumps(done, indent=1) + "\n")
    say("installed in {:.0f} s".format(time.monotonic() - began))


def is_usable(python: Path) -> bool:
    """Return whether the environment runs, is new enough, and has a way to install packages."""
    check = "import sys, pip; sys.exit(sys.version_info[:2] < {!r})".format(OLDEST)
    try:
        return subprocess.call([str(python), "-c", check], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def make_environment(root: Path) -> None:
    """Create an empty `.venv`, and replace one that does not work.

    If `.venv` is a link, only the link is removed: its target may be used by others.
    """
    place = str(root / ".venv")
    if os.path.islink(place):
        os.unlink(place)
    uv = shutil.which("uv")
    if find_spec("ensurepip") and find_spec("venv"):
        commands = [[sys.executable, "-m", "venv", "--clear", place]]
    elif uv is not None:
        commands = [[uv, "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, place]]
    else:
        raise Refused(DEBIAN_HINT)
    failure = run_first_that_works(commands, root)
    if failure is not None:
        raise Refused("could not make .venv:\n" + failure)


def install_packages(root: Path, extras: str) -> None:
    """Install the project (editable) with `extras`, by uv if it is available, otherwise by pip."""
    python = str(interpreter(root))
    quiet = ["--quiet", "--disable-pip-version-check", "--retries", "2"]
    pip = [python, "-m", "pip", *quiet, "install"]
    what = ["-c", "requirements-dev.txt", "-e", "." + extras]
    uv = find_uv(root, pip)
    with_uv = [uv, "pip", "install", "--quiet", "--python", python, *what] if uv else None
    failure = run_first_that_works([with_uv or pip + what, pip + what], root)
    if failure is not None:
        raise Refused(
            "could not install:\n{}\n"
            "If packages could not be fetched, see to the network and run the same command "
            "again.".format(failure)
        )


def find_uv(root: Path, pip: List[str]) -> Optional[str]:
    """Return the path of uv, which is much faster than pip; install it with pip if necessary."""
    own = root / ".venv" / "bin" / "uv"
    if not own.exists():
        on_path = shutil.which("uv")
        if on_path is not None:
            return on_path
        run_first_that_works([[*pip, "-c", "requirements-dev.txt", "uv"]], root)
    return str(own) if own.exists() else None


def run_first_that_works(commands: List[List[str]], root: Path) -> Optional[str]:
    """Run the commands until one succeeds.

    Returns:
        `None` after a success; otherwise the last lines of the last command's output, and the path
            of the log with the output of all of them.
    """
    output, log = "", root / ".venv" / "bootstrap.log"
    for command in commands:
        done = subprocess.run(
            command, cwd=str(root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode == 0:
            return None
        output = done.stdout.decode(errors="replace").strip()
        keep(log, command, done.returncode, output)
        if command is not commands[-1]:
            say("that failed; trying a second time")
    lines = output.splitlines()[-8:]
    if log.exists():
        lines.append("all of it: " + str(log.relative_to(root)))
    return "\n".join("  " + line for line in lines)


def keep(log: Path, command: List[str], exit_code: int, output: str) -> None:
    """Append the output of a failed command to the log, as far as the disk allows."""
    entry = "$ {}\n{}\n(exit code {})\n\n".format(" ".join(command), output, exit_code)
    with suppress(OSError):
        log.parent.mkdir(exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(entry)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("stopped; nothing is lost, the next call goes on")
        sys.exit(130)
