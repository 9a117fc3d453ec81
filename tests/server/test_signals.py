"""Signals in quick succession: every server ends in time, with the code of a stop."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from arp.process.stop_signals import STOPPING, StopSignals, handlers_restored

HERE = Path(__file__).parent
SCRIPTED = HERE / "scripted.py"
START_S = 30.0
END_S = 15.0

API = """
import sys
from arp import App, Turn
from arp.app import serve

app = App()

@app.agent
async def agent(turn: Turn) -> None: ...

import arp.server.serve as at
told = at.Server.startup
async def startup(self, sockets=None):
    await told(self, sockets)
    print("ready", flush=True)
at.Server.startup = startup
serve(app, port=0)
"""


RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}\n'
MCP = b"""{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":
"2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}""".replace(
    b"\n", b" "
)
SERVE = ("serve", str(SCRIPTED), "--port", "0")
FAKE = ("--runtime", "arp.runtime.plain.fake:FakeRuntime")

ENTRY_POINTS: dict[str, tuple[Sequence[str], bytes]] = {
    "serve": (SERVE, b""),
    "serve-ports": ((*SERVE, "--unix", "s", "--grpc", "127.0.0.1:0"), b""),
    "serve-reload": ((*SERVE, "--reload"), b""),
    "serve-stdio": (("serve", str(SCRIPTED), "--stdio"), b""),
    "app-server": (("app-server", str(SCRIPTED)), RPC),
    "ari-serve": (("ari", "serve", *FAKE, "--http", ":0", "--grpc", ":0"), b""),
    "tools-serve": (("tools", "serve", "--port", "0"), b""),
    "tools-stdio": (("tools", "serve", "--stdio"), MCP + b"\n"),
    "own-script": (("own.py",), b""),
}
"""The words of each, and what is written to it so that it says that it is ready."""


@asynccontextmanager
async def ready(name: str, place: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a server; it has said a first line, so it serves."""
    (place / "own.py").write_text(API)
    words, first = ENTRY_POINTS[name]
    start = words if name == "own-script" else ("-m", "arp.cli", *words)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *start,
        cwd=place,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TOOL_AGENT_DATA_DIR": str(place / "data"), "TOOL_AGENT_MCP_PORT": "0"},
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(first)
        async with asyncio.timeout(START_S):
            assert await child.stdout.readline(), (await child.communicate())[1].decode()
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("sent", ["terms", "ints", "mixed"])
@pytest.mark.parametrize("name", ENTRY_POINTS)
async def test_burst_of_signals_ends_a_server_in_time(tmp_path: Path, name: str, sent: str) -> None:
    """2 to 20 of them, from the first moment until it has ended.

    When `serve` returns to a script, signals do again what they did before; so it gets all at once.
    """
    drawn = random.Random(f"{name} {sent}")
    kinds = {"terms": [signal.SIGTERM], "ints": [signal.SIGINT]}.get(sent, [*STOPPING])
    async with ready(name, tmp_path) as child:
        below = psutil.Process(child.pid).children(recursive=True)
        reading = asyncio.create_task(child.communicate())
        for number in range(drawn.randint(2, 20)):
            # Not `send_signal`: it takes the exit code of a child that has just ended from asyncio,
            # which reports 255 then.
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, drawn.choice(kinds))
            if number > 1 and name != "own-script":  # the first ones come at once
                await asyncio.wait((reading,), timeout=drawn.random() / 10)
        async with asyncio.timeout(END_S):
            _, errors = await reading
    assert (child.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    _, left = await asyncio.to_thread(psutil.wait_procs, below, END_S)
    assert left == []


async def test_signal_comes_to_a_thread_while_the_main_thread_holds_every_lock() -> None:
    """A handler that takes a lock would wait for the code that it has interrupted."""
    came = asyncio.Queue[int]()
    loop = asyncio.get_running_loop()
    with handlers_restored():
        lock = threading.Lock()

        def told(number: int) -> None:
            with lock:
                loop.call_soon_threadsafe(came.put_nowait, number)

        signals = StopSignals(told)
        with lock:
            for _ in range(5):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
        async with asyncio.timeout(END_S):
            seen = [await came.get() for _ in range(6)]
        signals.close()
        signal.raise_signal(signal.SIGTERM)  # does nothing
    assert seen == [signal.SIGTERM] * 5 + [signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_signals_that_nobody_reads_fill_no_more_than_the_pipe() -> None:
    reached = threading.Event()

    def waits(number: int) -> None:
        reached.wait()

    with handlers_restored():
        signals = StopSignals(waits)
        for _ in range(70_000):
            signal.raise_signal(signal.SIGINT)
        reached.set()
        signals.close()


async def test_app_can_be_served_by_a_script_after_it_was_stopped(tmp_path: Path) -> None:
    """`serve` returns, signals do again what they did before, and the app is served again."""
    twice = API.replace("serve(app, port=0)", "serve(app, port=0)\nserve(app, port=0)")
    (tmp_path / "own.py").write_text(f"{twice}\nprint('over', flush=True)\nsys.stdin.read()\n")
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "own.py",
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    async with asyncio.timeout(START_S):
        for said in (b"ready\n", b"ready\n", b"over\n"):
            assert await child.stdout.readline() == said
            child.send_signal(signal.SIGTERM)
        assert await child.wait() == -signal.SIGTERM
