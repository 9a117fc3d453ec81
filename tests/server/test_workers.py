"""Several workers of one server share no session: they are refused, whatever the server."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]

SAID = (
    "this server runs 2 worker processes, and sessions live in one; "
    "start it with one worker (--workers 1)"
)

SERVERS = {
    "uvicorn": ("uvicorn", "--workers={workers}", "--port={port}"),
    "gunicorn": (
        *("gunicorn", "--workers={workers}", "--bind=127.0.0.1:{port}"),
        *("--worker-class=uvicorn_worker.UvicornWorker", "--no-control-socket"),
    ),
    "hypercorn": ("hypercorn", "--workers={workers}", "--bind=127.0.0.1:{port}"),
}

WITHIN_S = 50.0

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform == "win32", reason="needs gunicorn"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def running(
    server: str, target: str, *, workers: int, port: int, ledger: str = "memory:"
) -> AsyncIterator[Process]:
    """Runs a server of somebody else; ends it and its workers at the end."""
    name, *options = (part.format(workers=workers, port=port) for part in SERVERS[server])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", name, *options, f"tests.server.mounted:{target}"),
        cwd=ROOT,
        env={**os.environ, "LEDGER": ledger, "PYTHONPATH": str(ROOT)},
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        assert process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            await process.stdout.read()
            await process.wait()


async def ready(port: int, path: str = "/ready") -> httpx.Response:
    """Asks until the server answers."""
    async with asyncio.timeout(WITHIN_S), httpx.AsyncClient() as client:
        while True:
            with suppress(httpx.TransportError):
                return await client.get(f"http://127.0.0.1:{port}{path}")
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("target", ["in_memory", "on_disk"])
@pytest.mark.parametrize("server", SERVERS)
async def test_server_with_several_workers_ends_with_one_sentence(
    tmp_path: Path, server: str, target: str
) -> None:
    ledger = tmp_path / "ledger.db"
    port = free_port()
    async with running(server, target, workers=2, port=port, ledger=f"sqlite:{ledger}") as process:
        assert process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            output = (await process.stdout.read()).decode()
            await process.wait()
    assert SAID in output
    assert not ledger.exists()


async def test_mounted_app_answers_503_in_every_worker_and_says_why() -> None:
    """27 of 32 requests got 500, and 5 an answer."""
    port = free_port()
    async with running("uvicorn", "api", workers=2, port=port):
        await ready(port, "/openapi.json")
        url = f"http://127.0.0.1:{port}/agent"
        answers = [await asked(url) for _ in range(12)]
        page = await ready(port, "/agent/health")
        state = await ready(port, "/agent/ready")
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["payload"]["error"] for answer in answers} == {SAID}
    assert (page.status_code, state.status_code) == (200, 503)
    assert state.json() == {"status": "not ready", "error": SAID}


async def asked(url: str) -> httpx.Response:
    """Asks over a connection of its own, so that any worker may get it."""
    async with httpx.AsyncClient() as client:
        return await client.post(f"{url}/agent", json={"message": "hi"})


@pytest.mark.parametrize("server", SERVERS)
async def test_two_servers_of_one_parent_are_no_workers(server: str) -> None:
    """Each has an address and sessions of its own."""
    ports: Sequence[int] = (free_port(), free_port())
    async with (
        running(server, "in_memory", workers=1, port=ports[0]),
        running(server, "in_memory", workers=1, port=ports[1]),
    ):
        answers = [await ready(port) for port in ports]
    assert [answer.status_code for answer in answers] == [200, 200]
