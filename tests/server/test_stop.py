"""SIGTERM and Ctrl-C: renderers are told to come back, turns are closed, exit code 0 (F24)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arp.hub.runner import DEAF_S
from arp.ledger.fact import Fact, decode
from arp.live.settings import HubSettings
from arp.server.ending import PATIENCE_S
from arp.server.serve import DRAIN_S
from arp.store.sqlite import SqliteStore
from tests.server.processes import START_S, Process
from tests.support.frames import hello

AGENT = Path(__file__).with_name("stubborn.py")
HELLO = hello("text", "confirm")


class Stopping(Process):
    """A server whose standard error is kept."""

    async def ended(self, sent: signal.Signals, within_s: float) -> tuple[int, str, float]:
        """Sends a signal; gives the exit code, what was said on stderr, and how long it took."""
        began = time.monotonic()
        self.child.send_signal(sent)
        async with asyncio.timeout(within_s):
            _, err = await self.child.communicate()
        assert self.child.returncode is not None
        return self.child.returncode, err.decode(), time.monotonic() - began


@asynccontextmanager
async def serving(ledger: Path, **environment: str) -> AsyncIterator[Stopping]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0"),
        *("--ledger", f"sqlite:{ledger}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert child.stdout is not None
    async with asyncio.timeout(START_S):
        while not (line := (await child.stdout.readline()).decode()).startswith("ARP on"):
            assert line, (await child.stderr.read()).decode() if child.stderr else ""
    server = Stopping(child, int(line.rpartition(":")[2]))
    try:
        yield server
    finally:
        await server.aclose()


def dial(server: Process) -> connect:
    """Connects; however much the server sends, the end is seen at once."""
    return connect(server.ws, compression=None, max_queue=None)


async def begin(socket: ClientConnection, session_id: str, text: str) -> None:
    """Says hello and a text, and waits until the turn shows something."""
    await socket.send(json.dumps({**HELLO, "session_id": session_id}))
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
    await socket.send(json.dumps(said))
    shown = "turn" if text == "ask" else "delta"
    while True:
        message = json.loads(await socket.recv())
        if message["type"] == shown and (text != "ask" or message["status"] == "waiting"):
            return


async def close_code(socket: ClientConnection) -> int | None:
    """Reads to the end; gives the code with which the server closed."""
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


async def facts_of(ledger: Path, session_id: str) -> list[Fact]:
    store = SqliteStore(ledger)
    await store.open()
    facts: list[Fact] = []
    while chunk := await store.read(session_id, len(facts)):
        facts.extend(decode(body) for _, body in chunk)
    await store.aclose()
    return facts


def end_of(facts: list[Fact]) -> tuple[str, str | None]:
    """Return how the turn ended."""
    end = next(fact for fact in facts if fact.type in ("turn.completed", "turn.failed"))
    return end.type, end.status_reason


async def test_sigterm_under_load_ends_everything_in_good_order(tmp_path: Path) -> None:
    """Clients get 1012, turns are closed or finished, questions stay open, exit code 0."""
    ledger = tmp_path / "ledger.db"
    async with serving(ledger, GRACE="1.5") as server, asyncio.timeout(20):
        sockets = [await dial(server) for _ in range(10)]
        texts = ["soon", "ask", *["stream"] * 8]
        for number, (socket, text) in enumerate(zip(sockets, texts, strict=True)):
            await begin(socket, f"s{number}", text)
        reading = [asyncio.ensure_future(close_code(socket)) for socket in sockets]
        code, err, took = await server.ended(signal.SIGTERM, 10)
        codes = await asyncio.gather(*reading)
    logs = [await facts_of(ledger, f"s{number}") for number in range(10)]
    assert (code, set(codes)) == (0, {1012})
    assert took < 10
    assert "Traceback" not in err
    assert end_of(logs[0]) == ("turn.completed", None)
    assert [end_of(log) for log in logs[1:]] == [("turn.failed", "interrupted")] * 9
    assert "action.resolved" not in {fact.type for fact in logs[1]}
    for log in logs:
        assert [fact.sequence for fact in log] == list(range(1, len(log) + 1))


@pytest.mark.parametrize("text", ["deaf", "thread"])
async def test_agent_that_does_not_stop_cannot_keep_the_server(tmp_path: Path, text: str) -> None:
    """It ignores its cancel, or blocks a thread; the turn is closed and the process ends."""
    ledger = tmp_path / "ledger.db"
    async with asyncio.timeout(20), serving(ledger) as server, dial(server) as socket:
        await begin(socket, "s", text)
        code, err, took = await server.ended(signal.SIGTERM, 10)
    assert code == 0
    assert took < 10
    assert "Traceback" not in err
    assert end_of(await facts_of(ledger, "s")) == ("turn.failed", "interrupted")


def test_all_that_a_stop_may_wait_for_takes_less_than_ten_seconds() -> None:
    """Requests, turns, deaf agents, the disk's own time; then tasks and threads."""
    assert DRAIN_S + HubSettings().stop_grace_s + DEAF_S + 2 * PATIENCE_S <= 9.0


async def test_open_event_stream_does_not_keep_the_server(tmp_path: Path) -> None:
    """It is ended first, then the turns."""
    ledger = tmp_path / "ledger.db"
    async with (
        asyncio.timeout(20),
        serving(ledger) as server,
        dial(server) as socket,
        httpx.AsyncClient(base_url=server.http) as client,
        client.stream("GET", "/_arp/v1/events?session_id=t") as response,
    ):
        assert response.status_code == 200
        await begin(socket, "s", "deaf")
        code, _, took = await server.ended(signal.SIGTERM, 10)
        lines = [line async for line in response.aiter_lines()]
    assert code == 0
    assert took < 5
    assert lines[0].startswith('data: {"type":"hello"')


async def test_ctrl_c_prints_no_traceback_and_succeeds(tmp_path: Path) -> None:
    """Who was asked to stop and did, succeeded."""
    ledger = tmp_path / "ledger.db"
    async with asyncio.timeout(20), serving(ledger) as server, dial(server) as socket:
        await begin(socket, "s", "stream")
        code, err, _ = await server.ended(signal.SIGINT, 10)
    assert code == 0
    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err


async def test_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    """The user is in a hurry; the ledger is whole all the same."""
    ledger = tmp_path / "ledger.db"
    async with asyncio.timeout(20), serving(ledger, GRACE="8") as server, dial(server) as socket:
        await begin(socket, "s", "stream")
        server.child.send_signal(signal.SIGINT)
        await close_code(socket)
        code, err, took = await server.ended(signal.SIGINT, 10)
    assert took < 6
    assert code == 0
    assert "Traceback" not in err
    facts = await facts_of(ledger, "s")
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))


async def test_question_can_be_answered_after_a_restart(tmp_path: Path) -> None:
    """The same id, on another renderer, of another process."""
    ledger = tmp_path / "ledger.db"
    async with asyncio.timeout(30):
        async with serving(ledger) as server, dial(server) as socket:
            await begin(socket, "s", "ask")
            await server.ended(signal.SIGTERM, 10)
        async with serving(ledger) as server, dial(server) as socket:
            await socket.send(json.dumps({**HELLO, "session_id": "s"}))
            told = await until(socket, lambda one: one["type"] == "commit" and one.get("seq"))
            said = {"v": 1, "type": "input", "input_type": "action", "source_component": "q"}
            await socket.send(json.dumps({**said, "data": {"action": "deny"}}))
            told += await until(socket, lambda one: one.get("final") and one["turn_id"] == "t2")
    questions = [part for one in told for part in one.get("components", []) if part["id"] == "q"]
    assert questions[0]["props"]["state"] == "open"
    patches = [op for one in told for op in one.get("ops", []) if op["target"] == "q"]
    assert [op["value"] for op in patches] == ["answered", False]


async def until(socket: ClientConnection, last: Callable[[Any], Any]) -> list[Any]:
    told: list[Any] = []
    while not told or not last(told[-1]):
        told.append(json.loads(await socket.recv()))
    return told


async def test_what_waits_in_line_runs_after_a_restart(tmp_path: Path) -> None:
    """It has not begun, so nothing of it is interrupted."""
    ledger = tmp_path / "ledger.db"
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "quick"}}
    async with asyncio.timeout(30):
        async with serving(ledger) as server, dial(server) as socket:
            await begin(socket, "s", "ask")
            await socket.send(json.dumps({**said, "id": "second"}))
            await until(socket, lambda one: one["type"] == "ack" and one.get("id") == "second")
            await server.ended(signal.SIGTERM, 10)
        before = [fact.type for fact in await facts_of(ledger, "s")]
        async with serving(ledger) as server, dial(server) as socket:
            await socket.send(json.dumps({**HELLO, "session_id": "s"}))
            await until(socket, lambda one: one.get("final") and one.get("turn_id") == "t2")
            await server.ended(signal.SIGTERM, 10)
    ends = [fact.type for fact in await facts_of(ledger, "s") if fact.turn_id == "t2"]
    assert before.count("turn.started") == 1
    assert ends[-1] == "turn.completed"
