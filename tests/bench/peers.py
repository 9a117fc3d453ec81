"""The same app with ARP, Chainlit and the AG-UI SDK: start, memory, CPU, a lost connection.

The peers are installed into `.venv-peers`, at the versions of `PEERS`. Method: README.md here.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from msgspec import Struct

from arp.client.client import connect
from tests.bench.figures import rounds
from tests.bench.servers import ROOT, cpu_s

PEERS = ("chainlit==2.12.0", "ag-ui-protocol==1.0.0", "aiohttp", "httpx", "starlette", "uvicorn")
ENVIRONMENT = ROOT / ".venv-peers"
PYTHON = ENVIRONMENT / "bin" / "python"
APPS = Path(__file__).parent / "peer_apps"

READY_S = 120.0
WORDS = 2_000
PACED = 200
CUT = 50
AWAY_S = 0.3

Ask = Callable[[str, str, int], int]
"""Gets an address, a text, and the number of words after which to disconnect (0: never).

Returns the number of words received."""


class Measured(Struct):
    """The measurements of one app."""

    start_s: float
    memory_mb: float
    cpu_us: float
    """Processor time of the server for each word."""
    kept: float
    """The share of words that arrive in spite of a lost connection."""


def install() -> None:
    """Install the peers, once."""
    uv = Path(sys.executable).parent / "uv"
    if not PYTHON.exists():
        subprocess.run([uv, "venv", "--quiet", ENVIRONMENT], check=True)
    command: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", PYTHON, *PEERS]
    subprocess.run(command, check=True)


@contextmanager
def started(command: Sequence[str], folder: str) -> Iterator[tuple[str, int, float]]:
    """Start a server; yield its address, its process id, and the seconds until it answered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    words = [word.replace("PORT", str(port)) for word in command]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ARP_")}
    began = time.perf_counter()
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(trust_env=False) as http:
            while not _answers(http, url):
                if process.poll() is not None or time.perf_counter() - began > READY_S:
                    raise RuntimeError(f"{words}: did not start")
                time.sleep(0.01)
        yield url, process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(http: httpx.Client, url: str) -> bool:
    try:
        return http.get(f"{url}/").status_code == 200
    except httpx.HTTPError:
        return False


def ask_peer(kind: str) -> Ask:
    """Return a function that asks a peer, with a client in the peer's environment."""

    def ask(url: str, text: str, cut: int) -> int:
        command: list[str | Path] = [
            PYTHON,
            APPS / "peer_client.py",
            kind,
            url,
            text,
            *([str(cut)] if cut else []),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return int(done.stdout)

    return ask


def ask_arp(url: str, text: str, cut: int) -> int:
    """Ask ARP's app; after a cut a new client reads the session."""
    return asyncio.run(_ask_arp(url, text, cut))


async def _ask_arp(url: str, text: str, cut: int) -> int:
    async with connect(url) as client:
        turn_id = await client.turn_of(await client.send_text(text))
        session_id = client.session_id
        events = client.events()
        while cut and client.screen.text(turn_id).count("word") < cut:
            await anext(events)
        if not cut:
            await client.turn_done(turn_id)
            return client.screen.text(turn_id).count("word")
    await asyncio.sleep(AWAY_S)
    async with connect(url, session_id=session_id) as client:
        await client.turn_done(turn_id)
        return client.screen.text(turn_id).count("word")


def measure(command: Sequence[str], ask: Ask) -> Measured:
    """Start a server and measure it."""
    with (
        tempfile.TemporaryDirectory(prefix="arp-peers-") as folder,
        started(command, folder) as (url, pid, start_s),
    ):
        ask(url, f"stream {WORDS // 10}", 0)
        before = cpu_s(pid)
        received = ask(url, f"stream {WORDS}", 0)
        used = cpu_s(pid) - before
        if received != WORDS:
            raise RuntimeError(f"{command[0]}: received {received} of {WORDS} words")
        memory = psutil.Process(pid).memory_info().rss
        kept = ask(url, f"paced {PACED}", CUT)
        return Measured(start_s, memory / 1e6, used / WORDS * 1e6, kept / PACED)


def commands() -> dict[str, tuple[list[str], Ask]]:
    """Return the command of each server and the function that asks it, by name."""
    python, chainlit = str(PYTHON), str(ENVIRONMENT / "bin" / "chainlit")
    ours = [sys.executable, "-m", "arp", "serve", str(APPS / "arp_app.py"), "--port", "PORT"]
    of_chainlit = [chainlit, "run", str(APPS / "chainlit_app.py"), "--headless", "--port", "PORT"]
    of_ag_ui = [python, "-m", "uvicorn", "--app-dir", str(APPS), "ag_ui_app:app"]
    of_ag_ui += ["--port", "PORT", "--log-level", "warning"]
    return {
        "ARP": (ours, ask_arp),
        "Chainlit": (of_chainlit, ask_peer("chainlit")),
        "AG-UI SDK": (of_ag_ui, ask_peer("ag-ui")),
    }


def table(found: dict[str, list[Measured]]) -> str:
    """Return the medians as a Markdown table, with the ratios to ours."""
    fields = {
        "start until the page answers": ("start_s", "{:.2f} s"),
        "memory after an answer": ("memory_mb", "{:.0f} MB"),
        "server CPU per word": ("cpu_us", "{:.0f} µs"),
    }
    lines = [f"| | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for title, (field, shown) in fields.items():
        medians = [
            statistics.median(getattr(one, field) for one in all_) for all_ in found.values()
        ]
        cells = [shown.format(medians[0])]
        cells += [f"{shown.format(one)} ({one / medians[0]:.1f} ×)" for one in medians[1:]]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    kept = [f"{statistics.median(one.kept for one in all_):.0%}" for all_ in found.values()]
    lines.append(f"| text that shows after a lost connection | {' | '.join(kept)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all of them in turn, several times; print a table, and a line of JSON."""
    install()
    found: dict[str, list[Measured]] = {}
    for _ in range(rounds(3)):
        for name, (command, ask) in commands().items():
            found.setdefault(name, []).append(measure(command, ask))
    print(table(found))
    plain = {
        name: [{field: getattr(one, field) for field in Measured.__struct_fields__} for one in all_]
        for name, all_ in found.items()
    }
    print(json.dumps(plain))


if __name__ == "__main__":
    main()
