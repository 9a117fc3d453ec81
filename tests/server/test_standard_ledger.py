"""A ledger with every type of fact passes the published schemas, and so does every snapshot.

The facts come from a real server: its own, and those that an agent records through `turn.record`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arp.audit.models.read_model import ReadModel
from arp.ledger.fact import decode
from arp.store.sqlite import SqliteStore
from tests.ledger import standard
from tests.server import every_fact
from tests.server.processes import Process, start
from tests.server.rpc import Rpc, rpc
from tests.server.sockets import raw

AGENT = Path(every_fact.__file__)

ENDS = frozenset(("turn.completed", "turn.failed"))


async def say(caller: Rpc, text: str, **more: Any) -> str:
    """Begin a turn, and wait for its end."""
    turn: str = (await caller.say("s", text, **more))["turnId"]
    await ended(caller, turn)
    return turn


async def ended(caller: Rpc, turn_id: str) -> None:
    """Wait for the end of a turn."""
    while not any(one["type"] in ENDS and one["turnId"] == turn_id for one in caller.facts):
        await caller.next()


async def talk(caller: Rpc) -> None:
    """Turns of every kind: recording, asking, failing, waiting in the queue, cancelled."""
    await caller.say("s", "hello", turnId="hello")
    await caller.follow("s")
    await ended(caller, "hello")
    await caller.call("agentSession/thread/start", sessionId="s", threadId="side", title="Aside")
    await say(caller, "record", turnId="record")
    await caller.until("turn.completed", turnId="record")
    await say(caller, "fail", turnId="fail")
    for text, turn_id in (("tools", "tools"), ("ask", "ask")):
        await caller.say("s", text, turnId=turn_id)
        asked = await caller.until("action.required", turnId=turn_id)
        answer = {"actionId": asked["actionId"], "response": True}
        await caller.call("agentSession/action/respond", sessionId="s", **answer)
        await ended(caller, turn_id)
    await caller.say("s", "wait", turnId="wait")
    await caller.say("s", "behind", turnId="behind")
    await caller.call("agentSession/turn/cancel", sessionId="s", turnId="wait")
    await ended(caller, "behind")


async def plan(caller: Rpc) -> None:
    """Tasks in every status, with attempts."""

    async def task(method: str, task_id: str, **more: Any) -> None:
        await caller.call(f"task/{method}", sessionId="s", taskId=task_id, **more)

    for name in ("a", "b", "c", "d", "e", "f", "g"):
        await task("create", name, objective="Build")
    await task("update", "a", objective="Build it", progress={"done": 1, "total": 2})
    for status in ("running", "waiting_input", "blocked", "paused", "running"):
        await task("update", "a", status=status, reason="as it is")
    await task("link", "a", dependsOn=["b"])
    await task("update", "b", status="running")
    await task("update", "b", status="failed", reason="no luck")
    await task("retry", "b")
    await task("complete", "b")
    await task("update", "b", status="archived")
    await task("cancel", "c", reason="no need")
    for name, status in (("d", "timed_out"), ("e", "lost")):
        await task("update", name, status=status, reason="too late")
    await say(caller, "for a task", turnId="attempt", taskId="f", runId="f.1")
    await caller.say("s", "wait", turnId="lost", taskId="g", runId="g.1")
    await caller.call("agentSession/turn/cancel", sessionId="s", turnId="lost")
    await ended(caller, "lost")


async def measure(caller: Rpc) -> None:
    """Trials that end well and badly, a comparison, and exports."""
    for trial, role, text in (("one", "baseline", "hello"), ("two", "candidate", "fail")):
        benchmark = {"datasetId": "d", "datasetVersion": "1", "configurationId": role, "role": role}
        await caller.call(
            "benchmark/trial/start",
            sessionId="s",
            trialId=trial,
            benchmark=benchmark,
            taskId="count",
            input={"text": text},
            turnId=f"trial-{trial}",
            configuration={"model": "small"},
            refs={"harborJobRef": "jobs/1"},
        )
        await ended(caller, f"trial-{trial}")
        named = {"sessionId": "s", "trialId": trial}
        await caller.call("benchmark/reward/record", **named, reward=1, criteria=["counted"])
        await caller.call("benchmark/trial/export", **named)
    sides = {
        side: [{"sessionId": "s", "trialId": trial}]
        for side, trial in (("baseline", "one"), ("candidate", "two"))
    }
    await caller.call("benchmark/compare", sessionId="s", **sides)
    for method in ("evidence", "replay", "review"):
        await caller.call(f"{method}/export", sessionId="s", turnId="hello")


async def watch(server: Process) -> None:
    """A renderer comes, edits an input, leaves, and comes back."""
    async with raw(server) as screen:
        ready = await screen.hello("s", {"text": 1}, "input", "resume")
        await screen.say("s", "first", id="first")
        turn_id = (await screen.until("ack", id="first"))["turn_id"]
        await screen.until_final(turn_id)
        await screen.say("s", "second", id="second", edits=turn_id)
        await screen.until_final((await screen.until("ack", id="second"))["turn_id"])
    async with raw(server) as screen:
        resume = {"epoch": ready["epoch"], "seq": 1}
        await screen.hello("s", {"text": 1}, "input", "resume", resume=resume)


def damage(ledger: Path) -> None:
    """Make the stored state of the session unreadable."""
    with closing(sqlite3.connect(ledger)) as db, db:
        db.execute("UPDATE model SET data = X'7B7D' WHERE name = 'live'")


async def stored(ledger: Path) -> list[dict[str, Any]]:
    store = SqliteStore(ledger, read_only=True)
    await store.open()
    facts = [json.loads(body) for _, body in await store.read("s", 0, 10_000)]
    await store.aclose()
    return facts


async def produced(ledger: Path) -> list[dict[str, Any]]:
    """Return the facts of a session in which everything happened, over a kill and two stops."""
    server = await start(AGENT, ledger)
    try:
        async with rpc(server.port) as caller:
            await talk(caller)
            await plan(caller)
            await measure(caller)
            await watch(server)
            await caller.until("snapshot.updated")
            await caller.say("s", "wait", turnId="killed")
            await caller.until("model.delta", turnId="killed")
        await server.kill()
        server = await start(AGENT, ledger)
        async with rpc(server.port) as caller:
            await caller.call("agentSession/thread/resume", sessionId="s")
            snapshot = await caller.call("agentSession/read", sessionId="s")
            assert standard.faults("snapshot", snapshot) == []
        assert await server.stop(30) == 0
        damage(ledger)
        server = await start(AGENT, ledger)
        async with rpc(server.port) as caller:
            await caller.call("agentSession/thread/resume", sessionId="s")
        assert await server.stop(30) == 0
    finally:
        await server.aclose()
    return await stored(ledger)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_every_fact_and_snapshot_of_a_real_ledger_passes_the_published_schemas(
    tmp_path: Path,
) -> None:
    facts = await produced(tmp_path / "l.db")
    counts = Counter(fact["type"] for fact in facts)
    assert counts.keys() == set(standard.TYPES)
    assert {
        fact["sequence"]: faults for fact in facts if (faults := standard.faults("event", fact))
    } == {}
    model = ReadModel()
    for fact in facts:
        model.fold(decode(json.dumps(fact).encode()))
        snapshot = json.loads(json.dumps(model.snapshot()))
        assert standard.faults("snapshot", snapshot) == [], fact["sequence"]
