"""Whatever an agent does, its turn ends and the server goes on; and it ends when it is asked to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from arp.live.settings import HubSettings
from arp.server.ending import STOP_MARGIN_S, run_to_end
from tests.server.processes import START_S, Process
from tests.support.frames import hello

AGENT = Path(__file__).with_name("unruly.py")
HELLO = hello("text")
MOST_S = 30.0


class Unruly(Process):
    """A server whose standard error is read as it comes."""

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        super().__init__(child, port)
        self.log = ""
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.child.stderr is not None
        while line := await self.child.stderr.readline():
            self.log += line.decode()

    async def logs(self, *words: str) -> str:
        """Waits until a line of the log has all these words, and gives it."""
        async with asyncio.timeout(MOST_S):
            while True:
                for line in self.log.splitlines():
                    if all(word in line for word in words):
                        return line
                await asyncio.sleep(0.02)

    async def ended(self) -> int:
        """Waits for its end, and gives the exit code."""
        async with asyncio.timeout(MOST_S):
            await self._reading
            return await self.child.wait()


@asynccontextmanager
async def serving(folder: Path, **environment: str) -> AsyncIterator[Unruly]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0"),
        *("--ledger", f"sqlite:{folder}/ledger.db"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert child.stdout is not None
    server = Unruly(child, 0)
    try:
        async with asyncio.timeout(START_S):
            line = (await child.stdout.readline()).decode()
        assert line.startswith("ARP on"), server.log
        server.port = int(line.rpartition(":")[2])
        yield server
    finally:
        await server.aclose()


async def say(socket: ClientConnection, text: str) -> None:
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
    await socket.send(json.dumps(said))


async def until(socket: ClientConnection, last: Callable[[Any], Any]) -> list[Any]:
    """Return what comes up to a message."""
    told: list[Any] = []
    async with asyncio.timeout(MOST_S):
        while not told or not last(told[-1]):
            told.append(json.loads(await socket.recv()))
    return told


async def turn_of(socket: ClientConnection, text: str) -> tuple[str, str]:
    """Lets a turn run; gives its status and its text."""
    await say(socket, text)
    told = await until(socket, lambda one: one.get("final"))
    states = [one["status"] for one in told if one["type"] == "turn"]
    return states[-1], "".join(one["payload"]["delta"] for one in told if one["type"] == "delta")


@asynccontextmanager
async def talking(server: Process, session_id: str) -> AsyncIterator[ClientConnection]:
    async with connect(server.ws, compression=None, max_queue=None) as socket:
        await socket.send(json.dumps({**HELLO, "session_id": session_id}))
        await until(socket, lambda one: one["type"] == "session")
        yield socket


def stop() -> None:
    asyncio.get_running_loop().stop()


def leave() -> None:
    sys.exit(7)


@pytest.mark.parametrize("act", [stop, leave])
def test_loop_goes_on_while_signals_go_to_a_handler_of_ours(act: Callable[[], None]) -> None:
    """Then no signal has raised it, but somebody's code; asyncio's own loop."""

    async def main() -> str:
        asyncio.get_running_loop().call_soon(act)
        await asyncio.sleep(0.01)
        return "done"

    assert run_to_end(main(), has_signals=lambda: True) == "done"


@pytest.mark.parametrize(("act", "raised"), [(stop, RuntimeError), (leave, SystemExit)])
def test_loop_ends_where_a_signal_may_have_raised_it(
    act: Callable[[], None], raised: type[BaseException]
) -> None:
    """As Ctrl-C while the server starts."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(act)
        await asyncio.sleep(60)

    with pytest.raises(raised):
        run_to_end(main())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("GeneratorExit", "failed"),
        ("KeyboardInterrupt", "failed"),
        ("SystemExit", "failed"),
        ("CancelledError", "cancelled"),
        ("group", "failed"),
        ("helper GeneratorExit", "failed"),
        ("helper KeyboardInterrupt", "failed"),
        ("helper SystemExit", "failed"),
        ("callback", "completed"),
        ("stop", "completed"),
    ],
)
async def test_whatever_an_agent_raises_ends_its_turn_only(
    tmp_path: Path, text: str, status: str
) -> None:
    """In the turn, in a task that it started, in a callback: the server and other turns go on."""
    async with (
        serving(tmp_path) as server,
        talking(server, "a") as one,
        talking(server, "b") as two,
    ):
        await say(two, "stream")
        await until(two, lambda message: message["type"] == "delta")
        assert (await turn_of(one, text))[0] == status
        assert await turn_of(one, "next") == ("completed", "did next")
        told = await until(two, lambda message: message.get("final"))
        assert told[-2]["status"] == "completed"
        server.child.send_signal(signal.SIGTERM)
        assert await server.ended() == 0


async def test_agent_that_cancels_all_tasks_ends_its_own_turn_only(tmp_path: Path) -> None:
    """The writer, connections and other sessions' turns go on; the log names the agent once."""
    async with (
        serving(tmp_path) as server,
        talking(server, "a") as one,
        talking(server, "b") as two,
        httpx.AsyncClient(base_url=server.http) as client,
    ):
        await say(two, "stream")
        await until(two, lambda message: message["type"] == "delta")
        assert (await turn_of(one, "cancel"))[0] == "cancelled"
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert await turn_of(one, "next") == ("completed", "did next")
        told = await until(two, lambda message: message.get("final"))
        assert told[-2]["status"] == "completed"
        line = await server.logs("cancelled task", "not its own")
        server.child.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
    assert "agent 'unruly' (turn t1 of session 'a')" in line
    assert server.log.count("not its own") == 1


async def test_writer_that_ends_is_started_again(tmp_path: Path) -> None:
    """Sessions go on; the log says what happened."""
    async with serving(tmp_path) as server, talking(server, "a") as one:
        assert await turn_of(one, "writer") == ("completed", "did writer")
        await server.logs("task arp-writer was cancelled; it is started again")
        assert await turn_of(one, "next") == ("completed", "did next")
        server.child.send_signal(signal.SIGTERM)
        assert await server.ended() == 0


async def test_server_whose_writer_ends_again_and_again_ends_with_an_error(tmp_path: Path) -> None:
    """Better no server than one that takes inputs and keeps none."""
    async with serving(tmp_path) as server, talking(server, "a") as one:
        await say(one, "again")
        code = await server.ended()
    assert code == 1
    assert "the server must stop: task arp-writer was cancelled" in server.log


async def test_agent_that_blocks_the_loop_is_named_while_it_does(tmp_path: Path) -> None:
    """With the seconds, and the line at which it blocks; and again when the loop goes on."""
    async with serving(tmp_path) as server, talking(server, "a") as one:
        await say(one, "block 1.5")
        line = await server.logs("has blocked the loop for 0.3 s")
        assert "') blocked the loop" not in server.log  # it is still going on
        last = await server.logs("') blocked the loop for")
        await until(one, lambda message: message.get("final"))
        assert await turn_of(one, "next") == ("completed", "did next")
    assert "agent 'unruly' (turn t1 of session 'a') has blocked" in line
    assert "unruly.py:" in line
    assert " in unruly" in line
    seconds = float(last.rpartition(" for ")[2].removesuffix(" s"))
    assert 1 < seconds < 1.5 + MOST_S


async def test_agent_that_blocks_the_loop_cannot_keep_the_server_from_ending(
    tmp_path: Path,
) -> None:
    """It ends with an error within `stop_grace_s` and four seconds: ten as it stands."""
    assert HubSettings().stop_grace_s + STOP_MARGIN_S <= 10
    async with serving(tmp_path) as server, talking(server, "a") as one:
        await say(one, "block 60")
        await server.logs("has blocked the loop")
        began = time.monotonic()
        server.child.send_signal(signal.SIGTERM)
        code = await server.ended()
    assert code == 1
    assert time.monotonic() - began < 10
    assert "the server has not stopped within 4.2 s (it is at" in server.log
    assert "unruly.py:" in server.log.rpartition("has not stopped")[2]


def test_blocked_agent_cannot_keep_a_server_on_a_pipe_from_ending(tmp_path: Path) -> None:
    """As over HTTP."""
    child = subprocess.Popen(
        [sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stderr is not None
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "block 60"}}
    child.stdin.write(f"{json.dumps(HELLO)}\n{json.dumps(said)}\n".encode())
    child.stdin.flush()
    while b"has blocked the loop" not in child.stderr.readline():
        pass
    child.terminate()
    _, log = child.communicate(timeout=MOST_S)
    assert child.returncode == 1
    assert b"has not stopped within" in log
