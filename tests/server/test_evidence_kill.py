"""`kill -9` while the server exports: what its ledger names is whole, and there is nothing else."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.pack import Pack
from tests.server import worker
from tests.server.processes import Process, start
from tests.server.rpc import rpc

pytestmark = [pytest.mark.kill, pytest.mark.timeout(180)]

AGENT = Path(worker.__file__)
SESSION = {"sessionId": "s"}


async def exporting(server: Process, begun: asyncio.Event) -> None:
    """Asks for one pack after the other until the server is gone."""
    async with rpc(server.port) as program:
        begun.set()
        while True:
            await program.call("evidence/export", **SESSION)


async def killed_while_exporting(server: Process, after_s: float) -> None:
    begun = asyncio.Event()
    several = [asyncio.create_task(exporting(server, begun)) for _ in range(2)]
    await begun.wait()
    await asyncio.wait(several, timeout=after_s)
    await server.kill()
    await asyncio.gather(*several, return_exceptions=True)


async def packs(server: Process, place: Path) -> list[dict[str, Any]]:
    """Fetches and checks every pack that the ledger names; gives its facts of exports."""
    async with asyncio.timeout(60), rpc(server.port) as program:
        page = await program.call(
            "agentSession/events", **SESSION, types=["evidence.changed"], limit=1000
        )
    async with httpx.AsyncClient(base_url=server.http) as http:
        for fact in page["events"]:
            answer = await http.get(fact["refs"]["path"])
            assert answer.status_code == 200
            path = place / f"{fact['evidenceId']}.zip"
            path.write_bytes(answer.content)
            with Pack(path) as pack:
                report = check_pack(pack)
            assert report.broken == []
            assert report.manifest_sha256 == fact["payload"]["sha256"]
            assert report.facts == fact["payload"]["throughSequence"]
    told: list[dict[str, Any]] = page["events"]
    return told


@pytest.mark.parametrize("seed", range(3))
async def test_what_the_ledger_names_is_whole_whenever_the_server_was_killed(
    tmp_path: Path, seed: int
) -> None:
    chance, ledger = random.Random(seed), tmp_path / "ledger.db"
    server = await start(AGENT, ledger)
    try:
        async with asyncio.timeout(60), rpc(server.port) as program:
            await program.say("s", "large")
            await program.follow("s")
            await program.until("turn.completed")
        await killed_while_exporting(server, chance.uniform(0.05, 0.5))
        server = await start(AGENT, ledger)
        before = await packs(server, tmp_path)
        async with asyncio.timeout(60), rpc(server.port) as program:
            made = await program.call("evidence/export", **SESSION)
        assert made["state"] == "exported"
        assert len(await packs(server, tmp_path)) == len(before) + 1
        blobs = [one.name for one in ledger.with_suffix(".blobs").rglob("*")]
        assert all(len(name) == 64 for name in blobs), "nothing unfinished is left"
    finally:
        await server.aclose()
