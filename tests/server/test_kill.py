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
from arp.store.sqlite import SqliteStore
from tests.server.processes import Process, start

SESSIONS = 20
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
            async with connect(server.ws, compression=None, ping_interval=None) as socket:
                hello = {"v": 1, "type": "hello", "session_id": self.session_id}
                await socket.send(json.dumps({**hello, "capabilities": CAPABILITIES}))
                said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
                await socket.send(json.dumps(said))
                async for frame in socket:
                    message = json.loads(frame)
                    self.seen.append(message)
                    if message["type"] == "turn":
                        ready.release()
        except (ConnectionClosed, InvalidHandshake, OSError):
            pass

    def newest(self) -> int:
        """The highest place that it saw."""
        return max((message.get("seq") or 0 for message in self.seen), default=0)


async def read_all(store: SqliteStore, session_id: str) -> list[Fact]:
    facts: list[Fact] = []
    while chunk := await store.read(session_id, len(facts)):
        facts.extend(decode(body) for _, body in chunk)
    return facts


def check_log(watcher: Watcher, facts: list[Fact]) -> None:
    """Every message that was seen is in the log, which has no holes."""
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    assert watcher.newest() <= len(facts), "somebody saw what is not durable"
    for message in watcher.seen:
        seq = message.get("seq")
        if message["type"] == "delta" and seq:
            fact = facts[seq - 1]
            assert fact.type == "model.delta"
            assert fact.payload["text"] == message["payload"]["delta"]
        elif message["type"] in ("render", "patch") and seq:
            assert facts[seq - 1].type == "artifact.changed"


def check_ends(facts: list[Fact]) -> None:
    """Every turn of an earlier life is closed, as interrupted; its questions are open."""
    submitted = [fact.turn_id for fact in facts if fact.type == "turn.submitted"]
    ended = {fact.turn_id: fact for fact in facts if fact.type in ("turn.completed", "turn.failed")}
    for turn_id in submitted:
        assert turn_id in ended, f"{turn_id} was left open"
        assert ended[turn_id].status_reason == "interrupted"
    asked = [fact.action_id for fact in facts if fact.type == "action.required"]
    assert "action.resolved" not in {fact.type for fact in facts}
    assert len(asked) == len(set(asked))


@pytest.mark.kill
@pytest.mark.timeout(600)
async def test_kill_loses_nothing_that_anyone_saw(tmp_path: Path, kill_rounds: int) -> None:
    """20 sessions stream; the server dies at a random moment, again and again."""
    chance = random.Random()
    ledger = tmp_path / "ledger.db"
    watchers = [Watcher(f"s{number}") for number in range(SESSIONS)]
    for _ in range(kill_rounds):
        server = await start(AGENT, ledger)
        try:
            ready = asyncio.Semaphore(0)
            texts = ["ask" if number % 4 == 0 else "stream" for number in range(SESSIONS)]
            reading = [
                asyncio.ensure_future(watcher.watch(server, text, ready))
                for watcher, text in zip(watchers, texts, strict=True)
            ]
            for _ in range(chance.randrange(SESSIONS)):
                await ready.acquire()
            await asyncio.sleep(chance.random() * 0.3)
            await server.kill()
            await asyncio.gather(*reading)
        finally:
            await server.aclose()
        store = SqliteStore(ledger)
        await store.open()
        for watcher in watchers:
            check_log(watcher, await read_all(store, watcher.session_id))
        await store.aclose()
    await check_last_life(ledger, watchers)


async def check_last_life(ledger: Path, watchers: list[Watcher]) -> None:
    """After the last restart: turns closed, questions open, and one can still be answered."""
    server = await start(AGENT, ledger)
    try:
        for watcher in watchers:
            open_questions = await look(server, watcher)
            if watcher is watchers[0]:
                assert open_questions
                await answer(server, watcher, open_questions[0])
    finally:
        assert await server.stop(10) == 0
    store = SqliteStore(ledger)
    await store.open()
    for watcher in watchers[1:]:
        check_ends(await read_all(store, watcher.session_id))
    await store.aclose()


async def look(server: Process, watcher: Watcher) -> list[str]:
    """Comes back and gives the questions that are shown open."""
    shown: dict[str, Any] = {}
    async with connect(server.ws, compression=None) as socket:
        hello = {"v": 1, "type": "hello", "session_id": watcher.session_id}
        await socket.send(json.dumps({**hello, "capabilities": CAPABILITIES}))
        async for frame in socket:
            message = json.loads(frame)
            assert message["type"] != "error" or message["payload"].get("retryable"), message
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
