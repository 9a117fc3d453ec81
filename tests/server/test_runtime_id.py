"""A server's facts name its runtime: as it was told, or as its ledger has called it for good."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from arp.store.sqlite import SqliteStore
from tests.server.processes import start

AGENT = Path(__file__).with_name("scripted.py")


async def runtimes(ledger: Path, session_id: str, *options: str) -> set[str]:
    """Lets a server make a session in a ledger; gives the runtimes that its facts name."""
    server = await start(AGENT, ledger, *options)
    try:
        async with httpx.AsyncClient(base_url=server.http, timeout=20) as client:
            asked = {"v": 1, "type": "input", "session_id": session_id, "data": {"text": "fail"}}
            asked["input_type"] = "text"
            answer = await client.post("/_arp/v1/input", json=asked)
            assert answer.status_code == 200, answer.text
        assert await server.stop(15) == 0
    finally:
        await server.aclose()
    store = SqliteStore(ledger, read_only=True)
    await store.open()
    named = {json.loads(fact)["runtimeId"] for _, fact in await store.read(session_id)}
    await store.aclose()
    return named


@pytest.mark.timeout(90)
async def test_the_name_is_made_once_for_a_ledger_and_a_flag_says_otherwise(tmp_path: Path) -> None:
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    (first,) = await runtimes(one, "s1")
    assert first.startswith("arp-")
    assert await runtimes(one, "s2") == {first}
    assert await runtimes(one, "s3", "--runtime-id", "studio-7") == {"studio-7"}
    assert await runtimes(one, "s4") == {first}
    assert await runtimes(other, "s1") != {first}
