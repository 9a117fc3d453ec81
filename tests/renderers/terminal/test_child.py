"""`arp connect stdio:COMMAND`: a real agent as a child of the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """
import os, sys
from arp import App, Turn

app = App()


@app.agent
async def child(turn: Turn) -> None:
    print("a \\x1b[31mwarning", file=sys.stderr, flush=True)
    if turn.text == "die":
        os._exit(3)
    await turn.say(f"{os.getpid()} said {turn.text}")
"""

ARP = (sys.executable, "-m", "arp")


def connected(tmp_path: Path, inputs: str, address: str | None = None) -> tuple[int, str, str]:
    """Run `arp connect` with these lines; return its exit code, its output and its errors."""
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    serve = f"stdio:{sys.executable} -m arp serve '{agent}' --stdio"
    ended = subprocess.run(
        [*ARP, "connect", address or serve],
        input=inputs,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_child_answers_and_ends_with_the_terminal(tmp_path: Path) -> None:
    """Its standard error is shown line by line, without control characters."""
    code, shown, errors = connected(tmp_path, "hi\n")
    pid = int(shown.partition(" said hi")[0].split()[-1])
    assert code == 0
    assert "a warning\n" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_child_that_dies_is_not_started_again(tmp_path: Path) -> None:
    """The terminal says so and ends: another child would know nothing of the session."""
    code, shown, _ = connected(tmp_path, "die\nhi\n")
    assert code == 1
    assert "exit code 3" in " ".join(shown.split())
    assert "said" not in shown


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("stdio:", "stdio: needs a command"),
        ('stdio:"x', "no closing quotation"),
        ("stdio:/no/such/program", "/no/such/program cannot be started"),
    ],
)
def test_address_without_a_program_says_what_to_write(
    tmp_path: Path, address: str, words: str
) -> None:
    code, _, errors = connected(tmp_path, "", address)
    assert (code, words in " ".join(errors.split())) == (1, True)
