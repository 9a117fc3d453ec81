"""Two agents served from one directory at the same time, without any flag."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from arp import connect
from arp.store.location import SHARED
from tests.commands.ledgers import written
from tests.server.processes import START_S

AGENT = '''
from arp import App, Turn

app = App(title="{name}")


@app.agent
async def {name}(turn: Turn) -> None:
    """Says its name."""
    await turn.say("{name}: " + turn.text)
'''


class Served:
    """`arp serve TARGET` as a child: its address, and what it said beside."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.address = ""
        self.said = ""

    async def said_line(self, start: str) -> str:
        """Return the first line on standard error that begins so, without the beginning."""
        assert self.child.stderr is not None
        async with asyncio.timeout(START_S):
            while line := (await self.child.stderr.readline()).decode():
                self.said += line
                if line.startswith(start):
                    return line.removeprefix(start).strip()
        raise AssertionError(f"{start!r} is not in {self.said!r}")


async def _spawn(place: Path, *words: str) -> asyncio.subprocess.Process:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("ARP_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", *words),
        cwd=place,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def served(place: Path, target: str) -> AsyncIterator[Served]:
    """Serves a target until the block ends."""
    one = Served(await _spawn(place, "serve", target))
    assert one.child.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await one.child.stdout.readline()).decode()
        assert line.startswith("ARP on "), (await one.child.stderr.read()).decode()  # type: ignore[union-attr]
        one.address = line.removeprefix("ARP on ").strip()
        yield one
    finally:
        if one.child.returncode is None:
            one.child.terminate()
        async with asyncio.timeout(START_S):
            await one.child.wait()


async def output(place: Path, *words: str) -> tuple[int | None, str, str]:
    """Return exit code, output and errors of a command of `arp`."""
    child = await _spawn(place, *words)
    async with asyncio.timeout(START_S):
        out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()


def write(place: Path, name: str) -> None:
    (place / f"{name}.py").write_text(AGENT.format(name=name))


async def answer(address: str, text: str) -> str:
    async with connect(address) as client:
        turn = await client.ask(text)
        return client.screen.text(turn.id)


async def test_two_agents_run_side_by_side_each_with_a_port_and_a_ledger(tmp_path: Path) -> None:
    """`arp serve app.py` beside a running `make demo` needs no flag."""
    write(tmp_path, "first")
    write(tmp_path, "second")
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(served(tmp_path, "first.py"))
        second = await stack.enter_async_context(served(tmp_path, "second.py"))
        assert await first.said_line("arp: Sessions are kept in ") == ".arp/first.db."
        assert await second.said_line("arp: Sessions are kept in ") == ".arp/second.db."
        port = second.address.rpartition(":")[2]
        assert f"arp: Port 8080 is taken, so this is port {port}.\n" in second.said
        assert await answer(first.address, "one") == "first: one"
        assert await answer(second.address, "two") == "second: two"
        for target, title in (("first.py", "one"), ("second", "two")):  # while they run
            code, listed, _ = await output(tmp_path, "sessions", "--ledger", target)
            assert code == 0
            assert [line.split()[-1] for line in listed.splitlines()] == ["TITLE", title]


async def test_the_same_agent_twice_is_refused_and_told_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, "first")
    async with served(tmp_path, "first.py") as first:
        code, _, errors = await output(tmp_path, "serve", "first.py")
    assert code == 1
    told = f"Ledger .arp/first.db is in use by process {first.child.pid}; stop it, or give this one"
    assert told in errors


async def test_an_app_with_sessions_in_the_shared_ledger_is_told_how_to_get_its_own(
    tmp_path: Path,
) -> None:
    """Both had their sessions in `.arp/ledger.db` when that was everybody's."""
    await written(tmp_path / SHARED)  # of `agent`
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(AGENT.format(name="agent"))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(served(tmp_path, "first.py"))
        assert await first.said_line("arp: Sessions are kept in ") == ".arp/ledger.db."
        code, _, errors = await output(tmp_path, "serve", "second.py")
        assert code == 1
        assert "Another server uses .arp/ledger.db, where this app has sessions too" in errors
        flag = errors.rpartition("now and later: ")[2].rstrip(".\n").split()
        assert flag == ["--ledger", "sqlite:.arp/second.db"]
        second = await _spawn(tmp_path, "serve", "second.py", *flag)
        stack.push_async_callback(second.wait)
        stack.callback(second.terminate)
        assert second.stdout is not None
        assert (await second.stdout.readline()).startswith(b"ARP on ")
    async with served(tmp_path, "second.py") as again:
        assert await again.said_line("arp: Sessions are kept in ") == ".arp/second.db."
