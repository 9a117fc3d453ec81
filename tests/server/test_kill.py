"""`kill -9` at random moments: what anyone saw is in the ledger, the rest is mended (F02)."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from arp.ledger.fact import Fact, decode
from arp.protocol.codec import encode_json
from arp.session.recovery import messages_of
from arp.store.sqlite import SqliteStore
from tests.server.processes import Process, start

SESSIONS = 20
ROUND_S = 60.0
"""The most that one life of the server may take, with reading what it left."""

SHOWS = ("delta", "render", "patch", "turn", "input", "error")
"""What a fact is told by. A `commit` and a `session` name a place for other ends too."""

AGENT = Path(__file__).with_name("restless.py")
CAPABILITIES = {"components": ["text", "progress", "confirm"], "features": ["streaming", "input"]}


class Watcher:
    """One renderer; it remembers every message that it ever saw."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.seen: list[Any] = []

    async def watch(self, server: Process, text: str, ready: asyncio.Semaphore) -> None:
        """Says something, then reads until the server is gone."""
        try:
            async with connect(
                server.ws, compression=None, ping_interval=None, max_size=None
            ) as socket:
                await socket.send(json.dumps(hello(self.session_id)))
                said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
                await socket.send(json.dumps(said))
                async for frame in socket:
                    message = json.loads(frame)
                    self.seen.append(message)
                    if message["type"] == "turn":
                        ready.release()
        except (ConnectionClosed, InvalidHandshake, OSError):
            pass  # it was killed, maybe before it had answered

    def newest(self) -> int:
        """The highest place that it saw."""
        return max((message.get("seq") or 0 for message in self.seen), default=0)


def hello(session_id: str) -> dict[str, Any]:
    return {"v": 1, "type": "hello", "session_id": session_id, "capabilities": CAPABILITIES}


async def read_logs(ledger: Path, watchers: list[Watcher]) -> dict[str, list[Fact]]:
    """Return all facts of every session, as another process finds them."""
    store = SqliteStore(ledger)
    await store.open()
    logs: dict[str, list[Fact]] = {}
    for session_id in (watcher.session_id for watcher in watchers):
        facts = logs[session_id] = []
        while chunk := await store.read(session_id, len(facts)):
            facts.extend(decode(body) for _, body in chunk)
    await store.aclose()
    return logs


def check_log(watcher: Watcher, facts: list[Fact]) -> None:
    """Every message that was seen is in the log, which has no holes."""
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    assert watcher.newest() <= len(facts), "somebody saw what is not durable"
    for message in watcher.seen:
        seq = message.get("seq")
        if seq and message["type"] in SHOWS:
            told = [as_told(one) for one in messages_of(facts[seq - 1])]
            assert as_told(message) in told, f"{message} is not what fact {seq} says: {told}"
    for fact in facts:
        if fact.type == "runtime.error":
            assert fact.payload["retryable"], f"turn {fact.turn_id} failed by itself: {fact}"


def as_told(message: Any) -> Any:
    """Return a message without what may be left out, and the part that a delta goes on with."""
    plain = message if isinstance(message, dict) else json.loads(encode_json(message))
    payload = {key: value for key, value in plain.get("payload", {}).items() if key != "target"}
    return {"surface": "main", **plain, "payload": payload}


def check_ends(facts: list[Fact]) -> None:
    """Every turn of an earlier life is closed, as interrupted; its questions are open."""
    submitted = [fact.turn_id for fact in facts if fact.type == "turn.submitted"]
    ends = [fact for fact in facts if fact.type in ("turn.completed", "turn.failed")]
    assert sorted(submitted, key=str) == sorted((end.turn_id for end in ends), key=str)
    assert {end.status_reason for end in ends} <= {"interrupted"}
    assert "action.resolved" not in {fact.type for fact in facts}
    assert len(asked(facts)) == len(set(asked(facts)))


def asked(facts: list[Fact]) -> list[str]:
    """Names the questions, which nobody has answered: they stay open in turns of any age."""
    required = [fact for fact in facts if fact.type == "action.required"]
    return [fact.payload["component"]["id"] for fact in required]


@pytest.mark.kill
@pytest.mark.timeout(3600)
async def test_kill_loses_nothing_that_anyone_saw(
    tmp_path: Path, kill_rounds: int, kill_seed: int
) -> None:
    """20 sessions stream; the server dies at a random moment, again and again."""
    print(f"to repeat: --kills {kill_rounds} --kill-seed {kill_seed}")  # noqa: T201
    chance = random.Random(kill_seed)
    ledger = tmp_path / "ledger.db"
    watchers = [Watcher(f"s{number}") for number in range(SESSIONS)]
    for number in range(1, kill_rounds + 1):
        turns, pause_s = chance.randrange(SESSIONS), chance.random() * 0.3
        print(f"kill {number}: {turns} turns told, then {pause_s:.3f} s")  # noqa: T201
        async with asyncio.timeout(ROUND_S):
            await one_life(ledger, watchers, turns, pause_s)
            logs = await read_logs(ledger, watchers)
        for watcher in watchers:
            check_log(watcher, logs[watcher.session_id])
            watcher.seen.clear()
    async with asyncio.timeout(ROUND_S):
        await check_last_life(ledger, watchers)


async def one_life(ledger: Path, watchers: list[Watcher], turns: int, pause_s: float) -> None:
    """Starts a server, lets all sessions work, and kills it a while after so many were told."""
    server = await start(AGENT, ledger)
    try:
        ready = asyncio.Semaphore(0)
        texts = ["ask" if number % 4 == 0 else "stream" for number in range(SESSIONS)]
        reading = [
            asyncio.ensure_future(watcher.watch(server, text, ready))
            for watcher, text in zip(watchers, texts, strict=True)
        ]
        for _ in range(turns):
            await ready.acquire()
        await asyncio.sleep(pause_s)
        await server.kill()
        await asyncio.gather(*reading)
    finally:
        await server.aclose()


async def check_last_life(ledger: Path, watchers: list[Watcher]) -> None:
    """After the last restart: turns closed, questions open, and one can still be answered."""
    before = await read_logs(ledger, watchers)
    server = await start(AGENT, ledger)
    try:
        for watcher in watchers:
            shown = await look(server, watcher)
            assert shown == asked(before[watcher.session_id])
            if watcher is watchers[0]:
                assert shown
                await answer(server, watcher, shown[0])
    finally:
        assert await server.stop(10) == 0
    logs = await read_logs(ledger, watchers)
    for watcher in watchers[1:]:
        check_ends(logs[watcher.session_id])


async def look(server: Process, watcher: Watcher) -> list[str]:
    """Comes back and gives the questions that are shown open."""
    shown: dict[str, Any] = {}
    async with connect(server.ws, compression=None, max_size=None) as socket:
        await socket.send(json.dumps(hello(watcher.session_id)))
        async for frame in socket:
            message = json.loads(frame)
            if message["type"] == "error" and not message["payload"].get("retryable"):
                pytest.fail(f"session {watcher.session_id} met {json.dumps(message, indent=1)}")
            for component in message.get("components", ()):
                shown[component["id"]] = component["props"]
            if message["type"] == "commit" and message.get("seq"):
                break
            if message["type"] == "session" and message["resume"] == "new":
                break
    return [name for name, props in shown.items() if props.get("state") == "open"]


async def answer(server: Process, watcher: Watcher, question: str) -> None:
    """Answers a question that outlived its turn: the agent gets it as a turn of its own."""
    async with connect(server.ws, compression=None) as socket:
        said = {"v": 1, "type": "input", "session_id": watcher.session_id, "input_type": "action"}
        data = {"source_component": question, "data": {"action": "confirm"}}
        await socket.send(json.dumps({**said, **data}))
        texts = []
        async for frame in socket:
            message = json.loads(frame)
            texts += [message["payload"]["delta"]] if message["type"] == "delta" else []
            if message["type"] == "commit" and message["final"]:
                break
    assert "".join(texts) == "late answer: confirm"


async def test_second_server_on_one_ledger_is_refused(tmp_path: Path) -> None:
    """F17: the message names the way out."""
    ledger = tmp_path / "ledger.db"
    first = await start(AGENT, ledger)
    try:
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0"),
            *("--ledger", f"sqlite:{ledger}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(10):
            out, err = await second.communicate()
        assert second.returncode != 0
        assert b"ARP on" not in out
        text = err.decode()
        assert f"in use by process {first.child.pid}" in text
        assert "--ledger sqlite:" in text
        assert "Traceback" not in text
    finally:
        await first.aclose()
