"""What a server mends in its ledger stands in the ledger, once: real processes, a real file."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arp.store.sqlite import SqliteStore
from tests.server.processes import start
from tests.server.rpc import rpc

AGENT = """
from arp import App, Turn

app = App(title="Busy")

@app.agent
async def busy(turn: Turn) -> None:
    for _ in range(100):
        async with turn.tool("look", {}):
            pass
    await turn.confirm("More?")
"""


async def facts(ledger: Path, type_name: str) -> list[dict[str, Any]]:
    store = SqliteStore(ledger, read_only=True)
    await store.open()
    log = [json.loads(fact) for _, fact in await store.read("s", 0, 10_000)]
    await store.aclose()
    return [fact for fact in log if fact["type"] == type_name]


@pytest.mark.timeout(120)
async def test_a_damaged_state_and_a_turn_that_a_kill_ended_are_told_once(tmp_path: Path) -> None:
    agent, ledger = tmp_path / "app.py", tmp_path / "l.db"
    agent.write_text(AGENT)
    server = await start(agent, ledger)
    try:
        async with rpc(server.port) as caller:
            await caller.say("s", "go", turnId="one")
            await caller.follow("s")
            await caller.until("action.required", turnId="one")
        await server.kill()
        assert await facts(ledger, "runtime.warning") == []
        server = await start(agent, ledger)
        async with rpc(server.port) as caller:
            await caller.call("agentSession/read", sessionId="s")
        assert await server.stop(15) == 0
        (warning,) = await facts(ledger, "runtime.warning")
        assert warning["turnId"] == "one"
        assert "the server stopped while this turn waited" in warning["payload"]["message"]
        assert await facts(ledger, "snapshot.repaired") == []
        with closing(sqlite3.connect(ledger)) as db, db:
            changed = db.execute("UPDATE model SET data = X'7B7D' WHERE name = 'live'").rowcount
        assert changed == 1
        for _ in range(2):
            server = await start(agent, ledger)
            async with rpc(server.port) as caller:
                resumed = await caller.call("agentSession/thread/resume", sessionId="s")
                assert [turn["status"] for turn in resumed["thread"]["turns"]] == ["waiting"]
            assert await server.stop(15) == 0
        (repaired,) = await facts(ledger, "snapshot.repaired")
        assert repaired["payload"]["readModel"] == "live"
        assert repaired["payload"]["throughSequence"] == repaired["sequence"] - 1
        assert len(await facts(ledger, "runtime.warning")) == 1
    finally:
        await server.aclose()
