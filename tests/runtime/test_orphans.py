"""Nothing that an agent has started outlives it, the server, or both, however they are killed."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from arp import connect
from arp.client.client import ArpClient
from tests.runtime.clis import Cli, processes_of

GONE_S = 20.0
"""So long the last process of an agent may take to end: it notices that its pipes are closed."""
MARK = "orphan-of-a-test"
COMMAND = f"run: touch begun && exec -a {MARK} sleep 300"

pytestmark = [pytest.mark.kill, pytest.mark.timeout(1800)]


@asynccontextmanager
async def serving(
    name: str, cli: Cli, place: Path
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `arp serve --runtime NAME` in the environment of the CLI."""
    command = [
        *(sys.executable, "-m", "arp.cli", "serve", "--runtime", name, "--pass-env", "*"),
        *("--cwd", str(cli.cwd), "--port", "0", "--ledger", f"sqlite:{place / 'ledger.db'}"),
    ]
    server = await asyncio.create_subprocess_exec(
        *command, env=cli.environment, cwd=place, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        async with asyncio.timeout(30):
            line = (await server.stdout.readline()).decode()
        assert line.startswith("ARP on http://127.0.0.1:"), line
        yield server, line.removeprefix("ARP on ").strip()
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()


async def allow(client: ArpClient) -> None:
    """Allow what is asked next."""
    events = client.events()
    while True:
        for turn in client.screen.turns.values():
            for name in turn.permissions:
                shown = [one for one in client.screen.output(turn.id) if one.id == name]
                if shown and shown[0].props["state"] == "open":
                    await client.send_action("confirm", source=name)
                    return
        await anext(events)


def kill_cli(cli: Cli, server: int) -> None:
    """Kill the processes of the CLI's own program."""
    for process in processes_of(cli):
        with suppress(psutil.Error):
            if process.pid != server and process.exe() == str(Path(cli.program).resolve()):
                process.send_signal(signal.SIGKILL)


async def one_trial(name: str, cli: Cli, place: Path, rng: random.Random) -> bool:
    """Kill at a random moment of a turn; return whether a command ran then."""
    begun = cli.cwd / "begun"
    begun.unlink(missing_ok=True)
    session_id = f"s{rng.randrange(2**32)}"
    async with (
        serving(name, cli, place) as (server, url),
        asyncio.timeout(90),
        connect(url, session_id=session_id) as client,
    ):
        await client.send_text(rng.choice([COMMAND, COMMAND, "slow", "hello"]))
        with suppress(TimeoutError):
            async with asyncio.timeout(rng.uniform(0.5, 6)):
                await allow(client)
        await asyncio.sleep(rng.uniform(0, 1))
        victim = rng.choice(["server", "cli", "both", "stop"])
        if victim in ("cli", "both"):
            kill_cli(cli, server.pid)
        if victim in ("server", "both"):
            server.kill()
        else:
            server.terminate()
        async with asyncio.timeout(30):
            await server.wait()
    return begun.exists()


async def none_is_left(cli: Cli) -> None:
    """Wait until no process has the home of the CLI."""
    until = asyncio.get_running_loop().time() + GONE_S
    while left := processes_of(cli):
        if asyncio.get_running_loop().time() > until:
            raise AssertionError(f"left behind: {[process.cmdline() for process in left]}")
        await asyncio.sleep(0.1)


async def no_process_is_left(name: str, cli: Cli, place: Path, rounds: int, seed: int) -> None:
    print(f"to repeat: --kills {2 * rounds} --kill-seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    commands = 0
    for _ in range(rounds):
        commands += await one_trial(name, cli, place, rng)
        await none_is_left(cli)
    assert commands or rounds < 10, "no command ran in any trial, so nothing was tried"


async def test_nothing_of_claude_code_is_left_behind_by_random_kills(
    claude_cli: Cli, tmp_path: Path, kill_rounds: int, kill_seed: int
) -> None:
    await no_process_is_left("claude-code", claude_cli, tmp_path, kill_rounds // 2, kill_seed)


async def test_nothing_of_codex_is_left_behind_by_random_kills(
    codex_cli: Cli, tmp_path: Path, kill_rounds: int, kill_seed: int
) -> None:
    await no_process_is_left("codex", codex_cli, tmp_path, kill_rounds // 2, kill_seed)
