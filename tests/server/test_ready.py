"""`/ready` says whether the facts in the ledger are those whose hashes it keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from arp import Access, App
from tests.commands.ledgers import written
from tests.server import worker
from tests.store import tampering
from tests.support.serving import serving


async def told(address: str, state: str = "done", token: str = "") -> dict[str, Any]:
    """Ask until the round over the sessions is over."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with asyncio.timeout(15), httpx.AsyncClient(base_url=address, headers=headers) as client:
        while True:
            answer = await client.get("/ready")
            assert answer.status_code == 200
            found: dict[str, Any] = answer.json()
            if found["verification"]["state"] == state:
                return found
            await asyncio.sleep(0.02)


async def ledger(path: Path) -> Path:
    """Make a ledger file with two sessions, one of them with a forged fact."""
    for session_id in ("s", "t"):
        await written(path, session_id)
    tampering.change(path, b"it failed", b"it worked", "s")
    return path


async def test_a_forged_fact_is_told_with_its_session_and_the_first_bad_sequence(
    tmp_path: Path,
) -> None:
    path = await ledger(tmp_path / "l.db")
    with serving(worker.app, ledger=f"sqlite:{path}") as server:
        found = await told(server.http)
    assert found["status"] == "ready", "the other sessions are served"
    verification = found["verification"]
    assert (verification["sessions"], verification["broken"]) == (2, 1)
    (broken,) = verification["named"]
    assert (broken["sessionId"], broken["sequence"], broken["through"]) == ("s", 1, 9)
    assert "is not what it was when its hash was kept" in broken["reason"]


async def test_whoever_has_no_token_gets_numbers_alone(tmp_path: Path) -> None:
    path = await ledger(tmp_path / "l.db")
    app = App(access=Access(token="secret"))
    app.agent(worker.worker)
    with serving(app, ledger=f"sqlite:{path}") as server:
        found = await told(server.http)
        named = await told(server.http, token="secret")
    assert (found["verification"]["broken"], found["verification"]["named"]) == (1, [])
    assert [one["sessionId"] for one in named["verification"]["named"]] == ["s"]


async def test_a_ledger_in_memory_has_nothing_to_compare() -> None:
    with serving(worker.app) as server:
        found = await told(server.http)
    assert found["verification"]["broken"] == 0
