"""Nothing that an agent has started outlives it, the server, or both, however they are killed.

`--kills N` is for all agents together: two fifths each for Claude Code and Codex, and one fifth for
OpenCode, which takes longest to start; half each where OpenCode is not installed.
"""

from __future__ import annotations

import asyncio
import random
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from arp import connect
from arp.client.client import ArpClient
from tests.runtime.clis import Cli, opencode_path, processes_of
from tests.support.waiting import becomes

GONE_S = 20.0
"""So long the last process of an agent may take to end: it notices that its pipes are closed."""
TRIAL_S = 120.0
"""So long a trial may take; OpenCode starts in half a minute on a machine that is busy."""
COMMAND = "run: touch begun && exec sleep 300"

pytestmark = [pytest.mark.kill, pytest.mark.timeout(5400)]


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


async def one_trial(name: str, cli: Cli, place: Path, rng: random.Random, moment: str) -> bool:
    """Kill at a moment of a turn, "command" or "any"; return whether a command ran then."""
    begun = cli.cwd / "begun"
    begun.unlink(missing_ok=True)
    session_id = f"s{rng.randrange(2**32)}"
    async with (
        serving(name, cli, place) as (server, url),
        asyncio.timeout(TRIAL_S),
        connect(url, session_id=session_id) as client,
    ):
        if moment == "command":
            await client.send_text(COMMAND)
            await allow(client)
            await becomes(begun.exists)
        else:
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


@pytest.fixture
def rng(kill_rounds: int, kill_seed: int) -> random.Random:
    """Return what the moments and the victims come from."""
    print(f"to repeat: --kills {kill_rounds} --kill-seed {kill_seed}")  # noqa: T201
    return random.Random(kill_seed)


async def no_process_is_left(
    name: str, cli: Cli, place: Path, rounds: int, rng: random.Random
) -> None:
    for number in range(rounds):
        # Every fourth kill is certain to meet a command that runs, whatever the moments are.
        moment = "any" if number % 4 else "command"
        assert await one_trial(name, cli, place, rng, moment) or moment == "any"
        await none_is_left(cli)


def share(kills: int, of_opencode: bool = False) -> int:
    """Return how many of the kills are for one agent."""
    if of_opencode:
        return max(kills // 5, 1)
    return max(kills * 2 // 5 if opencode_path() else kills // 2, 1)


async def test_nothing_of_claude_code_is_left_behind_by_random_kills(
    claude_cli: Cli, tmp_path: Path, kill_rounds: int, rng: random.Random
) -> None:
    await no_process_is_left("claude-code", claude_cli, tmp_path, share(kill_rounds), rng)


async def test_nothing_of_codex_is_left_behind_by_random_kills(
    codex_cli: Cli, tmp_path: Path, kill_rounds: int, rng: random.Random
) -> None:
    await no_process_is_left("codex", codex_cli, tmp_path, share(kill_rounds), rng)


@pytest.mark.timeout(5400)  # Nearer than the one for every test with OpenCode.
async def test_nothing_of_opencode_is_left_behind_by_random_kills(
    opencode_cli: Cli, tmp_path: Path, kill_rounds: int, rng: random.Random
) -> None:
    name = f"acp:{shlex.join(opencode_cli.command)}"
    rounds = share(kill_rounds, of_opencode=True)
    await no_process_is_left(name, opencode_cli, tmp_path, rounds, rng)
