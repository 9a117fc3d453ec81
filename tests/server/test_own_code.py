"""Code that a server runs does not answer the server's own questions, at any address.

A real server with a Tool Agent asks for 15 dollars; a real program tries to allow it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from arp.client.client import ArpClient
from arp.process.sandbox import Confinement, confined, sandbox_works
from tests.server import own_attack
from tests.support.waiting import becomes

pytestmark = pytest.mark.timeout(180)  # each starts servers and programs

START_S = 60.0
REPOSITORY = Path(__file__).resolve().parents[2]
APP = """
from pathlib import Path
from arp import App, Turn
from arp.tools.app.agent import ToolAgent

tools = ToolAgent()
app = App(tools=tools)


@app.agent
async def buyer(turn: Turn) -> None:
    await tools.spend(turn, "shop.example", 15.0, "a thing")
    Path(__file__).with_name("paid").touch()
"""
NOTHING_KEEPS_OUT = "Commands that its agents run can use this server"

needs_tool_users = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not sandbox_works(),
    reason="needs root and bubblewrap",
)


class OwnServer(NamedTuple):
    """A server that runs generated code, and what is known of it."""

    child: asyncio.subprocess.Process
    lines: list[str]
    folder: Path

    @property
    def base(self) -> str:
        return self.lines[0].removeprefix("ARP on ").partition("/#")[0]

    @property
    def token(self) -> str:
        return self.lines[0].partition("/#token=")[2]

    @property
    def addresses(self) -> list[str]:
        grpc, unix = (one.removeprefix("ARP on ") for one in self.lines[1:3])
        return [self.base, self.base.replace("http:", "http+sse:"), grpc, unix]

    def is_paid(self) -> bool:
        return (self.folder / "paid").exists()


@asynccontextmanager
async def own_server(folder: Path, *options: str) -> AsyncIterator[OwnServer]:
    """Serves the app at every kind of address."""
    (folder / "app.py").write_text(APP)
    command = [sys.executable, "-m", "arp.cli", "serve", "app.py", "--port", "0", "--grpc", "0"]
    with (folder / "stderr").open("wb") as errors:
        child = await asyncio.create_subprocess_exec(
            *command,
            *("--unix", str(folder / "run" / "arp.sock"), *options),
            cwd=folder,
            env={**os.environ, "TOOL_AGENT_DATA_DIR": str(folder / "data")},
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            lines = [(await child.stdout.readline()).decode().strip() for _ in range(3)]
        assert lines[0].startswith("ARP on http://127.0.0.1:"), (folder / "stderr").read_text()
        yield OwnServer(child, lines, folder)
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path


@asynccontextmanager
async def asking(server: OwnServer) -> AsyncIterator[tuple[ArpClient, str]]:
    """A person at a server who is asked for 15 dollars; yields their client and the session."""
    async with ArpClient(server.base, token=server.token or None, workflow="buyer") as client:
        await client.ready()
        await client.send_text("buy it")
        await becomes(lambda: any(turn.permissions for turn in client.screen.turns.values()))
        assert client.session_id is not None
        yield client, client.session_id


async def answered(command: list[str]) -> dict[str, str]:
    """Runs the attack; returns what it got."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    child = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, env={**environment, "HOME": "/nowhere"}
    )
    out, _ = await child.communicate()
    found: dict[str, str] = json.loads(out)
    return found


def attack(session: str, token: str, addresses: list[str]) -> list[str]:
    return [sys.executable, str(own_attack.__file__), session, token, *addresses]


async def test_code_without_the_token_gets_in_nowhere_and_the_payment_stays_open(
    folder: Path,
) -> None:
    async with own_server(folder) as server, asking(server) as (client, session):
        found = await answered(attack(session, "", server.addresses))
        assert [name for name, told in found.items() if not told.startswith("out")] == []
        assert set(found) == {*server.addresses, *own_attack.PLACES, "/_api/rpc"}
        assert not server.is_paid()
        turn = next(iter(client.screen.turns.values()))
        await client.send_permission(next(iter(turn.permissions.values())), True)
        await client.turn_done(turn.id)
        assert server.is_paid()


async def test_the_same_code_gets_in_everywhere_without_a_token_and_a_warning_says_so(
    folder: Path,
) -> None:
    async with own_server(folder, "--no-token") as server:
        assert server.token == ""
        for address in server.addresses:
            (folder / "paid").unlink(missing_ok=True)
            async with asking(server) as (_, session):
                found = await answered(attack(session, "", [address]))
            assert [told for told in found.values() if not told.startswith("in")] == []
            assert server.is_paid()
    assert NOTHING_KEEPS_OUT in (folder / "stderr").read_text()


@pytest.mark.slow
@needs_tool_users
@pytest.mark.parametrize("options", [(), ("--no-token",)], ids=["token", "no token"])
async def test_users_of_tools_are_refused_at_every_address_even_with_the_token(
    folder: Path, options: tuple[str, ...]
) -> None:
    async with own_server(folder, *options) as server, asking(server) as (_, session):
        addresses = server.addresses[:3]  # the socket is not even seen
        work = folder / "work"
        work.mkdir()
        os.chown(work, 61_184, 61_184)
        readable = [Path(sys.prefix), Path(sys.base_prefix), REPOSITORY]
        confinement = Confinement(work, (work,), readable, 61_184)
        command = confined(attack(session, server.token, addresses), confinement, sandboxed=True)
        found = await answered(command)
        assert [name for name, told in found.items() if not told.startswith("out")] == []
        assert set(found) == {*addresses, *own_attack.PLACES, "/_api/rpc"}
        assert not server.is_paid()


def places_of(text: bytes, pid: int, folder: Path) -> list[str]:
    """Where a text is among what a process shows and the files that it wrote."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    shown = [Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ")]
    return [str(path) for path in (*shown, *files) if text in path.read_bytes()]


async def test_token_is_in_no_argument_variable_or_file(folder: Path) -> None:
    async with own_server(folder) as server, asking(server):
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", server.token)
        assert places_of(server.token.encode(), server.child.pid, folder) == []
        assert places_of(b"TOOL_AGENT_DATA_DIR", server.child.pid, folder) != []
        status = os.stat(folder / ".arp" / "app.starts")
        assert stat.S_IMODE(status.st_mode) == 0o600


@pytest.mark.slow
async def test_pages_that_are_open_stay_open_after_a_restart(folder: Path) -> None:
    async with own_server(folder) as first:
        pass
    async with own_server(folder) as second, httpx.AsyncClient(trust_env=False) as client:
        assert first.token != second.token
        for token, status in ((first.token, 200), (second.token, 200), ("x" * 43, 401)):
            headers = {"authorization": f"Bearer {token}"}
            answer = await client.get(f"{second.base}/_api/chats", headers=headers)
            assert answer.status_code == status, token


@pytest.mark.slow
async def test_terminal_and_reader_take_the_address_as_it_was_printed(folder: Path) -> None:
    async with own_server(folder) as server:
        address = server.lines[0].removeprefix("ARP on ")
        async with ArpClient(address) as client:
            await client.ready()
        listing = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arp.cli", "sessions", "--url", address),
            stdout=subprocess.PIPE,
        )
        out, _ = await listing.communicate()
        assert listing.returncode == 0, out


async def test_app_that_runs_nothing_has_no_token(folder: Path) -> None:
    (folder / "plain").mkdir()
    async with own_server(folder) as server:
        pass
    code = APP.replace("tools = ToolAgent()", "tools = None").replace("App(tools=tools)", "App()")
    assert server.token
    (folder / "plain" / "app.py").write_text(code)
    command = [sys.executable, "-m", "arp.cli", "serve", "app.py", "--port", "0"]
    child = await asyncio.create_subprocess_exec(
        *command, cwd=folder / "plain", stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await child.stdout.readline()).decode()
        assert re.fullmatch(r"ARP on http://127\.0\.0\.1:\d+\n", line)
    finally:
        child.terminate()
        await child.wait()
