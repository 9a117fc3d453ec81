"""`arp serve --reload`: a change of a Python file starts the child again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from arp.commands.serve.reload import modification_times

GOOD = (
    "from arp import App, Turn\napp = App(title='{title}')\n@app.agent\nasync def agent(t): ...\n"
)
WAIT_S = 30.0


async def said(child: asyncio.subprocess.Process, beginning: str) -> str:
    """Reads standard output up to a line that begins so."""
    assert child.stdout is not None
    while line := (await child.stdout.readline()).decode():
        if line.startswith(beginning):
            return line.strip()
    raise AssertionError(f"no line begins with {beginning!r}")


@asynccontextmanager
async def reloading(directory: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", "app.py", "--reload"),
        *("--port", "0", "--ledger", "memory:"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        async with asyncio.timeout(WAIT_S):
            yield child
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


async def title(address: str) -> str:
    async with httpx.AsyncClient() as client:
        listed = (await client.get(f"{address}/_api/workflows")).json()
    return str(listed[0]["title"])


async def test_change_starts_the_server_again_also_after_a_broken_one(tmp_path: Path) -> None:
    """A file that cannot be loaded is told, and the next change is tried; SIGTERM ends both."""
    app = tmp_path / "app.py"
    app.write_text(GOOD.format(title="One"))
    async with reloading(tmp_path) as child:
        first = await said(child, "ARP on ")
        one = await title(first.removeprefix("ARP on "))
        app.write_text("def broken(:\n")
        changed = await said(child, "arp: a file changed")
        told = await said(child, "arp: app.py cannot be loaded: SyntaxError")
        app.write_text(GOOD.format(title="Three"))
        second = await said(child, "ARP on ")
        three = await title(second.removeprefix("ARP on "))
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
        with pytest.raises(httpx.ConnectError):
            await title(second.removeprefix("ARP on "))
    assert (one, three) == ("One", "Three")
    assert changed.endswith("starting again")
    assert "app.py:1" in told


async def test_interrupt_ends_both_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches the whole group."""
    (tmp_path / "app.py").write_text(GOOD.format(title="One"))
    async with reloading(tmp_path) as child:
        await said(child, "ARP on ")
        child.send_signal(signal.SIGINT)
        assert child.stdout is not None
        rest = (await child.stdout.read()).decode()
        code = await child.wait()
    assert code == 0
    assert "Traceback" not in rest


def test_stamps_are_those_of_python_files_that_are_ones_own(tmp_path: Path) -> None:
    """Not of hidden directories or of packages; new and changed files show."""
    for name in ("a.py", "deep/b.py", "deep/c.txt", ".venv/d.py", "node_modules/e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    before = modification_times(tmp_path)
    os.utime(tmp_path / "a.py", ns=(1, 1))
    after = modification_times(tmp_path)
    assert set(before) == {tmp_path / "a.py", tmp_path / "deep/b.py"}
    assert before != after
